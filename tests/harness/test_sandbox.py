"""The conformance suite: what every sandbox must do, and, held both ways, what it says it keeps from hostile code."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import uuid
from pathlib import Path

import psutil
import pytest

from data.errors import InputError, SandboxUnavailable
from harness.contracts import Command, Completed, Limits, Sandbox
from harness.sandbox import BubblewrapSandbox, choose_sandbox

BACKENDS = ("bubblewrap", "docker", "process")
PREFIXES = (Path(sys.prefix), Path(sys.base_prefix))
MEBI = 1024**2


@functools.cache
def backend(name: str) -> Sandbox | str:
    """The sandbox, or why it does not work here."""
    try:
        return choose_sandbox(name)
    except SandboxUnavailable as error:
        return f"{name} does not work here: {error}"


@pytest.fixture(params=BACKENDS)
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    found = backend(request.param)
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture
def bubblewrap() -> Sandbox:
    found = backend("bubblewrap")
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def python(sandbox: Sandbox, code: str, folder: Path, *arguments: str, **options: object) -> Completed:
    """Runs Python code in the sandbox, in a folder it may write to unless told otherwise."""
    settings: dict[str, object] = {"writable": (folder,), "readable": PREFIXES, "cwd": folder, **options}
    return sandbox.run(Command((sys.executable, "-c", textwrap.dedent(code), *arguments), **settings))  # type: ignore[arg-type]


def alive(mark: str) -> list[int]:
    """Processes of this machine that have the mark among their arguments."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline", "status"]):
        if mark in (process.info["cmdline"] or []) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.info["pid"])
    return found


def gone(mark: str, seconds: float = 20.0) -> bool:
    until = time.monotonic() + seconds
    while alive(mark) and time.monotonic() < until:
        time.sleep(0.05)
    return not alive(mark)


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
    flood = "import sys\nfor _ in range(200): sys.stdout.write('x' * 2**20)\nsys.stderr.write('end')"
    ended = python(sandbox, flood, folder, limits=Limits(output_bytes=1000))
    assert (ended.stdout, ended.stderr, ended.truncated, ended.exit_code) == (b"x" * 1000, b"end", True, 0)


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


# What a sandbox says it keeps from hostile code, and what one that does not say so does not keep


