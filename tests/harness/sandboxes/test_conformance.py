"""The conformance suite: what every sandbox must do."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from in_sandbox import alive, python

from perfquarry.data.errors import SandboxUnavailable
from perfquarry.harness.contracts import Command, Limits, Sandbox
from perfquarry.harness.sandbox.supervise import supervise

MEBI = 1024**2


@pytest.mark.parametrize("code", [0, 1, 7, 120, 255])
def test_exit_codes_are_reported(sandbox: Sandbox, folder: Path, code: int) -> None:
    ended = python(sandbox, f"raise SystemExit({code})", folder)
    assert (ended.exit_code, ended.signal, ended.timed_out, ended.exceeded) == (code, None, False, "")
    assert ended.ok is (code == 0)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGABRT])
def test_death_by_signal_is_reported(sandbox: Sandbox, folder: Path, number: signal.Signals) -> None:
    ended = python(sandbox, f"import os; os.kill(os.getpid(), {int(number)})", folder)
    assert (ended.exit_code, ended.signal, ended.timed_out) == (None, number, False)
    assert ended.stderr == b""


def test_output_is_kept_byte_for_byte(sandbox: Sandbox, folder: Path) -> None:
    ended = python(
        sandbox, r"import sys; sys.stdout.buffer.write('δ ✓'.encode() + b'\xff\x00\n'); sys.stderr.write('err')", folder
    )
    assert (ended.stdout, ended.stderr, ended.truncated) == ("δ ✓".encode() + b"\xff\x00\n", b"err", False)


def test_a_flood_of_output_is_read_and_thrown_away(sandbox: Sandbox, folder: Path) -> None:
    flood = (
        "import sys\nprint('begun')\nfor _ in range(200): sys.stdout.write('x' * 2**20)\n"
        "print('failed')\nsys.stderr.write('end')"
    )
    ended = python(sandbox, flood, folder, limits=Limits(output_bytes=1000))
    assert ended.stdout == b"begun\n" + b"x" * (1000 - len("begun\nfailed\n")) + b"failed\n"
    assert (ended.stderr, ended.truncated, ended.exit_code) == (b"end", True, 0)


def test_many_small_outputs_arrive_in_order(sandbox: Sandbox, folder: Path) -> None:
    code = """
        import os
        for number in range(5000):
            os.write(1, b"%d\\n" % number)
            os.write(2, "é".encode())"""
    ended = python(sandbox, code, folder)
    assert ended.stdout.split() == [b"%d" % number for number in range(5000)]
    assert (ended.stderr, ended.truncated) == ("é".encode() * 5000, False)


def test_file_names_of_any_kind_go_in_and_out(sandbox: Sandbox, folder: Path) -> None:
    names = [b"\xce\xb4 \xe2\x9c\x93", b"\xff\xfe", b"line\nbreak", b"-rf"]
    for name in names:
        (folder / os.fsdecode(name)).write_bytes(name)
    code = """
        import os
        for name in os.listdir(b"."):
            with open(name, "rb") as old, open(b"new-" + name, "wb") as new: new.write(old.read()[::-1])"""
    assert python(sandbox, code, folder).ok
    assert {path.name: path.read_bytes() for path in folder.glob("new-*")} == {
        os.fsdecode(b"new-" + name): name[::-1] for name in names
    }


def test_standard_input_is_empty(sandbox: Sandbox, folder: Path) -> None:
    assert python(sandbox, "import sys; print(repr(sys.stdin.read()))", folder).stdout == b"''\n"


def test_missing_program_is_a_value_and_missing_folder_an_error(sandbox: Sandbox, folder: Path) -> None:
    assert sandbox.run(Command(("/does/not/exist",), cwd=folder)).exit_code == 127
    with pytest.raises(SandboxUnavailable, match="nowhere"):
        sandbox.run(Command(("/bin/true",), cwd=folder / "nowhere"))


def test_arguments_and_environment_arrive_unchanged(sandbox: Sandbox, folder: Path) -> None:
    odd = ["a b", "$(touch x)", "'\"", "é\n", "", "--", "-c"]
    code = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['ODD']]))"
    ended = python(sandbox, code, folder, *odd, env={"ODD": "x=$HOME;\né"})
    assert json.loads(ended.stdout) == [odd, "x=$HOME;\né"]
    assert not (folder / "x").exists()


DAEMON = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
def child(leave):
    if os.fork() == 0:
        if leave:
            os.setsid()
            if os.fork():
                os._exit(0)
        os.execv(sys.executable, [sys.executable, "-c", IGNORE, sys.argv[1]])
IGNORE = '''
import signal, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)
open(str(time.time_ns()) + ".started", "w").close()
time.sleep(600)'''
child(False)
child(True)
while len([name for name in os.listdir() if name.endswith(".started")]) < 2:
    time.sleep(0.01)
"""


