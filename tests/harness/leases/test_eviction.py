"""Room in a home, with real processes that use things, make things and get killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from filelock import FileLock

from perfquarry.data.errors import InputError
from perfquarry.data.home import Home
from perfquarry.data.records import Record
from perfquarry.harness.building.build_folders import Sources, locked_build_folder
from perfquarry.harness.leases import eviction as resources
from perfquarry.harness.leases.eviction import DEFAULT_BUDGET, Room, disk_budget, make_room
from perfquarry.harness.leases.leases import is_leased, lease, leases_held, unleased
from perfquarry.harness.leases.shared_folders import make_shared

MIB = 1024**2
ROOT = Path(__file__).parents[3]
PRELUDE = """
import sys, time
from pathlib import Path
sys.path.insert(0, "tests/harness/leases")
from perfquarry.data.home import Home
from perfquarry.harness.leases.shared_folders import make_shared
from perfquarry.harness.leases.leases import leases_held, lease
from test_eviction import Made, make
home = Home(Path(sys.argv[1]))
def ready():
    print("ready", flush=True)
    time.sleep(300)
"""


class Made(Record):
    path: Path


def make(home: Home, name: str, size: int = MIB, before: Callable[[], None] = lambda: None) -> Path:
    """An environment as far as the home is concerned."""

    def fill(place: Path) -> Made:
        (place / "file").write_bytes(os.urandom(size))
        before()
        return Made(path=place)

    lock = home.locks / f"environment-{name}.lock"
    made, _ = make_shared(home.environments / name, lock, Made, fill, lambda one: one.path.is_dir())
    assert isinstance(made, Made)
    return made.path


def used_at(home: Home, name: str, seconds: float) -> None:
    os.utime(home.locks / f"environment-{name}.use", (seconds, seconds))


def names(room: Room) -> list[str]:
    return [thing.path.name for thing in room.removed]


@contextmanager
def process(home: Home, code: str) -> Iterator[subprocess.Popen[str]]:
    """A Python process that says when it is ready; killed with -9 at the end."""
    argv = [sys.executable, "-c", PRELUDE + code, str(home.root)]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout
            assert child.stdout.readline() == "ready\n"
            yield child
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_what_was_used_longest_ago_goes_first(home: Home) -> None:
    for age, name in enumerate(("a", "b", "c")):
        make(home, name)
        used_at(home, name, 1e9 - age)
    make(home, "c")  # used again
    home.tables.mkdir()
    (home.tables / "part.parquet").write_bytes(os.urandom(3 * MIB))

    planned = make_room(home, 2 * MIB + MIB // 2, dry_run=True)
    assert names(planned) == ["b"] and (home.environments / "b").exists()
    room = make_room(home, 2 * MIB + MIB // 2)
    assert room == planned
    assert room.before - room.after == room.freed >= MIB
    assert {path.name for path in home.environments.iterdir()} == {"a", "c"}
    assert names(make_room(home, 2 * MIB + MIB // 2)) == []
    assert names(make_room(home, 0)) == ["a", "c"]
    assert (home.tables / "part.parquet").exists()
    assert not list(home.trash.iterdir())


def test_evicted_things_are_made_again(home: Home) -> None:
    first = make(home, "a")
    make_room(home, 0)
    again = make(home, "a")
    assert again != first and again.is_dir() and not first.exists()


def test_what_a_process_uses_stays_until_it_is_killed(home: Home) -> None:
    make(home, "idle")
    with process(home, "with leases_held() as held: make(home, 'busy')\nready()"):
        room = make_room(home, 0)
        assert names(room) == ["idle"]
        assert [thing.path.name for thing in room.in_use] == ["busy"]
        assert (home.environments / "busy" / "made.json").exists()
    assert names(make_room(home, 0)) == ["busy"]


def test_half_made_things_go_when_their_maker_is_dead(home: Home) -> None:
    with process(home, "make(home, 'half', before=ready)"):
        assert names(make_room(home, 0)) == []
        assert len(list((home.environments / "half").iterdir())) == 1
    room = make_room(home)
    assert names(room) == ["half"] and room.removed[0].kind == "leftover" and room.freed >= MIB
    assert not (home.environments / "half").exists()


def test_partial_trees_go_when_their_maker_is_dead(home: Home) -> None:
    code = """
from perfquarry.harness.trees.checkouts import Checkouts
def half(place):
    place.mkdir()
    (place / "file").write_text("half")
    ready()
Checkouts(home, Path("nowhere"), "lib")._whole("a" * 40, half)
"""
    with process(home, code):
        assert names(make_room(home)) == []
    assert len(names(make_room(home))) == 1
    assert not list((home.trees / "lib").iterdir())


def test_unfinished_work_that_nobody_goes_on_with_goes(home: Home) -> None:
    home.unfinished.mkdir(parents=True)
    timings = [home.unfinished / f"{name}.jsonl" for name in ("old", "new")]
    searches = [home.searches / name for name in ("old", "new")]
    for path in (*timings, *(folder / "report.json" for folder in searches)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n[]")
    long_ago = time.time() - 31 * 86400
    for old, _ in (timings, searches):
        os.utime(old, (long_ago, long_ago))
    make_room(home, 2**40)
    assert [path.exists() for path in (*timings, *searches)] == [False, True, False, True]


def test_scratch_folders_go_when_their_process_is_dead(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a grading that was killed, the packed patch of the expert was left for ever."""
    code = """
from perfquarry.harness.leases.leases import scratch_folder
with scratch_folder(home.scratch, "evaluate") as folder:
    (folder / "gold.tar.gz").write_text("x")
    ready()
"""
    with process(home, code):
        monkeypatch.setattr(resources, "UNLOCKED_SECONDS", -1.0)
        assert names(make_room(home)) == []
    monkeypatch.undo()
    assert names(make_room(home)) == []  # too young
    monkeypatch.setattr(resources, "UNLOCKED_SECONDS", -1.0)
    (left,) = names(make_room(home))
    assert left.startswith("evaluate-") and not list(home.scratch.iterdir())


