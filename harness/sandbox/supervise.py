"""Runs one process to its end or its limit: output, time, memory and number of processes are bounded here."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from perfquarry.data.errors import SandboxUnavailable
from perfquarry.harness.alternation.waiting import WaitingLimit
from perfquarry.harness.contracts import Command, Completed, Exceeded
from perfquarry.harness.interrupts import interrupts_held
from perfquarry.harness.sandbox.disk import DiskMeter
from perfquarry.harness.sandbox.kept import Kept
from perfquarry.harness.sandbox.priority import raised
from perfquarry.harness.sandbox.tree import descendants, proportional_memory, usage

TICK = 0.05
"""Seconds between two looks at the process tree."""
DRAIN_SECONDS = 5.0
"""How long output is still read after everything was killed."""

_ending = threading.Event()
"""Set while the commands of all threads are to end."""


@dataclass
class _Stream:
    pipe: IO[bytes]
    kept: Kept

    def read(self) -> bool:
        """Takes what is there; False at the end of the stream."""
        data = os.read(self.pipe.fileno(), 1 << 18)
        self.kept.take(data)
        return bool(data)


@contextlib.contextmanager
def ending_together() -> Iterator[None]:
    """Left by an exception (Ctrl-C, say), it ends the commands of other threads, too: they raise KeyboardInterrupt.

    Only the main thread hears of a Ctrl-C; without this it would wait for the others' builds.
    """
    _ending.clear()
    try:
        yield
    except BaseException:
        _ending.set()
        raise


@contextlib.contextmanager
def _pinned(core: int | None) -> Iterator[None]:
    """Children started inside run on that core, before others where we may say so; both belong to this thread alone."""
    if core is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        with raised():
            yield
    finally:
        os.sched_setaffinity(0, before)


def supervise(
    command: Command,
    *,
    kill: Callable[[int], None],
    stdin: int = subprocess.DEVNULL,
    pass_fds: Sequence[int] = (),
    starting: contextlib.AbstractContextManager[None] | None = None,
) -> Completed:
    """Starts a command in its own session, reads its output, and calls `kill(pid)` at a limit and at its end.

    `kill` must end the process and all it left behind; it is called exactly once, also on an
    exception (a KeyboardInterrupt, say, at the next look) and after an ordinary end (for leftover daemons).
    It is started inside `starting`. What the command may read or write is not enforced here.

    Raises:
        SandboxUnavailable: it could not be started.
    """
    begin = time.monotonic()
    limits = command.limits
    disk = DiskMeter(command.writable, limits.disk_bytes)
    with interrupts_held() as interrupt:
        try:
            with _pinned(command.core), starting or contextlib.nullcontext():
                process = subprocess.Popen(
                    command.argv,
                    cwd=command.cwd,
                    env=dict(command.env),
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                    pass_fds=pass_fds,
                )
        except (OSError, ValueError) as error:
            raise SandboxUnavailable(f"cannot start {command.argv[0]} in {command.cwd}: {error}") from error
        assert process.stdout is not None and process.stderr is not None
        with process.stdout as out, process.stderr as err:
            streams = _Stream(out, Kept(limits.output_bytes)), _Stream(err, Kept(limits.output_bytes))
            exceeded: Exceeded = ""
            try:
                if command.started:
                    command.started(process.pid)
                exceeded = _watch(process.pid, streams, command, begin, disk, interrupt)
            finally:
                kill(process.pid)
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            wall = time.monotonic() - begin
            _drain(streams)
    code = process.returncode
    return Completed(
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        stdout=bytes(streams[0].kept),
        stderr=bytes(streams[1].kept),
        truncated=any(stream.kept.truncated for stream in streams),
        wall_seconds=wall,
        cpu_seconds=used.ru_utime + used.ru_stime,
        exceeded=exceeded,
    )


def _watch(
    pid: int, streams: Sequence[_Stream], command: Command, begin: float, disk: DiskMeter, interrupt: Callable[[], None]
) -> Exceeded:
    """Reads output until the process has ended or a limit is exceeded; the process is not reaped."""
    with selectors.DefaultSelector() as selector, _exit_event(pid) as event:
        for stream in streams:
            selector.register(stream.pipe, selectors.EVENT_READ, stream)
        if event is not None:
            selector.register(event, selectors.EVENT_READ, None)
        time_limit = WaitingLimit(command.limits.wall_seconds, begin)
        next_look = time_limit.next_look(begin, TICK)
        while True:
            now = time.monotonic()
            if now >= next_look:
                interrupt()
                if _has_ended(pid):
                    return ""
                if found := _over(pid, command, time_limit, now, disk):
                    return found
                next_look = time_limit.next_look(now, TICK)
            for key, _ in selector.select(max(0.0, next_look - now)):
                if key.data is None:  # it ended; what it left in the pipes is read once all is dead
                    return ""
                if not key.data.read():
                    selector.unregister(key.fileobj)


@contextlib.contextmanager
def _exit_event(pid: int) -> Iterator[int | None]:
    """A descriptor that becomes readable when the process ends, where the system has one."""
    try:
        event = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
    except OSError:  # an old kernel, or a seccomp filter around us
        event = None
    try:
        yield event
    finally:
        if event is not None:
            os.close(event)


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _over(pid: int, command: Command, time_limit: WaitingLimit, now: float, disk: DiskMeter) -> Exceeded:
    if _ending.is_set():
        raise KeyboardInterrupt
    if command.ending is not None and command.ending.is_set():
        return "asked"
    limits = command.limits
    pids = [pid, *descendants(pid, limits.processes)]
    if time_limit.is_over(now, lambda: pids):
        return "time"
    if len(pids) > limits.processes + 1:
        return "processes"
    used = usage(pids)
    if used.tasks > limits.processes:
        return "processes"
    if used.memory_bytes > limits.memory_bytes and proportional_memory(pids) > limits.memory_bytes:
        return "memory"
    return "disk" if disk.exceeded(lambda: pids) else ""


def _drain(streams: Sequence[_Stream]) -> None:
    """Reads what the dead left in their pipes; a survivor that keeps one open does not hold us."""
    until = time.monotonic() + DRAIN_SECONDS
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream.pipe, selectors.EVENT_READ, stream)
        while selector.get_map() and time.monotonic() < until:
            for key, _ in selector.select(until - time.monotonic()):
                if not key.data.read():
                    selector.unregister(key.fileobj)
