"""Linux namespaces through bubblewrap: no network, a read-only host, own processes, nothing survives."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_fixed

from perfquarry.data.errors import SandboxUnavailable
from perfquarry.harness.contracts import Command, Completed
from perfquarry.harness.sandbox.hidden import PRIVATE, closed_to_namespaces, hidden_paths, needed_paths
from perfquarry.harness.sandbox.isolating import Isolating, limit_words, of_shell
from perfquarry.harness.sandbox.seccomp import call_filter
from perfquarry.harness.sandbox.supervise import supervise
from perfquarry.harness.sandbox.task_limit import TaskGroup, resource_limit
from perfquarry.harness.sandbox.tree import descendants

# Runs inside: sets the limits, waits for our word, and reports how much processor time its child
# took (times), which the kernel does not pass on through the namespace's own init. It talks through
# what was standard input, a socket (a shell can only name descriptors below 10); the command gets
# none of it. Without the word nothing is run: a parent killed while bubblewrap starts cannot take it along,
# because `--die-with-parent` works only for a parent that dies later.
INSIDE = """
ulimit -c 0 2>/dev/null; ulimit -n 4096 2>/dev/null
ulimit -u "$3" 2>/dev/null || ulimit -p "$3" 2>/dev/null
ulimit -f "$1" 2>/dev/null; ulimit -v "$2" 2>/dev/null; shift 3
echo >&0 && read -r word || exit 125
exec 3>&0 </dev/null 4>&2 2>/dev/null
(exec "$@" 2>&4 3>&- 4>&-)
code=$?
times >&3
exit $code
"""
GONE_SECONDS = 120.0
"""How long the kernel gets to end a killed namespace: each of its processes needs the processor once more to die."""
START_SECONDS = 30.0
"""How long bubblewrap gets to make one."""


class _HostMoved(SandboxUnavailable):
    """While the sandbox was made another program (a Docker engine) mounted or unmounted something, or ended, and with
    it the socket that was to be covered."""


_MOVED = re.compile(rb"apply mount flags|Can't (?:mkdir|mkdir parents for|create file at) ")
"""What bubblewrap says then."""


@dataclass
class BubblewrapSandbox(Isolating):
    """Runs every command in namespaces of its own.

    An exit code of 128 + n, n a signal's number, is reported as that signal: bubblewrap
    and shells say both the same way.
    """

    name = "bubblewrap"
    private: tuple[Path, ...] = ()
    """Folders and files that are empty for every command but those that may write there."""
    _bwrap: str = field(default_factory=lambda: shutil.which("bwrap") or "bwrap")

    @retry(retry=retry_if_exception_type(_HostMoved), stop=stop_after_attempt(5), wait=wait_fixed(0.2), reraise=True)
    def run(self, command: Command) -> Completed:
        """Runs it; every process it started is dead when this returns.

        Raises:
            SandboxUnavailable: bubblewrap is missing, or this kernel does not let it make namespaces.
        """
        if not command.cwd.is_dir():
            raise SandboxUnavailable(f"the folder to run in does not exist: {command.cwd}")
        with _Lifeline(command) as line:
            argv = (
                self._bwrap,
                *line.options,
                *_options(self._bwrap, command, self.private),
                *("--", "/bin/sh", "-c", INSIDE, "sh", *limit_words(command.limits)),
                resource_limit(command.limits.processes),
                *command.argv,
            )
            ended = supervise(
                replace(command, argv=argv, cwd=Path("/"), env={}, started=line.started),
                kill=line.kill,
                starting=line.tasks.joined(),
                pass_fds=line.passed,
                stdin=line.inside,
            )
            report, refused = line.report(), line.tasks.refused()
        if refused and ended.exit_code != 0 and not ended.exceeded:
            ended = replace(ended, exceeded="processes")
        if not report and ended.exit_code == 1 and ended.stderr.startswith(b"bwrap: "):
            raise (_HostMoved if _MOVED.search(ended.stderr) else SandboxUnavailable)(
                f"bubblewrap could not start: {ended.stderr.decode(errors='replace').strip()[:500]}; "
                "allow unprivileged user namespaces, or ask for the sandbox 'process'"
            )
        return of_shell(ended, _cpu_seconds(report))


def prefix(
    python: Path, readable: Sequence[str], writable: Sequence[str], cwd: str, private: Sequence[Path], filter_file: Path
) -> list[str]:
    """The words before a command that isolate it as `run` does, for programs that start processes themselves.

    Limits, environment and what the command prints are the caller's. Nothing survives the process that is started.

    Args:
        python: interpreter of an environment that stays visible.
        readable: folders and files that stay visible; may hold words that the caller replaces later.
        writable: the same for folders that can be written.
        cwd: where the command starts; one of these.
        private: folders and files that are empty inside.
        filter_file: gets the filter of system calls.

    Raises:
        SandboxUnavailable: bubblewrap is missing.
    """
    bwrap = shutil.which("bwrap") or "bwrap"
    shown = [word for path in readable for word in ("--ro-bind", path, path)]
    shown += [word for path in writable for word in ("--bind", path, path)]
    options = [*_options(bwrap, Command(argv=(str(python),), cwd=Path("/")), private, shown)[:-1], cwd]
    program = call_filter()
    if not program:
        return [bwrap, *options, "--"]
    filter_file.write_bytes(program)
    opened = ["/bin/sh", "-c", 'exec 9<"$0" && exec "$@"', str(filter_file)]
    return [*opened, bwrap, "--seccomp", "9", *options, "--"]


def _options(bwrap: str, command: Command, private: Sequence[Path], shown: Sequence[str] = ()) -> list[str]:
    size = str(command.limits.file_bytes)
    options = ["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    options += ["--hostname", "sandbox"]
    if _can_disable_user_namespaces(bwrap):
        options.append("--disable-userns")
    covers, closed = _covers(command, private, size)
    options += ["--ro-bind", "/", "/", *covers, *shown, *closed]
    # for root, who owns the files of /proc/sys even without capabilities, a writable /proc
    # (core_pattern) is a way out
    options += ["--proc", "/proc", "--remount-ro", "/proc"]
    options += ["--dev", "/dev", "--perms", "1777", "--size", size, "--tmpfs", "/dev/shm"]  # noqa: S108
    options += ["--remount-ro", "/dev"]
    for path in command.writable:
        options += ["--bind", str(path), str(path)]
    return [*options, "--chdir", str(command.cwd)]


def _covers(command: Command, private: Sequence[Path], size: str) -> tuple[list[str], list[str]]:
    """Mounts over what is hidden and, inside these, of what the command needs; the outer before the inner.

    The second list closes what was covered, once all places to mount at are made in it.
    """
    own = {path for path in PRIVATE if path.is_dir()}
    empty = own | {path.resolve() for path in private if path.exists()}
    covers = empty | {path for path in hidden_paths() if not closed_to_namespaces(path)}
    shown = {path.parent.resolve() / path.name for path in needed_paths(command) if path.exists()}
    options, closed = [], []
    hides: dict[Path, bool] = {}
    for path in sorted(covers | shown):
        hides[path] = path in covers
        if hides[path] is next((hides[above] for above in path.parents if above in hides), False):
            continue  # as what it lies in
        if not hides[path]:
            options += ["--ro-bind", str(path), str(path)]
        elif not path.is_dir():
            options += ["--ro-bind", "/dev/null", str(path)]
        elif path in own:
            options += ["--perms", "1777", "--size", size, "--tmpfs", str(path)]
        else:
            options += ["--tmpfs", str(path)]
            closed += ["--remount-ro", str(path)]
    return options, closed


@functools.cache
def _can_disable_user_namespaces(bwrap: str) -> bool:
    """Whether this bubblewrap (0.8 and newer) can forbid namespaces inside: less of the kernel to attack."""
    try:
        return b"--disable-userns" in subprocess.run([bwrap, "--help"], capture_output=True, check=False).stdout
    except OSError as error:
        raise SandboxUnavailable("bubblewrap is not installed: no `bwrap` on PATH") from error


def _cpu_seconds(report: bytes) -> float:
    """Sum of what the shell's `times` printed: minutes and seconds, of itself and of its children."""
    total = 0.0
    for word in report.decode(errors="replace").split():
        minutes, _, seconds = word.rstrip("s").partition("m")
        with contextlib.suppress(ValueError):
            total += 60 * int(minutes) + float(seconds)
    return total