@pytest.mark.parametrize("ending", ["time.sleep(600)", "sys.exit(0)", "os.kill(os.getpid(), 9)"])
def test_nothing_survives(sandbox: Sandbox, folder: Path, ending: str) -> None:
    """Neither a grandchild nor a daemon that ignores signals, whether the command ends or runs out of time."""
    mark = f"pq-test-{uuid.uuid4().hex}"
    ended = python(sandbox, DAEMON + ending, folder, mark, limits=Limits(wall_seconds=3.0))
    assert ended.timed_out is ("sleep" in ending)
    assert len(list(folder.glob("*.started"))) == 2
    assert alive(mark) == []


def test_a_timeout_ends_what_ignores_signals_and_closes_its_output(sandbox: Sandbox, folder: Path) -> None:
    code = "import os, signal, time; signal.signal(15, signal.SIG_IGN); os.close(1); os.close(2); time.sleep(600)"
    ended = python(sandbox, code, folder, limits=Limits(wall_seconds=0.7))
    assert ended.timed_out and ended.exceeded == "time" and 0.7 <= ended.wall_seconds < 30


def test_memory_is_limited(sandbox: Sandbox, folder: Path) -> None:
    code = "try: data = bytearray(2**30)\nexcept MemoryError: print('refused')"
    assert python(sandbox, code, folder, limits=Limits(memory_bytes=400 * MEBI)).stdout == b"refused\n"


def test_memory_of_all_processes_together_is_limited(sandbox: Sandbox, folder: Path) -> None:
    code = """
        import os, time
        for _ in range(6):
            if os.fork() == 0:
                data = b"x" * (120 * 2**20)
                break
        time.sleep(60)"""
    ended = python(sandbox, code, folder, limits=Limits(memory_bytes=400 * MEBI, wall_seconds=50.0))
    assert ended.exceeded == "memory" and not ended.timed_out and not ended.ok


def test_processes_are_limited(sandbox: Sandbox, folder: Path) -> None:
    mark = f"pq-test-{uuid.uuid4().hex}"
    code = "import os, time\nfor _ in range(60):\n    if os.fork() == 0: break\ntime.sleep(60)"
    ended = python(sandbox, code, folder, mark, limits=Limits(processes=20, wall_seconds=50.0))
    assert ended.exceeded == "processes" and not ended.ok
    assert alive(mark) == []


def test_file_size_is_limited_and_no_core_is_written(sandbox: Sandbox, folder: Path) -> None:
    code = "import os\nwith open('big', 'wb') as file:\n    for _ in range(64): file.write(b'x' * 2**20)"
    assert not python(sandbox, code, folder, limits=Limits(file_bytes=4 * MEBI)).ok
    assert (folder / "big").stat().st_size <= 4 * MEBI
    python(sandbox, "import os; os.abort()", folder)
    assert not list(folder.glob("*core*"))


FILLING = {
    "files": "open(str(number), 'wb').write(bytes(2**20))",
    "empty files": "open(str(number), 'wb').close()",
    "files without a name": "held.append(tempfile.TemporaryFile(dir='.')); held[-1].write(bytes(2**20))",
}


@pytest.mark.parametrize("filling", FILLING)
def test_disk_is_limited(sandbox: Sandbox, folder: Path, filling: str) -> None:
    """Of all files in writable folders together, those that were there before among them."""
    (folder / "old").write_bytes(bytes(6 * MEBI))
    code = f"import itertools, tempfile\nheld = []\nfor number in itertools.count(): {FILLING[filling]}"
    ended = python(sandbox, code, folder, limits=Limits(disk_bytes=16 * MEBI, file_bytes=8 * MEBI, wall_seconds=100.0))
    assert ended.exceeded == "disk" and not ended.ok and not ended.timed_out


