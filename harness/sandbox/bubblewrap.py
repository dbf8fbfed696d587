"""Linux namespaces through bubblewrap: no network, a read-only host, own processes, nothing survives."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from data.errors import SandboxUnavailable
from harness.contracts import Command, Completed, Isolation, Limits
from harness.sandbox.hidden import PRIVATE, hidden_paths, inside
from harness.sandbox.supervise import Ended, supervise

# Runs inside: sets the limits, and tells how much processor time its child took (times), which
# the kernel does not pass on through the namespace's own init. The report leaves through what
# was standard input (a shell can only name descriptors below 10); the command gets none of it.
INSIDE = """
ulimit -c 0 2>/dev/null; ulimit -f "$1" 2>/dev/null; ulimit -v "$2" 2>/dev/null; shift 2
exec 3>&0 </dev/null 4>&2 2>/dev/null
(exec "$@" 2>&4 3>&- 4>&-)
code=$?
times >&3
exit $code
"""
GONE_SECONDS = 10.0
"""How long the kernel gets to end a killed namespace."""


@dataclass
class BubblewrapSandbox:
    """Runs every command in namespaces of its own.

    An exit code of 128 + n, n a signal's number, is reported as that signal: bubblewrap
    and shells say both the same way.
    """

    NAME = "bubblewrap"
    _bwrap: str = field(default_factory=lambda: shutil.which("bwrap") or "bwrap")

    @property
    def name(self) -> str:
        """Stored with every timing."""
        return self.NAME

    @property
    def isolation(self) -> Isolation:
        """All of it."""
        return Isolation(network=True, files=True, processes=True, crash=True)

    def verify(self) -> None:
        """Starts one command with everything a run uses.

        Raises:
            SandboxUnavailable: with what bubblewrap said, and what to do.
        """
        ended = self.run(Command(("/bin/sh", "-c", "exit 7"), cwd=Path("/"), limits=Limits(wall_seconds=10.0)))
        if ended.exit_code != 7:
            raise SandboxUnavailable(f"bubblewrap starts but does not run commands: {ended!r}")

    def run(self, command: Command) -> Completed:
        """Runs it; every process it started is dead when this returns.

        Raises:
            SandboxUnavailable: bubblewrap is missing, or this kernel does not let it make namespaces.
        """
        if not command.cwd.is_dir():
            raise SandboxUnavailable(f"the folder to run in does not exist: {command.cwd}")
        with _Pipes() as pipes:
            argv = [
                self._bwrap,
                *_options(self._bwrap, command, pipes.info_write),
                *("--", "/bin/sh", "-c", INSIDE, "sh", *limit_words(command.limits)),
                *command.argv,
            ]
            ended = supervise(
                argv,
                cwd=Path("/"),
                env={},
                limits=command.limits,
                core=command.core,
                kill=pipes.kill,
                started=pipes.started,
                pass_fds=(pipes.info_write,),
                stdin=pipes.report_write,
            )
            report = pipes.report()
        if not report and ended.status == 1 and ended.stderr.startswith(b"bwrap: "):
            raise SandboxUnavailable(
                f"bubblewrap could not start: {ended.stderr.decode(errors='replace').strip()[:500]}; "
                "allow unprivileged user namespaces, or ask for the sandbox 'process'"
            )
        return completed(ended, _cpu_seconds(report))


def _options(bwrap: str, command: Command, info: int) -> list[str]:
    size = str(command.limits.file_bytes)
    options = ["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    options += ["--hostname", "sandbox", "--info-fd", str(info), "--clearenv", "--ro-bind", "/", "/"]
    if _can_disable_user_namespaces(bwrap):
        options.append("--disable-userns")
    options += _covers(command, size)
    # for root, who owns the files of /proc/sys even without capabilities, a writable /proc
    # (core_pattern) is a way out
    options += ["--proc", "/proc", "--remount-ro", "/proc"]
    options += ["--dev", "/dev", "--perms", "1777", "--size", size, "--tmpfs", "/dev/shm"]  # noqa: S108
    options += ["--remount-ro", "/dev"]
    for path in command.writable:
        options += ["--bind", str(path), str(path)]
    for name, value in command.env.items():
        options += ["--setenv", name, value]
    return [*options, "--chdir", str(command.cwd)]


def _covers(command: Command, size: str) -> list[str]:
    """Empty private folders, what must be seen inside them, then covers over keys, then what must be seen there."""
    program = Path(command.argv[0]).parent
    needed = [command.cwd, *command.readable, program.parent if program.name == "bin" else program]
    private = [path for path in PRIVATE if path.is_dir()]
    shown = inside(needed, private)
    # what lies in a private folder and is not shown there needs no cover
    hidden = [path for path in hidden_paths() if path not in inside([path], private) or inside([path], shown)]
    options: list[str] = []
    for path in private:
        options += ["--perms", "1777", "--size", size, "--tmpfs", str(path)]
    for path in shown:
        options += _read_only(path)
    for path in hidden:
        folder = ["--tmpfs", str(path), "--remount-ro", str(path)]
        options += folder if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]
    for path in inside(needed, hidden):
        options += _read_only(path)
    return options


def _read_only(path: Path) -> list[str]:
    return ["--ro-bind", str(path), str(path)]


@functools.cache
def _can_disable_user_namespaces(bwrap: str) -> bool:
    """Whether this bubblewrap (0.8 and newer) can forbid namespaces inside: less of the kernel to attack."""
    try:
        return b"--disable-userns" in subprocess.run([bwrap, "--help"], capture_output=True, check=False).stdout
    except OSError as error:
        raise SandboxUnavailable("bubblewrap is not installed: no `bwrap` on PATH") from error


def limit_words(limits: Limits) -> tuple[str, str]:
    """In the units of `ulimit`: blocks of 512 bytes for files, KiB for memory."""
    return str(max(1, limits.file_bytes // 512)), str(max(1, limits.memory_bytes // 1024))


def completed(ended: Ended, cpu_seconds: float) -> Completed:
    """What a supervised shell's end says of the command in it."""
    killed = -ended.status if ended.status < 0 else ended.status - 128
    number = killed if killed in signal.valid_signals() else None
    return Completed(
        exit_code=None if number else ended.status,
        signal=number,
        timed_out=ended.exceeded == "time",
        stdout=ended.stdout,
        stderr=ended.stderr,
        truncated=ended.truncated,
        wall_seconds=ended.wall_seconds,
        cpu_seconds=cpu_seconds,
        exceeded=ended.exceeded,
    )