class _Lifeline:
    """What ties a sandbox to us: a socket to its shell, bubblewrap's facts, and the hold on its first process.

    bubblewrap writes its facts into a file, not a pipe: a pipe would break with our death, and end
    it while its child still waits for it, for ever. The environment may hold passwords of package
    indexes: it goes through a file, too, since everybody may read command lines.
    """

    def __init__(self, command: Command) -> None:
        self._command = command
        ours, theirs = socket.socketpair()
        self._socket, self._theirs = ours, theirs
        self._init: int | None = None
        self.inside = theirs.fileno()
        self._info = os.memfd_create("info")
        variables = [word for pair in command.env.items() for word in ("--setenv", *pair)]
        given = {"--info-fd": self._info, "--args": _in_memory("\0".join(["--clearenv", *variables]).encode())}
        if program := call_filter():
            given["--seccomp"] = _in_memory(program)
        self.tasks = TaskGroup(command.limits.processes)
        self.passed = tuple(given.values())
        self.options = [word for name, descriptor in given.items() for word in (name, str(descriptor))]

    def __enter__(self) -> _Lifeline:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._theirs.close()
        self.tasks.remove()
        for descriptor in (*self.passed, self._init):
            if descriptor is not None:
                os.close(descriptor)

    def started(self, pid: int) -> None:
        """Takes hold of the namespace's first process (when it is gone, all others are) and lets the shell go on.

        Then the command's owner gets to know which process was started.
        """
        self._theirs.close()
        self._socket.settimeout(START_SECONDS)
        try:
            ready = self._socket.recv(1)
        except TimeoutError as error:
            raise SandboxUnavailable(f"bubblewrap did not start within {START_SECONDS:.0f} s") from error
        with contextlib.suppress(ValueError, KeyError, OSError):  # it failed: there is nothing to hold
            self._init = os.pidfd_open(json.loads(os.pread(self._info, 4096, 0))["child-pid"])
        if ready and self._init is not None:
            self.tasks.add(descendants(pid))
            with contextlib.suppress(OSError):
                self._socket.sendall(b"go\n")
        if self._command.started:
            self._command.started(pid)

    def kill(self, pid: int) -> None:
        """Kills the namespace and waits until the kernel has ended every process in it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # bubblewrap and, until it has a session of its own, its child
        if self._init is None:
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._init, signal.SIGKILL)
        waiting = select.poll()  # not select.select: descriptors may be above 1023
        waiting.register(self._init, select.POLLIN)
        waiting.poll(GONE_SECONDS * 1000)

    def report(self) -> bytes:
        """What the shell reported; call it once all is dead."""
        self._socket.setblocking(False)
        with contextlib.suppress(OSError):
            return self._socket.recv(4096)
        return b""


def _in_memory(data: bytes) -> int:
    """A descriptor from which the data can be read."""
    descriptor = os.memfd_create("data")
    os.pwrite(descriptor, data, 0)
    return descriptor
