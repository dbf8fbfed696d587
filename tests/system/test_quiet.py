"""A run with its own Prefect server: nothing phones home, and the server ends when nobody uses it."""

from __future__ import annotations

import json
import os
import subprocess
import time

import pytest

from perfquarry.data.home import Home
from perfquarry.flows.server import address
from tests.system.commands import command

# Read by every Python of the run, its server included: names that begin with PYTHON are passed on.
WATCH = """
import json, os, sys
_log = os.open(os.environ["PYTHON_PQ_WATCH"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
_EVENTS = {"socket.connect": 1, "socket.sendto": 1, "socket.getaddrinfo": 0, "socket.gethostbyname": 0}
def _hook(event, arguments):
    if event in _EVENTS:
        to = arguments[_EVENTS[event]]
        to = to[0] if isinstance(to, tuple) else to
        to = to.decode(errors="replace") if isinstance(to, bytes) else str(to)
        os.write(_log, (json.dumps([" ".join(sys.orig_argv), event, to]) + "\\n").encode())
sys.addaudithook(_hook)
os.write(_log, (json.dumps([" ".join(sys.orig_argv), "start", "localhost"]) + "\\n").encode())
"""
HERE = {"127.0.0.1", "::1", "localhost", "None"}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str, str]]:
    """What a run's processes addressed, from its start until its server has ended: who, event, to where."""
    home, watcher = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("watcher")
    (watcher / "sitecustomize.py").write_text(WATCH)
    log = watcher / "log"
    switches = ("DO_NOT_TRACK", "PREFECT_", "OTEL_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(switches)}
    environment |= {"PYTHONPATH": str(watcher), "PYTHON_PQ_WATCH": str(log)}
    subprocess.run(command(home, "mine", "demo"), env=environment, check=True, capture_output=True)
    deadline = time.monotonic() + 90
    while address(Home(home)):
        assert time.monotonic() < deadline, "the server outlived its grace time"
        time.sleep(0.5)
    return [tuple(json.loads(line)) for line in log.read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_no_socket_leaves_the_machine(seen: list[tuple[str, str, str]]) -> None:
    watched = {who for who, _, _ in seen}
    assert any("-m perfquarry mine" in who for who in watched) and any("flows.server" in who for who in watched)
    assert any("server" in who and "prefect" in who for who in watched), "the server itself was watched"
    assert any(event == "socket.connect" for _, event, _ in seen), "the run spoke with its server"
    assert [one for one in seen if one[2] not in HERE and not one[2].startswith("/")] == []
