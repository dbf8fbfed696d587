"""The machine a timing is taken on: its facts, its load, the core to use, and the lock that one timing holds."""

from __future__ import annotations

import contextlib
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import psutil

from perfquarry.data.children import answer_of
from perfquarry.data.errors import MachineBusy
from perfquarry.data.files import locked
from perfquarry.data.records import Machine, content_id

LOCK_NAME = "perfquarry-measurement.lock"
WAITING_NAME = "perfquarry-waits.lock"
"""Whoever waits for a core holds it together with all others who do."""
POLL_SECONDS = 0.1
OBSERVE_SECONDS = 0.2
"""How long cores are watched to find a quiet one."""
BUSY = ("user", "nice", "system", "irq", "softirq", "steal")
"""Fields of the processor times that are not idle; guests are inside 'user'. Stolen time disturbs like any other."""


def machine_facts(sandbox: str) -> Machine:
    """Facts of this machine, and the name of the sandbox its timings are taken in.

    `machine_id` is a hash: neither the machine's name nor its system id can be read from it.
    """
    cpu, memory = _cpu_model(), psutil.virtual_memory().total
    cores, identity = psutil.cpu_count() or 1, _text("/etc/machine-id") or platform.node()
    return Machine(
        machine_id=content_id("machine", identity, platform.system(), platform.machine(), cpu, cores, memory),
        system=platform.system(),
        kernel=platform.release(),
        cpu=cpu,
        cores=cores,
        memory_bytes=memory,
        governor=_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clock_resolution=time.get_clock_info("perf_counter").resolution,
        sandbox=sandbox,
    )


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8").strip() or None
    except (OSError, ValueError):
        return None


def _cpu_model() -> str:
    for line in (_text("/proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    if platform.system() == "Darwin":
        return answer_of(["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]).strip() or platform.machine()
    return platform.processor() or platform.machine()


@dataclass
class LoadMeter:
    """Processor use of others between its making and `foreign`, on one core or, with None, on all together."""

    core: int | None = None
    _begin: float = field(default_factory=time.monotonic)
    _busy: float = field(init=False)
    _own: float = field(default_factory=time.process_time)

    def __post_init__(self) -> None:
        self._busy = _busy_seconds(self.core)

    def foreign(self, commands_seconds: float) -> float:
        """CPU seconds per second used by others than us and our commands, stolen time included.

        On a core, this process counts as one of the others: there it disturbs as much as they do.
        """
        elapsed = time.monotonic() - self._begin
        own = commands_seconds + (time.process_time() - self._own if self.core is None else 0.0)
        return max(0.0, _busy_seconds(self.core) - self._busy - own) / max(elapsed, 1e-9)


def _busy_seconds(core: int | None) -> float:
    times = psutil.cpu_times() if core is None else psutil.cpu_times(percpu=True)[core]
    return float(sum(getattr(times, name, 0.0) for name in BUSY))


def cores_of_process() -> int:
    """Number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def by_idleness(seconds: float = OBSERVE_SECONDS) -> list[int | None]:
    """The cores this process may use, watched for that long, the least busy first; [None] where none can be pinned.

    Among equals the one with the highest number comes first: the others serve most interrupts.
    """
    if not hasattr(os, "sched_getaffinity"):
        return [None]
    percent = psutil.cpu_percent(interval=seconds, percpu=True)

    def load(core: int) -> int:
        return round(percent[core] / 10) if core < len(percent) else 0

    allowed: list[int] = sorted(os.sched_getaffinity(0))
    allowed.sort(key=lambda core: (load(core), -core))
    return [*allowed]


def lock_folder() -> Path:
    """One folder for all users of the machine: the first that everybody may write to, wherever TMPDIR points."""
    folders = [Path("/run/lock"), Path("/var/tmp"), Path("/tmp")]  # noqa: S108
    return next((one for one in folders if one.is_dir() and one.stat().st_mode & 0o002), folders[-1])


@contextlib.contextmanager
def measurement_lock(
    timeout: float | None = None, *, on_wait: Callable[[float], None] = lambda waited: None, folder: Path | None = None
) -> Iterator[int | None]:
    """Holds a core for a timing, the least busy one that is free. The kernel frees it when its holder ends, however.

    One timing runs on a core at a time; with turns, timings on several cores do not disturb each other
    (docs/benchmarks.md).

    Args:
        timeout: seconds to wait at most; None waits for ever.
        on_wait: called with the seconds waited so far, first when all cores are found taken, then every poll.
        folder: of the lock files, for tests.

    Yields:
        The core; None where processes cannot be pinned.

    Raises:
        MachineBusy: other timings held all cores for longer than `timeout`.
    """
    folder = folder or lock_folder()
    begin = time.monotonic()
    with contextlib.ExitStack() as stack, contextlib.ExitStack() as leaving:
        waits = 0
        cores = by_idleness()
        descriptors: dict[int | None, int] = {}
        for core in cores:
            name = LOCK_NAME if core is None else f"{core}-{LOCK_NAME}"
            descriptors[core] = _open_shared(folder / name)
            stack.callback(os.close, descriptors[core])  # frees the lock, too
        while (taken := next((core for core in cores if locked(descriptors[core], wait=False)), _NONE)) is _NONE:
            waited = time.monotonic() - begin
            if timeout is not None and waited >= timeout:
                raise MachineBusy(
                    f"other timings have held every core (locks in {folder}) for {waited:.0f} s; "
                    "wait for them or end them, then run again"
                )
            on_wait(waited)
            if not waits:
                waits = _open_shared(folder / WAITING_NAME)
                leaving.callback(os.close, waits)
            locked(waits, shared=True, wait=False)
            time.sleep(POLL_SECONDS)
        leaving.close()
        yield cast("int | None", taken)


def core_is_awaited(folder: Path | None = None) -> bool:
    """Whether anybody on this machine waits for a core, in this process or another.

    Args:
        folder: of the lock files, for tests.
    """
    descriptor = _open_shared((folder or lock_folder()) / WAITING_NAME)
    try:
        return not locked(descriptor, wait=False)
    finally:
        os.close(descriptor)


_NONE = object()


def _open_shared(path: Path) -> int:
    """Opens the lock file of whichever user made it.

    Reading is enough for flock. An existing file is opened without O_CREAT, which kernels
    refuse for another user's file in a folder like /tmp (fs.protected_regular).
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444))
            path.chmod(0o444)  # whatever the umask
        return os.open(path, flags)
