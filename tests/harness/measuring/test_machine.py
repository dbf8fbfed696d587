"""Facts, load, cores and the lock of the machine, with real processes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from perfquarry.data.errors import InfrastructureError, MachineBusy
from perfquarry.harness.measuring.machine import (
    LOCK_NAME,
    LoadMeter,
    by_idleness,
    core_is_awaited,
    lock_folder,
    machine_facts,
    measurement_lock,
)

ROOT = Path(__file__).parents[3]
HOLD = """
    import sys, time
    from pathlib import Path
    from perfquarry.harness.measuring.machine import measurement_lock
    with measurement_lock(folder=Path(sys.argv[1])) as core:
        print(core, flush=True)
        time.sleep(600)"""
CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [None]
several = pytest.mark.skipif(len(CORES) < 2, reason="this machine has one core")


@pytest.fixture
def one_core() -> Iterator[int | None]:
    """This process may use one core only: there is one lock."""
    if CORES == [None]:
        yield None
        return
    try:
        os.sched_setaffinity(0, CORES[-1:])
        yield CORES[-1]
    finally:
        os.sched_setaffinity(0, CORES)


@pytest.fixture
def holder(tmp_path: Path, one_core: int | None) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds a core by the locks in `tmp_path`."""
    argv = [sys.executable, "-c", textwrap.dedent(HOLD), str(tmp_path)]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == f"{one_core}\n"
        yield process
        process.kill()


def test_facts_name_the_machine_and_not_its_owner() -> None:
    facts = machine_facts("bubblewrap")
    assert facts == machine_facts("bubblewrap")
    assert facts.cores == psutil.cpu_count() and facts.memory_bytes == psutil.virtual_memory().total
    assert 0 < facts.clock_resolution <= 1e-6 and facts.cpu and facts.sandbox == "bubblewrap"
    assert facts.machine_id == machine_facts("process").machine_id
    assert os.uname().nodename not in facts.model_dump_json()


def test_a_free_core_is_taken_at_once_and_again(tmp_path: Path, one_core: int | None) -> None:
    waits: list[float] = []
    for _ in range(2):
        with measurement_lock(0, on_wait=waits.append, folder=tmp_path) as core:
            assert core == one_core
    assert waits == []


@several
def test_each_core_is_given_once(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        given = [stack.enter_context(measurement_lock(0, folder=tmp_path)) for _ in CORES]
        assert sorted(given, key=str) == sorted(CORES, key=str)
        with pytest.raises(MachineBusy), measurement_lock(0, folder=tmp_path):
            raise AssertionError("a core was given twice")
    with measurement_lock(0, folder=tmp_path) as core:
        assert core in CORES


@several
def test_the_least_busy_core_is_given(tmp_path: Path, busy_core: int) -> None:
    for _ in range(5):  # others may keep the other core as busy for a while
        with measurement_lock(0, folder=tmp_path) as core:
            if core != busy_core:
                return
        busy = psutil.cpu_percent(interval=1.0, percpu=True)
    assert min(busy) > 80, "the busy core was given five times"
    pytest.skip("all cores are busy with something else: which one is least busy cannot be seen")


def test_the_locks_of_a_machine_are_shared_by_all_users() -> None:
    assert lock_folder().stat().st_mode & 0o002 and Path.home() not in lock_folder().parents


def test_waiting_is_reported_and_ends_with_an_error(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    waits: list[float] = []
    with (
        pytest.raises(MachineBusy, match="other timings") as caught,
        measurement_lock(2.5, on_wait=waits.append, folder=tmp_path),
    ):
        raise AssertionError("the lock was given twice")
    assert waits and waits == sorted(waits) and max(waits) < 2.5
    assert isinstance(caught.value, InfrastructureError) and isinstance(caught.value, TimeoutError)


def test_it_is_seen_that_somebody_waits(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    assert not core_is_awaited(tmp_path)
    seen: list[bool] = []

    def look(waited: float) -> None:
        seen.append(core_is_awaited(tmp_path))
        if len(seen) == 4:
            holder.kill()

    with measurement_lock(60, on_wait=look, folder=tmp_path):
        assert seen[:4] == [False, True, True, True], "it begins to wait after the first look"
        assert not core_is_awaited(tmp_path)
    with measurement_lock(0, folder=tmp_path):
        assert not core_is_awaited(tmp_path), "one that is held is not waited for"


def test_the_lock_dies_with_its_holder(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    waits: list[float] = []

    def kill(waited: float) -> None:
        waits.append(waited)
        holder.kill()

    with measurement_lock(60, on_wait=kill, folder=tmp_path):
        assert holder.wait() == -9
    assert waits


def test_the_lock_is_not_inherited_by_commands(tmp_path: Path, one_core: int | None) -> None:
    with measurement_lock(0, folder=tmp_path):
        child = subprocess.Popen(["/bin/sleep", "600"])
    try:
        with measurement_lock(0, folder=tmp_path):
            pass
    finally:
        child.kill()
        child.wait()


def test_the_lock_is_freed_by_an_exception(tmp_path: Path, one_core: int | None) -> None:
    with pytest.raises(ZeroDivisionError), measurement_lock(0, folder=tmp_path):
        raise ZeroDivisionError
    with measurement_lock(0, folder=tmp_path):
        pass


def lock_of(folder: Path, core: int | None) -> Path:
    return folder / (LOCK_NAME if core is None else f"{core}-{LOCK_NAME}")


def test_a_read_only_file_of_another_user_can_be_locked(tmp_path: Path, one_core: int | None) -> None:
    lock = lock_of(tmp_path, one_core)
    lock.touch(0o444)
    with measurement_lock(0, folder=tmp_path):
        pass
    assert lock.stat().st_mode & 0o777 == 0o444


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path: Path, one_core: int | None) -> None:
    lock_of(tmp_path, one_core).symlink_to(tmp_path / "victim")
    with pytest.raises(OSError), measurement_lock(0, folder=tmp_path):
        pass
    assert not (tmp_path / "victim").exists()


BURN = "import time\nuntil = time.process_time() + 1.0\nwhile time.process_time() < until: pass"


def test_load_of_others_is_seen_and_ours_is_not_counted() -> None:
    meter = LoadMeter()
    begin = time.monotonic()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    seconds = time.monotonic() - begin
    # at least the burner's second; declared as our own command's, it is taken off
    assert meter.foreign(0.0) * seconds > 0.8
    assert (meter.foreign(0.0) - meter.foreign(1.0)) * seconds > 0.6


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system cannot pin processes")
def test_the_load_of_a_core_is_its_part_of_the_whole() -> None:
    used = max(os.sched_getaffinity(0))
    whole, cores = LoadMeter(), [LoadMeter(core) for core in range(psutil.cpu_count() or 1)]
    begin = time.monotonic()
    subprocess.run([sys.executable, "-c", f"import os\nos.sched_setaffinity(0, [{used}])\n{BURN}"], check=True)
    seconds = time.monotonic() - begin
    parts = [core.foreign(0.0) * seconds for core in cores]
    assert parts[used] > 0.8
    assert sum(parts) == pytest.approx(whole.foreign(0.0) * seconds, abs=0.3)


def test_cores_are_those_we_may_use() -> None:
    assert sorted(by_idleness(0.05), key=str) == sorted(CORES, key=str)


def test_cores_stay_within_our_affinity(one_core: int | None) -> None:
    assert by_idleness(0.02) == [one_core]
