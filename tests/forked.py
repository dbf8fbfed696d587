"""The command as processes that are forked from one which has imported its libraries.

A process of its own imports them for two seconds of CPU, and tests run the command some hundred times. What is forked
has the arguments, variables, folder and streams of its caller, and ends as any process does.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[1]
IMPORTED = (
    "scipy.stats",
    "pandas",
    *(f"perfquarry.curation.{name}" for name in ("evaluation.evaluating", "release.gathering")),
    *(f"perfquarry.flows.{name}" for name in ("cli", "work")),
)
"""Not Prefect, which reads its settings from the environment when it is imported."""

CLIENT = """
import json, os, socket, sys
asked = {"arguments": sys.argv[2:], "variables": dict(os.environ), "folder": os.getcwd()}
with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    socket.send_fds(server, [b"."], [0, 1, 2])
    server.sendall(json.dumps(asked).encode())
    server.shutdown(socket.SHUT_WR)
    code = int(server.recv(16) or 99)
if code < 0:
    os.kill(os.getpid(), -code)
os._exit(code)
"""


@contextmanager
def forking(folder: Path) -> Iterator[list[str]]:
    """The words that the arguments of `perfquarry` follow, while the process is there which forks."""
    place = folder / "forks"
    with subprocess.Popen([sys.executable, "-m", "tests.forked", str(place)], cwd=ROOT, stdout=subprocess.PIPE) as one:
        try:
            assert one.stdout and one.stdout.readline() == b"ready\n", "the process that forks did not start"
            yield [sys.executable, "-I", "-S", "-c", CLIENT, str(place)]
        finally:
            one.terminate()


def _serve(place: str) -> NoReturn:
    for name in IMPORTED:
        importlib.import_module(name)
    assert threading.active_count() == 1, "a fork copies no thread"
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen()
        print("ready", flush=True)
        while True:
            client, _ = listener.accept()
            with client:
                if os.fork() == 0:
                    listener.close()
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    _look_after(client)


def _look_after(client: socket.socket) -> NoReturn:
    """Runs a command; it ends with whoever asked for it."""
    _, streams, _, _ = socket.recv_fds(client, 1, 3)
    asked = json.loads(b"".join(iter(lambda: client.recv(65536), b"")))
    pid = os.fork()
    if pid == 0:
        client.close()
        _become(streams, **asked)
    for number in streams:
        os.close(number)
    ended = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(client, select.POLLHUP)
    if ended not in dict(poll.poll()):
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        client.sendall(str(code).encode())
    finally:
        os._exit(0)


def _become(streams: list[int], arguments: list[str], variables: dict[str, str], folder: str) -> Any:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, max(streams) + 1)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", errors="backslashreplace", buffering=1, closefd=False)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    sys.argv[1:] = arguments
    try:
        sys.modules["perfquarry.flows.cli"].entry()
    except Exception:  # noqa: BLE001
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()  # the last one ends the process with the command's exit code


if __name__ == "__main__":
    _serve(sys.argv[1])