def test_partial_clones_go_with_their_process(home: Home) -> None:
    half = home.repositories / f".lib.git.{uuid.uuid4().hex}"
    half.mkdir(parents=True)
    (home.repositories / "lib.git").mkdir()
    with FileLock(home.clone_lock("lib")):
        assert names(make_room(home)) == []
    assert names(make_room(home)) == [half.name]
    assert not half.exists()


def test_an_eviction_that_was_killed_is_finished_by_the_next(home: Home) -> None:
    (home.trash / "abc").mkdir(parents=True)
    (home.trash / "abc" / "file").write_bytes(b"x" * 4096)
    room = make_room(home)
    assert names(room) == ["abc"] and room.freed == 4096 and not list(home.trash.iterdir())


def test_a_build_folder_goes_unless_a_build_holds_it(home: Home) -> None:
    folder = home.compiled / "lib" / "build-0"
    (folder / "tree").mkdir(parents=True)
    (folder / "tree" / "file.o").write_bytes(bytes(MIB))
    with locked_build_folder([folder], Sources(tree=home.root, key="", name="tree", files={})) as place:
        room = make_room(home, 0)
        assert names(room) == [] and [thing.path for thing in room.in_use] == [folder]
    room = make_room(home, 0)
    assert names(room) == ["build-0"] and room.freed >= MIB and not folder.exists()
    assert Path(place.lock.lock_file).exists()  # builds may be waiting for it


def test_eviction_and_use_at_the_same_time(home: Home) -> None:
    """Whoever asks gets a whole thing that stays while it is used, however often it is evicted."""
    stop = threading.Event()
    wrong: list[str] = []

    def ask() -> None:
        while not stop.is_set():
            with leases_held():
                place = make(home, "a", 100)
                if len((place / "file").read_bytes()) != 100 or not (place.parent / "made.json").exists():
                    wrong.append(str(place))
            time.sleep(0.002)  # else it may always be in use by one of them

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    evicted, until = 0, time.monotonic() + 60
    while evicted < 20 and time.monotonic() < until:
        evicted += len(make_room(home, 0).removed)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert evicted >= 20


def test_a_scope_within_another_is_part_of_it(tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner.use", tmp_path / "outer.use"
    with leases_held() as held:
        lease(outer)
        with leases_held():
            lease(inner)
        assert is_leased(inner)
    assert is_leased(inner) and is_leased(outer)
    del held
    assert not is_leased(inner) and not is_leased(outer)
    with unleased(inner) as free:
        assert free
    with pytest.raises(RuntimeError, match="leases_held"):
        lease(inner)


def test_the_budget(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERFQUARRY_DISK_BUDGET", raising=False)
    free = psutil.disk_usage(str(home.root.parent)).free
    assert 0 < disk_budget(home, 0) <= min(DEFAULT_BUDGET, free)
    monkeypatch.setenv("PERFQUARRY_DISK_BUDGET", "3GiB")
    assert disk_budget(home, 0) == 3 * 1024**3
    assert disk_budget(home, 0, 7) == 7
    monkeypatch.setenv("PERFQUARRY_DISK_BUDGET", "much")
    with pytest.raises(InputError, match="PERFQUARRY_DISK_BUDGET 'much' is no size"):
        disk_budget(home, 0)


ENSURE = """
from perfquarry.harness.environments import environment as environments
from datetime import UTC, datetime
from perfquarry.harness.environments.interpreters import choose, find_interpreters
from perfquarry.harness.sandbox import choose_sandbox
when, real = datetime(2024, 2, 10, tzinfo=UTC), environments._make
def counted(*arguments):
    with open(home.root / "made", "a") as file:
        file.write("x")
    return real(*arguments)
environments._make = counted
python = choose(when, None, find_interpreters())
print("ready", flush=True)
sys.stdin.readline()
made = environments.Environments(home, choose_sandbox()).ensure(python, ["iniconfig"], when, timeout=200)
print(made.python, flush=True)
"""


def test_two_processes_make_an_environment_once(home: Home) -> None:
    home.root.mkdir()
    argv = [sys.executable, "-c", PRELUDE + ENSURE, str(home.root)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    children = [subprocess.Popen(argv, cwd=ROOT, text=True, **pipes) for _ in range(2)]  # type: ignore[call-overload]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    pythons = {child.communicate(timeout=200)[0] for child in children}
    assert len(pythons) == 1 and Path(pythons.pop().strip()).exists()
    assert (home.root / "made").read_text() == "x"
