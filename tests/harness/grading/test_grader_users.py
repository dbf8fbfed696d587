"""Sides of a grading as users of their own: who is not on turn does not run, and nobody reaches another."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bare_python import everybodys_python

PYTHON = everybodys_python()
pytestmark = pytest.mark.skipif(os.geteuid() != 0 or PYTHON is None, reason="only root gives processes users")
BUSY = """
import os, sys, threading, time
def spin():
    while True: pass
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            if os.fork() == 0: os._exit(0)
            try: os.waitpid(-1, os.WNOHANG)
            except OSError: pass
    spin()
threading.Thread(target=spin, daemon=True).start()
print("busy", flush=True)
spin()
"""
REACHES = """
import os, signal, sys
for word in sys.argv[1:]:
    for number in (signal.SIGSTOP, signal.SIGKILL, 0):
        try:
            os.kill(int(word), number)
            print("signalled", word)
        except PermissionError: pass
    try: open("/proc/%s/environ" % word).read(); print("read", word)
    except OSError: pass
    try: open("/proc/%s/mem" % word, "rb"); print("opened", word)
    except OSError: pass
"""
RENICES = "import os, sys; os.setpriority(os.PRIO_PROCESS, int(sys.argv[1]), 19)"

KEEPS = """
import ctypes, os
libc = ctypes.CDLL(None)
keys = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
made = [libc.shmget(0, 4096, 0o1600), libc.msgget(0, 0o1600), libc.semget(0, 1, 0o1600)]
key = libc.syscall(keys[0], b"user", b"memo", b"answers", 7, -4)
assert min(made) >= 0
print(key, flush=True)
"""
FINDS = """
import ctypes, os
keys = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
print(ctypes.CDLL(None).syscall(keys[1], 10, -4, b"user", b"memo", 0))
"""


@pytest.fixture
def wardens(part: Any) -> Iterator[list[Any]]:
    taken: set[int] = set()
    made = [part("users").Warden(taken) for _ in range(2)]
    yield made
    for one in made:
        one.kill()
        one.close()


def start(warden: Any, code: str, *arguments: object) -> subprocess.Popen[str]:
    """A program as the user of a warden."""
    command = [str(PYTHON), "-S", "-c", code, *map(str, arguments)]
    return subprocess.Popen(  # in a session of its own: shells wake what is stopped in theirs
        command,
        start_new_session=True,
        user=warden.uid,
        group=warden.uid,
        extra_groups=[],
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
    )


def ended(process: subprocess.Popen[str]) -> str:
    return process.communicate(timeout=20)[0]


def test_whoever_is_stopped_does_nothing(part: Any, wardens: list[Any]) -> None:
    warden, processes = wardens[0], part("processes")
    program = start(warden, BUSY)
    assert program.stdout and program.stdout.readline() == "busy\n"
    for _ in range(20):
        warden.stop()
        everyone = warden.all()
        assert len(everyone) >= 3 and part("users").wait_stopped(everyone)
        meter = processes.Meter()
        before = meter.read(everyone)
        time.sleep(0.02)
        # a fork or an exit that had begun comes to its end in the kernel, and no further
        assert meter.read(warden.all()) < before + 0.002 and part("users").wait_stopped(warden.all())
        warden.go()
        time.sleep(0.005)
    until = time.monotonic() + 20
    while meter.read(warden.all()) <= before:
        assert time.monotonic() < until, "it goes on"
    warden.kill()
    program.wait(20)
    until = time.monotonic() + 20
    while any(processes.state_of(pid) not in "ZX" for pid in warden.all()):  # one dies after the other
        assert time.monotonic() < until
        time.sleep(0.01)
    program.stdout.close()


def test_nobody_reaches_another_or_what_stops_it(part: Any, wardens: list[Any]) -> None:
    one, other = wardens
    partner = start(other, "import time; time.sleep(60)")
    said = ended(start(one, REACHES, one.pid, other.pid, partner.pid, os.getpid()))
    assert said == ""
    assert ended(start(one, "import os; os.kill(-1, 9)")) == ""
    assert partner.poll() is None
    one.stop(), one.go()  # it still obeys
    other.kill()
    assert partner.wait(20) == -signal.SIGKILL
    assert partner.stdout
    partner.stdout.close()


def test_who_slows_down_its_warden_is_found(wardens: list[Any]) -> None:
    one, other = wardens
    assert not one.meddled()
    assert ended(start(one, RENICES, one.pid)) == ""
    assert one.meddled() and not other.meddled()


def test_what_users_leave_in_the_kernel_is_removed(part: Any, wardens: list[Any]) -> None:
    def kept(uid: int) -> list[str]:
        places = [Path("/proc/sysvipc") / kind for kind in ("shm", "msg", "sem")]
        return [place.name for place in places for line in place.read_text().splitlines() if str(uid) in line.split()]

    one, other = wardens
    key = int(ended(start(one, KEEPS)))
    ended(start(other, KEEPS))
    assert kept(one.uid) == ["shm", "msg", "sem"]
    assert key < 0 or int(ended(start(one, FINDS))) == key, "where the kernel keeps keys"
    one.kill()
    assert kept(one.uid) == [] and kept(other.uid) == ["shm", "msg", "sem"]
    assert int(ended(start(one, FINDS))) == -1
    other.kill()
    assert kept(other.uid) == []


def test_what_users_leave_is_removed(part: Any, wardens: list[Any], tmp_path: Path) -> None:
    for name, uid in (("left", wardens[0].uid), ("ours", os.getuid())):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
        os.chown(tmp_path / name, uid, uid)
    place = os.open(tmp_path / "left", os.O_RDONLY)
    for _ in range(3000):  # deeper than recursion goes
        os.mkdir("d", dir_fd=place)
        inner = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)
    part("users").clear([str(tmp_path)], {wardens[0].uid})
    assert [path.name for path in tmp_path.iterdir()] == ["ours"]
