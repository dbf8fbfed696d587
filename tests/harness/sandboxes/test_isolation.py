"""What a sandbox says it keeps from hostile code, and what one that does not say so does not keep."""

from __future__ import annotations

import logging
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from in_sandbox import PREFIXES, alive, backend, gone, python

from perfquarry.data.errors import InputError, SandboxUnavailable
from perfquarry.harness.contracts import Command, Limits, Sandbox
from perfquarry.harness.sandbox import BubblewrapSandbox, bubblewrap, choose_sandbox
from perfquarry.harness.sandbox.hidden import closed_to_namespaces
from tests.outside_tmp import outside_tmp

ROOT = Path(__file__).parents[3]


def test_what_is_gone_needs_no_cover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program's socket may vanish, with its folder, between two looks at it."""
    folder = tmp_path / "of-others"
    assert closed_to_namespaces(folder / "socket")
    sandbox = backend("bubblewrap")
    if isinstance(sandbox, str):
        pytest.skip(sandbox)
    monkeypatch.setattr(bubblewrap, "hidden_paths", lambda: [folder / "socket"])
    assert sandbox.run(Command(("/bin/true",), cwd=Path("/"), limits=Limits(wall_seconds=60.0))).ok


def test_what_goes_after_the_look_is_waited_out(
    bubblewrap: Sandbox, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program ends, and its socket goes with its folder, before bubblewrap covers it."""
    looked = []

    def look(path: Path) -> bool:
        looked.append(closed_to_namespaces(path))
        shutil.rmtree(path.parent, ignore_errors=True)
        return looked[-1]

    with tempfile.TemporaryDirectory(prefix=".s-", dir=outside_tmp(), ignore_cleanup_errors=True) as place:
        path = Path(place) / "inner" / "s"
        path.parent.mkdir()
        monkeypatch.setattr(f"{BubblewrapSandbox.__module__}.hidden_paths", lambda: [path])
        monkeypatch.setattr(f"{BubblewrapSandbox.__module__}.closed_to_namespaces", look)
        assert bubblewrap.run(Command(argv=("echo", "done"), cwd=folder)).stdout == b"done\n"
    assert looked == [False, True], "it was there, and was gone at the second start"


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
    ended = python(sandbox, code, folder, *arguments, limits=Limits(file_bytes=4 * 1024**2))
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


INTERPRETER = ".pyenv/versions/3.99.0/bin/python"
MANAGED = ".local/share/uv/python/cpython-3.99.0/bin/python3.99"
KEYS = (
    ".ssh/id_ed25519", ".aws/credentials", ".config/gh/hosts.yml", ".netrc", ".local/share/app/token", ".local/bin/key",
    ".local/share/uv/credentials/key", ".cache/app/session", ".cache/uv/key", ".pyenv/key", ".pyenv/versions/key",
    ".local/share/uv/python/key", "work/notes", "key.pem",
)  # fmt: skip


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The home of a user, outside of /tmp, which is hidden anyway."""
    with tempfile.TemporaryDirectory(prefix=".home-", dir=outside_tmp()) as place:
        monkeypatch.setenv("HOME", place)
        yield Path(place).resolve()


def test_of_the_users_folders_only_interpreters_are_seen(sandbox: Sandbox, folder: Path, user: Path) -> None:
    """Not even where the whole home is asked for."""
    for name in (*KEYS, INTERPRETER, MANAGED):
        (user / name).parent.mkdir(parents=True, exist_ok=True)
        (user / name).write_text("text")
    managed = (user / MANAGED).parents[1]
    # as uv installs interpreters: environments name the minor version's folder, a link to the patch's
    managed.with_name("cpython-3.99").symlink_to(managed.name)
    (folder / "bin").mkdir()
    (folder / "bin/python").symlink_to(managed.with_name("cpython-3.99") / "bin/python3.99")
    code = """
        import os, sys
        for folder, _, files in os.walk(sys.argv[1]):
            for name in files:
                path = os.path.join(folder, name)
                try: open(path).read()
                except OSError: continue
                print(os.path.relpath(os.path.realpath(path), sys.argv[1]))
        print(open("bin/python").read())"""
    readable = (*PREFIXES, user, folder, (user / INTERPRETER).parents[1])
    seen = python(sandbox, code, folder, str(user), readable=readable).stdout.decode().split()
    if sandbox.isolation.files:
        assert {name.replace("cpython-3.99/", "cpython-3.99.0/") for name in seen} == {INTERPRETER, MANAGED, "text"}
    else:
        assert set(seen) == {*KEYS, INTERPRETER, MANAGED, "text"}


def test_what_a_command_needs_may_lie_among_hidden_files(sandbox: Sandbox, folder: Path, user: Path) -> None:
    """Our own home may be ~/.perfquarry."""
    for name in (".perfquarry/tree/code.py", ".perfquarry/key"):
        (user / name).parent.mkdir(parents=True, exist_ok=True)
        (user / name).write_text("text")
    (out := user / ".perfquarry/out/process").mkdir(parents=True)
    code = """
        import os, sys
        print(*sorted(os.listdir("..")), *os.listdir("."))
        open(sys.argv[1] + "/result", "w").write("done")
        try: open("../new", "w")
        except OSError: print("closed")"""
    options = {"cwd": user / ".perfquarry/tree", "readable": (*PREFIXES, user), "writable": (out,)}
    seen = python(sandbox, code, folder, str(out), **options).stdout.decode().split()
    expected = ["out", "tree", "code.py", "closed"] if sandbox.isolation.files else ["key", "out", "tree", "code.py"]
    assert seen == expected and (out / "result").read_text() == "done"


def test_no_capability_is_left(sandbox: Sandbox, folder: Path) -> None:
    code = "print(*[line.split()[1] for line in open('/proc/self/status') if line.startswith('Cap')])"
    left = set(python(sandbox, code, folder).stdout.decode().split()) != {"0" * 16}
    assert left is not sandbox.isolation.processes


SOCKETS = """
    import ctypes, errno, socket
    for make in (socket.socket, socket.socketpair):
        for family in range(64):
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
                for protocol in range(24):
                    try: make(family, kind, protocol)
                    except OSError: continue
                    print(int(family), protocol if family == socket.AF_NETLINK else "any")
    socket.if_nameindex(), socket.getaddrinfo("localhost", 80)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(425, 1, ctypes.create_string_buffer(256)) >= 0: print("io_uring")"""


def test_few_families_of_sockets_are_there(sandbox: Sandbox, folder: Path) -> None:
    """Not the hypervisor's (VSOCK), frames of the network (PACKET), or the kernel's own ciphers (ALG)."""
    ended = python(sandbox, SOCKETS, folder)
    made = set(ended.stdout.decode().splitlines())
    ours = {"1 any", "2 any", "10 any", "16 0"}
    assert ended.ok and ours <= made
    if sandbox.isolation.processes:
        assert made == ours
    else:
        assert "16 15" in made, "news of the host's devices"


FOREIGN = {
    "x32": "import ctypes; made = ctypes.CDLL(None).syscall(0x40000000 + 41, 2, 1, 0)",
    # mov eax, 359; mov ebx, 2; mov ecx, 1; xor edx, edx; int 0x80; ret
    "i386": """
        import ctypes, mmap
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(bytes.fromhex("53 b867010000 bb02000000 b901000000 31d2 cd80 5b c3"))
        made = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()""",
}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="of x86-64 alone")
@pytest.mark.parametrize("code", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("name", ["bubblewrap", "docker"])
def test_calls_of_another_architecture_are_no_way_round(name: str, code: str, folder: Path) -> None:
    """Docker's filter ends the process. Of plain processes it is not asked: kernels may be without such calls."""
    isolated = backend(name)
    if isinstance(isolated, str):
        pytest.skip(isolated)
    ended = python(isolated, f"{textwrap.dedent(code)}\nprint(made)", folder)
    assert ended.stdout in (b"-1\n", b"-38\n") or ended.signal == signal.SIGSYS, ended


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
        from perfquarry.harness.contracts import Command
        from perfquarry.harness.sandbox import choose_sandbox
        folder, words = Path({str(folder)!r}), {(sys.executable, "-c", textwrap.dedent(inside), marks[0])!r}
        choose_sandbox({sandbox.name!r}).run(Command(words, cwd=folder, writable=(folder,),
            readable=tuple(map(Path, {[str(prefix) for prefix in PREFIXES]!r}))))"""
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(parent)], cwd=ROOT) as process:
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
def test_a_socket_in_a_folder_of_another_user_stops_no_sandbox(bubblewrap: Sandbox, folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".s-", dir=outside_tmp()) as place, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{place}/s")
        server.listen()
        os.chown(place, 65534, 65534)
        Path(place).chmod(0o700)
        code = f"""
            import socket
            try: socket.socket(socket.AF_UNIX).connect("{place}/s")
            except OSError as error: print(type(error).__name__)"""
        done = python(bubblewrap, code, folder)
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
    monkeypatch.setattr("perfquarry.harness.sandbox.process._warned", False)
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