def _cpu_seconds(report: bytes) -> float:
    """Sum of what the shell's `times` printed: minutes and seconds, of itself and of its children."""
    total = 0.0
    for word in report.decode(errors="replace").split():
        minutes, _, seconds = word.rstrip("s").partition("m")
        with contextlib.suppress(ValueError):
            total += 60 * int(minutes) + float(seconds)
    return total


class _Pipes:
    """The two pipes to a sandbox (bubblewrap's facts, the shell's report), and the hold on its first process."""

    def __init__(self) -> None:
        self._info_read, self.info_write = os.pipe()
        self._report_read, self.report_write = os.pipe()
        self._init: int | None = None
        self._open = {self._info_read, self.info_write, self._report_read, self.report_write}

    def __enter__(self) -> _Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in list(self._open):
            self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.discard(descriptor)
            os.close(descriptor)

    def started(self, pid: int) -> None:
        """Takes hold of the namespace's first process: when it is gone, all others are."""
        self._close(self.info_write)
        self._close(self.report_write)
        with contextlib.suppress(ValueError, KeyError, OSError):  # bubblewrap failed or all ended at once
            self._init = os.pidfd_open(json.loads(b"".join(_blocks(self._info_read)))["child-pid"])
            self._open.add(self._init)

    def kill(self, pid: int) -> None:
        """Kills the namespace and waits until the kernel has ended every process in it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        if self._init is None:
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._init, signal.SIGKILL)
        waiting = select.poll()  # not select.select: descriptors may be above 1023
        waiting.register(self._init, select.POLLIN)
        waiting.poll(GONE_SECONDS * 1000)

    def report(self) -> bytes:
        """What the shell reported; call it once all is dead."""
        os.set_blocking(self._report_read, False)
        with contextlib.suppress(BlockingIOError):
            return os.read(self._report_read, 4096)
        return b""


def _blocks(descriptor: int) -> Iterator[bytes]:
    while block := os.read(descriptor, 4096):
        yield block
        if block.rstrip().endswith(b"}"):
            return