def test_there_is_no_network(sandbox: Sandbox, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"""
            import socket
            own = socket.create_server(("127.0.0.1", 0))
            socket.create_connection(own.getsockname()).close()
            for address in (("127.0.0.1", {server.getsockname()[1]}), ("192.0.2.1", 80)):
                try: socket.create_connection(address, timeout=2)
                except OSError: print("refused")
                else: print("connected")"""
        seen = python(sandbox, code, folder).stdout.split()
    if sandbox.isolation.network:
        assert seen == [b"refused", b"refused"]
    else:
        assert seen[0] == b"connected"


def test_the_host_is_read_only(sandbox: Sandbox, folder: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_text("intact")
    code = """
        import os, sys
        for attempt in (lambda: open(sys.argv[1] + "/file", "w"), lambda: os.mkdir(sys.argv[1] + "/new"),
                        lambda: os.chmod(sys.argv[1], 0o777), lambda: os.remove(sys.argv[1] + "/file")):
            try: attempt()
            except OSError: print("refused")
            else: print("allowed")"""
    ended = python(sandbox, code, folder, str(victim), readable=(*PREFIXES, victim))
    if sandbox.isolation.files:
        assert ended.stdout == b"refused\n" * 4
        assert [path.read_text() for path in victim.iterdir()] == ["intact"]
    else:
        assert ended.stdout == b"allowed\n" * 4
        assert [path.name for path in victim.iterdir()] == ["new"]


@pytest.mark.parametrize("name", ["bubblewrap", "docker"])
def test_the_system_is_read_only(name: str, folder: Path) -> None:
    """Not asked of plain processes: it would be done."""
    isolated = backend(name)
    if isinstance(isolated, str):
        pytest.skip(isolated)
    code = """
        for place in ("/etc/pq-test", "/usr/pq-test", "/run/pq-test", "/sys/pq-test",
                      "/proc/sys/kernel/core_pattern", "/proc/sys/vm/stat_interval", "/proc/sysrq-trigger"):
            try: open(place, "w")
            except OSError: print("refused")
            else: print("allowed")"""
    assert python(isolated, code, folder).stdout == b"refused\n" * 7


def test_tmp_is_private_and_bounded(sandbox: Sandbox, folder: Path, tmp_path: Path) -> None:
    code = """
        import os, sys, tempfile
        print(os.path.exists(sys.argv[1]), tempfile.gettempdir() == "/tmp")
        if len(sys.argv) > 2:
            try:
                for number in range(8):
                    with open(f"/tmp/{number}", "wb") as file: file.write(bytes(2**20))
            except OSError: print("full")"""
    (tmp_path / "secret").write_text("x")
    arguments = [str(tmp_path / "secret"), *(["fill"] if sandbox.isolation.files else [])]
    ended = python(sandbox, code, folder, *arguments, limits=Limits(file_bytes=4 * MEBI))
    assert ended.stdout == (b"False True\nfull\n" if sandbox.isolation.files else b"True False\n")
    assert not Path("/tmp/0").exists()


def test_other_processes_cannot_be_seen(sandbox: Sandbox, folder: Path) -> None:
    canary = f"canary-{uuid.uuid4().hex}"
    code = """
        import glob, sys
        found = processes = 0
        for name in glob.glob("/proc/[0-9]*/environ"):
            processes += 1
            try: data = open(name, "rb").read()
            except OSError: continue
            found += CANARY in data
        print(found, processes)"""
    with subprocess.Popen(["/bin/sleep", "600"], env={"PQ_CANARY": canary}) as holder:
        try:
            ended = python(sandbox, code.replace("CANARY", repr(canary.encode())), folder)
        finally:
            holder.kill()
    found, processes = map(int, ended.stdout.split())
    if sandbox.isolation.processes:
        assert found == 0 and processes <= 4
    else:
        assert found == 1 and processes > 4


def test_keys_in_the_home_are_hidden(sandbox: Sandbox, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = folder.parent / "home"
    for name in (".ssh/id_ed25519", ".aws/credentials", ".config/gh/hosts.yml", ".netrc", ".pyenv/bin/python"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("text")
    monkeypatch.setenv("HOME", str(home))
    code = """
        import os, sys
        os.chdir(sys.argv[1])
        for folder, _, files in sorted(os.walk(".")):
            for path in sorted(os.path.join(folder, name) for name in files):
                try: print(path, len(open(path).read()))
                except OSError: print(path, "refused")"""
    # under /tmp the whole home is hidden; made visible again, its keys must not come with it
    seen = python(sandbox, code, folder, str(home), readable=(*PREFIXES, home)).stdout.decode().splitlines()
    if sandbox.isolation.files:
        assert seen == ["./.netrc refused", "./.pyenv/bin/python 4"]
    else:
        assert len(seen) == 5 and "./.ssh/id_ed25519 4" in seen


def test_what_a_command_needs_may_lie_among_hidden_files(
    sandbox: Sandbox, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own home may be ~/.perfquarry."""
    home = folder.parent / "home"
    for name in (".perfquarry/tree/code.py", ".perfquarry/key"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("text")
    (out := home / ".perfquarry/out/process").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    code = """
        import os, sys
        print(*sorted(os.listdir("..")), *os.listdir("."))
        open(sys.argv[1] + "/result", "w").write("done")
        try: open("../new", "w")
        except OSError: print("closed")"""
    options = {"cwd": home / ".perfquarry/tree", "readable": (*PREFIXES, home), "writable": (out,)}
    seen = python(sandbox, code, folder, str(out), **options).stdout.decode().split()
    expected = ["out", "tree", "code.py", "closed"] if sandbox.isolation.files else ["key", "out", "tree", "code.py"]
    assert seen == expected and (out / "result").read_text() == "done"


def test_no_capability_is_left(sandbox: Sandbox, folder: Path) -> None:
    code = "print(*[line.split()[1] for line in open('/proc/self/status') if line.startswith('Cap')])"
    left = set(python(sandbox, code, folder).stdout.decode().split()) != {"0" * 16}
    assert left is not sandbox.isolation.processes


def test_what_a_killed_parent_leaves(sandbox: Sandbox, folder: Path) -> None:
    """No command; where that is promised, nothing that it moved to a session of its own either."""
    marks = [f"pq-test-{uuid.uuid4().hex}" for _ in range(2)]
    inside = f"""
        import subprocess, sys, time
        sleep = "import time; time.sleep(600)"
        subprocess.Popen([sys.executable, "-c", sleep, "{marks[1]}"], start_new_session=True)
        open("started", "w").close()
        time.sleep(600)"""
    parent = f"""
        import sys
        from pathlib import Path
        from harness.contracts import Command
        from harness.sandbox import choose_sandbox
        folder, words = Path({str(folder)!r}), {(sys.executable, "-c", textwrap.dedent(inside), marks[0])!r}
        choose_sandbox({sandbox.name!r}).run(Command(words, cwd=folder, writable=(folder,),
            readable=tuple(map(Path, {[str(prefix) for prefix in PREFIXES]!r}))))"""
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(parent)], cwd=root) as process:
        until = time.monotonic() + 60
        while not (folder / "started").exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        assert alive(marks[0]) and alive(marks[1])
        process.kill()
    assert gone(marks[0])
    if sandbox.isolation.crash:
        assert gone(marks[1])
    else:
        assert alive(marks[1])
        for pid in alive(marks[1]):
            os.kill(pid, signal.SIGKILL)


# What bubblewrap keeps beyond that


def test_devices_and_own_facts_of_the_kernel_are_read_only(bubblewrap: Sandbox, folder: Path) -> None:
    code = """
        for place in ("/dev/pq-test", "/proc/self/oom_score_adj"):
            try: open(place, "w")
            except OSError: print("refused")
            else: print("allowed")"""
    assert python(bubblewrap, code, folder).stdout == b"refused\n" * 2


def test_sockets_and_password_files_of_the_host_are_hidden(bubblewrap: Sandbox, folder: Path) -> None:
    code = """
        import os
        print(os.listdir("/run"))
        try: print(len(open("/etc/shadow").read()))
        except OSError: print(0)"""
    assert python(bubblewrap, code, folder).stdout == b"[]\n0\n"


@pytest.mark.parametrize("failures", [2, 9])
def test_mounts_that_move_while_a_sandbox_starts_are_waited_out(
    bubblewrap: Sandbox, folder: Path, failures: int
) -> None:
    """The message is bubblewrap's own, of a start during which a Docker engine unmounted a container's root."""
    wrapper, left = folder / "bwrap", folder / "left"
    left.write_text("x" * failures)
    wrapper.write_text(f"""#!/bin/sh
if [ "$1" != --version ] && [ "$1" != --help ] && [ -s {left} ]; then
    truncate -s -1 {left}
    echo "bwrap: Can't bind mount /oldroot/ on /newroot/: Unable to apply mount flags: remount \\"/x\\"" >&2; exit 1
fi
exec {bubblewrap._bwrap} "$@"
""")
    wrapper.chmod(0o755)
    moved, command = BubblewrapSandbox(_bwrap=str(wrapper)), Command(argv=("echo", "done"), cwd=folder)
    if failures == 2:
        assert moved.run(command).stdout == b"done\n"
        return
    with pytest.raises(SandboxUnavailable, match="Unable to apply mount flags"):
        moved.run(command)
    assert len(left.read_text()) == failures - 5


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of another user's")
def test_a_socket_in_a_folder_of_another_user_stops_no_installer(bubblewrap: Sandbox, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as place, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{place}/s")
        server.listen()
        os.chown(place, 65534, 65534)
        Path(place).chmod(0o700)
        code = f"""
            import socket
            try: socket.socket(socket.AF_UNIX).connect("{place}/s")
            except OSError as error: print(type(error).__name__)"""
        done = python(BubblewrapSandbox(for_installers=True), code, folder)
    assert done.stdout == b"PermissionError\n"


# Choice


def test_choice_prefers_isolation(bubblewrap: Sandbox) -> None:
    assert choose_sandbox().name == choose_sandbox("bubblewrap").name == bubblewrap.name == "bubblewrap"
    assert choose_sandbox("process").name == "process"
    with pytest.raises(InputError, match="chroot"):
        choose_sandbox("chroot")


def test_without_any_the_choice_warns_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    monkeypatch.setattr("harness.sandbox.process._warned", False)
    with caplog.at_level(logging.WARNING):
        assert choose_sandbox().name == choose_sandbox().name == "process"
    assert caplog.text.count("NOT ISOLATED") == 1 and "keys" in caplog.text
    for name, why in (("bubblewrap", "not installed"), ("docker", "engine")):
        with pytest.raises(SandboxUnavailable, match=why):
            choose_sandbox(name)


def test_a_bubblewrap_without_namespaces_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(SandboxUnavailable, match="No permissions"):
        BubblewrapSandbox().verify()