def test_disk_within_the_limit_may_be_used(sandbox: Sandbox, folder: Path) -> None:
    code = """
        import os
        for number in range(200):
            with open(str(number % 4), "wb") as file: file.write(bytes(2**20))
            with open("hole", "wb") as file: file.truncate(2**22)"""
    assert python(sandbox, code, folder, limits=Limits(disk_bytes=16 * MEBI, file_bytes=8 * MEBI)).ok


def test_environment_starts_empty(sandbox: Sandbox, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PQ_CANARY", "canary-6e1f")
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    seen = json.loads(python(sandbox, code, folder, env={"GIVEN": "1"}).stdout)
    assert seen.pop("GIVEN") == "1"
    # what the shell, the interpreter and the plain process's clean-up put there themselves
    assert set(seen) <= {"PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE", "TMPDIR", "PERFQUARRY_SANDBOX"}


def test_writable_folder_keeps_what_was_written(sandbox: Sandbox, folder: Path) -> None:
    (folder / "old").write_bytes(b"\x00\xff")
    python(sandbox, "import shutil; shutil.copy('old', 'new'); open('empty', 'w').close()", folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "old": b"\x00\xff", "new": b"\x00\xff", "empty": b""
    }  # fmt: skip


def test_processor_time_and_wall_time_are_measured(sandbox: Sandbox, folder: Path) -> None:
    code = """
        import os, time
        if os.fork() == 0:
            while time.process_time() < 0.3: pass
            os._exit(0)
        os.wait()
        time.sleep(0.2)"""
    ended = python(sandbox, code, folder)
    assert ended.cpu_seconds >= 0.25 and ended.wall_seconds >= 0.5


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system cannot pin processes")
def test_pinning_binds_the_command_and_not_us(sandbox: Sandbox, folder: Path) -> None:
    before = os.sched_getaffinity(0)
    core = max(before)
    ended = python(sandbox, "import os; print(os.sched_getaffinity(0))", folder, core=core)
    assert ended.stdout.decode().strip() == str({core}) and os.sched_getaffinity(0) == before


def test_an_interrupt_kills_the_command(sandbox: Sandbox, folder: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell runs with "&"
    mark = f"pq-test-{uuid.uuid4().hex}"

    def interrupt() -> None:
        until = time.monotonic() + 60
        while not alive(mark) and time.monotonic() < until:
            time.sleep(0.02)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        python(sandbox, "import time; time.sleep(600)", folder, mark, limits=Limits(wall_seconds=120.0))
    signal.signal(signal.SIGINT, before)
    thread.join()
    assert alive(mark) == []


def test_an_interrupt_while_the_command_starts_kills_it(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    mark = f"pq-test-{uuid.uuid4().hex}"

    @contextlib.contextmanager
    def interrupted() -> Iterator[None]:
        yield  # here the process is started
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        argv = (sys.executable, "-c", "import time; time.sleep(600)", mark)
        supervise(
            Command(argv, cwd=tmp_path, limits=Limits(wall_seconds=120.0)),
            kill=lambda pid: os.killpg(pid, signal.SIGKILL),
            starting=interrupted(),
        )
    signal.signal(signal.SIGINT, before)
    assert alive(mark) == []


def test_threads_may_run_commands_at_once(sandbox: Sandbox, folder: Path) -> None:
    ended: dict[int, bytes] = {}

    def run(number: int) -> None:
        ended[number] = python(sandbox, f"print({number})", folder).stdout

    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ended == {number: f"{number}\n".encode() for number in range(6)}


def test_no_descriptor_is_leaked(sandbox: Sandbox, folder: Path) -> None:
    python(sandbox, "pass", folder)
    before = psutil.Process().num_fds()
    for _ in range(5):
        python(sandbox, "pass", folder)
        with contextlib.suppress(SandboxUnavailable):
            sandbox.run(Command(("/bin/true",), cwd=folder / "nowhere"))
    assert psutil.Process().num_fds() == before
    listed = python(sandbox, "import os; print(len(os.listdir('/dev/fd')))", folder).stdout
    assert int(listed) <= 4  # standard streams and the listing itself
