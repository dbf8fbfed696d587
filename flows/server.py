"""The local Prefect server: one quiet server a home, started when needed, gone when nobody uses it.

A run holds a shared lock on `lease`; a small keeper process owns the server and ends it
once it can take that lock exclusively, so a killed run never leaves a server behind.
Nothing here imports prefect: its settings are read at import, from the environment that
`use_local_server` and `quiet` prepare.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import httpx

from perfquarry.data.children import Need, environment
from perfquarry.data.errors import ServerUnavailable
from perfquarry.data.files import locked, unlock, write_whole
from perfquarry.data.home import Home

START_SECONDS = 180.0
"""Longest wait for a server to answer (seconds)."""
GRACE_SECONDS = 20.0
"""How long the keeper waits for a next run before it ends the server (seconds)."""


def quiet() -> None:
    """Nothing phones home and Prefect logs warnings only, unless the user set it otherwise."""
    for name, value in {
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_LOGGING_LEVEL": "WARNING",
        "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
        "PREFECT_CLI_PROMPT": "false",
    }.items():
        os.environ.setdefault(name, value)


def server_environment(home: Home) -> Mapping[str, str]:
    """The server's environment: its database and profile lie in the home, no key of ours reaches it."""
    return environment(
        Need.PREFECT,
        PREFECT_HOME=str(home.server),
        PREFECT_SERVER_LOGGING_LEVEL="WARNING",
        PREFECT_UI_ENABLED="true",
    )


def address(home: Home) -> str | None:
    """URL of the server's API if one of this home answers, else None."""
    url = _url(home)
    return url if url and _answers(url) else None


def _url(home: Home) -> str | None:
    """URL of the API of the home's server process, which may not answer yet; None without such a process."""
    try:
        state = json.loads((home.server / "server.json").read_text())
        os.kill(int(state["pid"]), 0)
        return f"http://127.0.0.1:{int(state['port'])}/api"
    except (OSError, ValueError, KeyError):
        return None


@contextlib.contextmanager
def local_server(home: Home) -> Iterator[LocalServer]:
    """A lease on the home's server, started if there is none; the caller may do other work before `wait()`."""
    home.server.mkdir(parents=True, exist_ok=True)
    with (home.server / "lease").open("a") as lease:
        locked(lease, shared=True)
        server = LocalServer(home)
        server.ensure()
        yield server


@contextlib.contextmanager
def leased(home: Home) -> Iterator[LocalServer | None]:
    """The home's own server, which stays up meanwhile; None where PREFECT_API_URL names the user's."""
    quiet()
    if os.environ.get("PREFECT_API_URL"):
        yield None
        return
    os.environ.setdefault("PREFECT_HOME", str(home.server))
    with local_server(home) as server:
        yield server


@contextlib.contextmanager
def connected(home: Home) -> Iterator[str]:
    """PREFECT_API_URL names a server that answers, the user's or the home's own: its address."""
    with leased(home) as server:
        if server:
            os.environ["PREFECT_API_URL"] = server.wait()
        yield os.environ["PREFECT_API_URL"]


@dataclass(frozen=True)
class LocalServer:
    """The server of a home while a lease is held."""

    home: Home

    @property
    def answers(self) -> bool:
        """Whether it answers already."""
        return address(self.home) is not None

    def ensure(self) -> None:
        """Starts the keeper unless a server of this home already answers."""
        if self.answers:
            return
        with (self.home.server / "keeper.log").open("ab") as log:
            subprocess.Popen(
                [sys.executable, "-m", "perfquarry.flows.server", str(self.home.root)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**server_environment(self.home)},
            )

    def promised(self) -> str:
        """URL of the API as soon as the server has its port; `wait` knows whether it answers there.

        Raises:
            ServerUnavailable: it had none within `START_SECONDS`.
        """
        return self._awaited(lambda: _url(self.home))

    def wait(self) -> str:
        """URL of the API once it answers.

        Raises:
            ServerUnavailable: it did not within `START_SECONDS`.
        """
        return self._awaited(lambda: address(self.home))

    def _awaited(self, look: Callable[[], str | None]) -> str:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if url := look():
                return url
            time.sleep(0.1)
        raise ServerUnavailable(
            f"the local Prefect server did not answer within {START_SECONDS:.0f} s; "
            f"see {self.home.server / 'keeper.log'}, or run with --no-server"
        )


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=2.0, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def announced(home: Home, port: int, pid: int) -> Iterator[None]:
    """The home names this server meanwhile. One that was made anew in its place may name its own by the end."""
    state, said = home.server / "server.json", json.dumps({"port": port, "pid": pid})
    write_whole(state, said)
    try:
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            if state.read_text() == said:
                state.unlink()


def _removed(file: IO[str]) -> bool:
    """Whether an open file no longer lies at its path: somebody removed the home."""
    try:
        return not os.path.samestat(os.fstat(file.fileno()), Path(file.name).stat())
    except FileNotFoundError:
        return True


def keep(home: Home) -> None:
    """Body of the keeper: runs the server until no run has held a lease for the grace time, or the home is removed."""
    with (home.server / "keeper").open("a") as only, (home.server / "lease").open("a") as lease:
        if not _become_only(only, home):
            return
        port = _free_port()
        server = subprocess.Popen(
            [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)],
            stdin=subprocess.DEVNULL,
            # its page would ask port 4200 otherwise
            env={**server_environment(home), "PREFECT_SERVER_UI_API_URL": f"http://127.0.0.1:{port}/api"},
        )
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        try:
            with announced(home, port, server.pid):
                while server.poll() is None and not _removed(lease) and not _abandoned(lease):
                    time.sleep(0.5)
                # still holding the lease exclusively: a run that starts now waits until
                # the state file is gone, and starts a keeper of its own
        finally:
            unlock(lease)
            _end(server)


def _become_only(only: IO[str], home: Home) -> bool:
    """Waits for an ending keeper; false when another one has a server that answers."""
    for _ in range(300):
        if locked(only, wait=False):
            return True
        if address(home):
            return False
        time.sleep(0.1)
    return False


def _abandoned(lease: IO[str]) -> bool:
    """Whether nobody held a lease now and after the grace time; if so, the lock is held on return."""
    for wait in (GRACE_SECONDS, 0.0):
        if not locked(lease, wait=False):
            return False
        if wait:
            unlock(lease)
            time.sleep(wait)
    return True


def _end(server: subprocess.Popen[bytes]) -> None:
    for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        server.send_signal(stop)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(8)
            return


if __name__ == "__main__":
    keep(Home(Path(sys.argv[1])))
