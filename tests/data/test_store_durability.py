"""The table store under kills, compactions, damage, races and other versions."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pyarrow.compute as pc
import pytest
from pydantic import Field

from perfquarry.data.errors import SchemaTooNew, StoreError
from perfquarry.data.records import Record, Row
from perfquarry.data.store import MIGRATIONS, TableStore

ROOT = Path(__file__).resolve().parents[2]
COMMON = {"repo": "demo", "stage_version": "1", "config_hash": "aa"}


class Point(Record):
    x: int


class NewPoint(Record):
    x: int
    y: int = 7


class Thing(Row):
    TABLE: ClassVar[str] = "things"
    KEY: ClassVar[tuple[str, ...]] = ("thing_id",)

    thing_id: str
    payload: str = ""
    points: list[Point] = Field(default_factory=list)


class NewThing(Row):
    """The same table later: a column more, a nested field more; no new version."""

    TABLE: ClassVar[str] = "things"
    KEY: ClassVar[tuple[str, ...]] = ("thing_id",)

    thing_id: str
    payload: str = ""
    points: list[NewPoint] = Field(default_factory=list)
    weight: float = 0.5
    corner: NewPoint = NewPoint(x=1)


class Thing2(Row):
    """The same table two versions later: the payload became a number, under another name."""

    TABLE: ClassVar[str] = "things"
    KEY: ClassVar[tuple[str, ...]] = ("thing_id",)
    SCHEMA_VERSION: ClassVar[int] = 3

    thing_id: str
    size: int
    points: list[Point] = Field(default_factory=list)


def thing(number: int, payload: str = "", model: type[Row] = Thing, **values: Any) -> Any:
    return model.model_validate({**COMMON, "thing_id": f"t{number}", "payload": payload, **values})


def ids(store: TableStore, model: type[Any] = Thing) -> list[str]:
    return [row.thing_id for row in store.records(model, "demo")]


@pytest.fixture
def store(tmp_path: Path) -> TableStore:
    return TableStore(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "things" / "repo=demo"


WRITER = """
import os, sys
sys.path[:0] = [{root!r}, {here!r}]
from perfquarry.data.schema import to_table
from perfquarry.data.store import TableStore
from test_store_durability import thing, Thing

to_table([thing(1)])  # imports pandas, which takes a second

def write(start):
    store = TableStore({tables!r})
    for number in range(start, start + 1_000_000, 3):
        store.append([thing(number + one, "x" * 2000) for one in range(3)])
        os.write(1, b"%d\\n" % number)
        if number % 5 == 0:
            store.compact(Thing, "demo")

for line in sys.stdin:  # a fork is a fresh writer without that second
    if (child := os.fork()) == 0:
        os.write(1, b"%d\\n" % os.getpid())  # before its numbers
        write(int(line))
    os.waitpid(child, 0)
    os.write(1, b"gone\\n")
"""


class Writers:
    """Real processes that append three rows at a time and compact now and then, until they are killed."""

    def __init__(self, tables: Path) -> None:
        code = WRITER.format(root=str(ROOT), here=str(Path(__file__).parent), tables=str(tables))
        self._parent = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            start_new_session=True,
        )

    def start(self, number: int) -> int:
        """Starts one at a number; its process id."""
        assert self._parent.stdin is not None
        self._parent.stdin.write(f"{number}\n")
        return int(self._line())

    def kill(self, child: int) -> list[int]:
        """Kills it; the numbers it said it had appended."""
        os.kill(child, signal.SIGKILL)
        return [int(line) for line in iter(self._line, "gone")]

    def _line(self) -> str:
        assert self._parent.stdout is not None
        return self._parent.stdout.readline().strip()

    def close(self) -> None:
        """Ends it, and the one that a test which failed has left."""
        os.killpg(self._parent.pid, signal.SIGKILL)
        self._parent.communicate()


@pytest.fixture
def writers(tmp_path: Path) -> Iterator[Writers]:
    made = Writers(tmp_path)
    yield made
    made.close()


def test_killed_writers_leave_every_row_once_and_no_half_part(writers: Writers, tmp_path: Path, folder: Path) -> None:
    """40 or more processes that append and compact are killed at random moments."""
    chance = random.Random(20261121)
    store = TableStore(tmp_path)
    known: set[str] = set()
    for run in range(400):
        if run >= 40 and len(known) > 200:
            break
        child = writers.start(run * 10_000_000)
        time.sleep(chance.uniform(0.02, 0.3))
        known.update(f"t{number + one}" for number in writers.kill(child) for one in range(3))
        found = ids(store)
        assert len(found) == len(set(found))
        assert known <= set(found)
        assert len(found) % 3 == 0  # a part is there whole or not at all
        known.update(found)
    assert len(known) > 200
    for file in folder.glob(".*"):
        os.utime(file, (0, 0))
    store.compact(Thing, "demo")
    assert set(ids(store)) == known
    assert [file.name.startswith("part-") for file in folder.iterdir()] == [True]


def test_left_over_temporary_files_are_ignored_and_removed_when_their_writer_is_dead(
    tmp_path: Path, folder: Path
) -> None:
    TableStore(tmp_path).append([thing(1)])
    young, dead, alive = (folder / f".part-{name}.parquet.tmp" for name in ("young", "dead", "alive"))
    for file in (young, dead, alive):
        file.write_bytes(b"half a part")
    for file in (dead, alive):
        os.utime(file, (0, 0))
    with alive.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert ids(TableStore(tmp_path)) == ["t1"]
        assert (young.exists(), dead.exists(), alive.exists()) == (True, False, True)


def test_compaction_keeps_rows_and_order_and_drops_duplicates(store: TableStore, folder: Path) -> None:
    for number in range(6):
        store.append([thing(number), thing(100, str(number))])
    before = list(store.records(Thing, "demo"))
    assert store.compact(Thing, "demo") == 6
    assert list(store.records(Thing, "demo")) == before
    assert len(list(folder.iterdir())) == 1
    assert store.compact(Thing, "demo") == 0
    store.append([thing(3, "newer than the compacted one")])
    found = store.get(Thing, "demo", {"thing_id": "t3"})
    assert found is not None
    assert found.payload == "newer than the compacted one"


def test_replaced_parts_that_a_kill_left_are_ignored_and_removed_later(store: TableStore, folder: Path) -> None:
    store.append([thing(1), thing(2)])
    store.append([thing(2, "new"), thing(3)])
    kept = {file.name: file.read_bytes() for file in folder.iterdir()}
    store.compact(Thing, "demo")
    for name, content in kept.items():  # as if it had been killed before it removed them
        (folder / name).write_bytes(content)
    again = TableStore(store._root)
    assert ids(again) == ["t1", "t2", "t3"]
    again.append([thing(4)])
    assert ids(again) == ["t1", "t2", "t3", "t4"]
    assert again.compact(Thing, "demo") == 4
    assert len(list(folder.iterdir())) == 1
    assert ids(TableStore(store._root)) == ["t1", "t2", "t3", "t4"]


def test_a_row_appended_while_compaction_runs_stays_the_newest(store: TableStore, monkeypatch: Any) -> None:
    """The compaction's part is named after what it replaces, not after when it appeared."""
    from perfquarry.data.store import compaction

    store.append([thing(1, "a")])
    store.append([thing(1, "b")])
    whole = compaction.reading.batches

    def meanwhile(*arguments: Any) -> Iterator[Any]:
        yield from list(whole(*arguments))
        TableStore(store._root).append([thing(1, "appended meanwhile")])

    monkeypatch.setattr(compaction.reading, "batches", meanwhile)
    assert store.compact(Thing, "demo") == 2
    monkeypatch.undo()
    assert [row.payload for row in store.records(Thing, "demo")] == ["appended meanwhile"]


def test_a_reader_goes_on_when_parts_are_compacted_away_under_it(store: TableStore) -> None:
    for number in range(8):
        store.append([thing(number)])
    reader = store.records(Thing, "demo")
    found = [next(reader).thing_id for _ in range(3)]
    other = TableStore(store._root)
    assert other.compact(Thing, "demo") == 8
    other.append([thing(0, "newer than the one that was returned"), thing(8)])
    found += [row.thing_id for row in reader]
    assert found == [f"t{number}" for number in range(9)]


def test_readers_see_every_row_once_while_another_process_appends_and_compacts(
    store: TableStore, writers: Writers
) -> None:
    child = writers.start(0)
    seen = 0
    until = time.monotonic() + 3
    while time.monotonic() < until or seen == 0:
        found = ids(store)
        assert found == [f"t{number}" for number in range(len(found))]
        assert len(found) >= seen
        seen = len(found)
    writers.kill(child)


def test_threads_may_share_a_store(store: TableStore) -> None:
    def work(thread: int) -> None:
        for number in range(10):
            store.append([thing(thread * 100 + number)])
            if number % 4 == 0:
                store.compact(Thing, "demo")
            found = ids(store)
            assert len(found) == len(set(found))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert sorted(ids(store)) == sorted(f"t{thread * 100 + number}" for thread in range(4) for number in range(10))


def test_a_damaged_part_is_named(store: TableStore, folder: Path) -> None:
    store.append([thing(1)])
    (part,) = folder.iterdir()
    whole = part.read_bytes()
    for damage in (b"", b"PAR1", whole[:-9], whole[:40] + b"\xff" * 200 + whole[240:]):
        part.write_bytes(damage)
        with pytest.raises(StoreError, match=part.name):
            ids(TableStore(store._root))
    part.write_bytes(whole)
    assert ids(TableStore(store._root)) == ["t1"]


def test_a_part_of_another_table_is_named(store: TableStore, tmp_path: Path) -> None:
    class Other(Thing):
        TABLE: ClassVar[str] = "others"

    store.append([thing(1)])
    (tmp_path / "things").rename(tmp_path / "others")
    with pytest.raises(StoreError, match="part of the table 'things'"):
        list(TableStore(tmp_path).records(Other, "demo"))


def test_new_columns_with_defaults_are_filled_in_old_parts(store: TableStore) -> None:
    store.append([thing(1, points=[{"x": 4}])])
    store.append([thing(2, model=NewThing, weight=2.0, points=[{"x": 5, "y": 6}])])
    first, second = store.records(NewThing, "demo")
    assert first == thing(1, model=NewThing, points=[{"x": 4, "y": 7}], created_at=first.created_at)
    assert second.points == [NewPoint(x=5, y=6)]
    assert store.scan(NewThing, "demo", columns=["weight", "corner"]).to_pydict() == {
        "weight": [0.5, 2.0],
        "corner": [{"x": 1, "y": 7}] * 2,
    }
    assert store.count(NewThing, "demo", where=pc.field("weight") > 1) == 1
    with pytest.raises(SchemaTooNew, match="corner, weight"):
        store.compact(Thing, "demo")
    assert store.compact(NewThing, "demo") == 2
    assert list(store.records(NewThing, "demo")) == [first, second]


def test_a_newer_version_is_refused_with_what_to_do(store: TableStore) -> None:
    store.append([Thing2(**COMMON, thing_id="t1", size=3)])
    with pytest.raises(SchemaTooNew, match=r"version 3 .* up to 1\. Update perfquarry"):
        ids(store)
    with pytest.raises(SchemaTooNew):
        store.compact(Thing, "demo")


def test_older_versions_are_migrated_step_by_step(store: TableStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.append([thing(number, "x" * number, points=[{"x": number}]) for number in range(5)])
    store.append([Thing2(**COMMON, thing_id="t9", size=90)])
    monkeypatch.setitem(MIGRATIONS, ("things", 1), lambda row: {**row, "length": len(row["payload"])})
    with pytest.raises(StoreError, match="no migration from version 2 of the table things"):
        ids(store, Thing2)
    monkeypatch.setitem(
        MIGRATIONS,
        ("things", 2),
        lambda row: {"size": row["length"]} | {k: v for k, v in row.items() if k not in ("payload", "length")},
    )
    for _ in range(2):  # before and after compaction
        rows = list(store.records(Thing2, "demo"))
        assert [(row.thing_id, row.size) for row in rows] == [*((f"t{n}", n) for n in range(5)), ("t9", 90)]
        assert rows[3].points == [Point(x=3)]
        assert store.scan(Thing2, "demo", columns=["size"], where=pc.field("size") > 3)["size"].to_pylist() == [4, 90]
        store.compact(Thing2, "demo")
    monkeypatch.undo()
    assert store.count(Thing2, "demo") == 6


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "things").write_text("not a folder")
    with pytest.raises(StoreError, match="things"):
        TableStore(tmp_path).append([thing(1)])


def test_readers_may_look_while_the_first_writer_makes_the_folder(store: TableStore, tmp_path: Path) -> None:
    """Pyarrow looks for a folder, and looks again why it was not there: seen to fail once in a run on CI."""
    folders = [tmp_path / "things" / f"repo=r{number}" for number in range(500)]
    reached = [0]

    def make() -> None:
        for number, folder in enumerate(folders):
            while reached[0] < number:
                pass
            folder.mkdir(parents=True)

    writer, interval = threading.Thread(target=make), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        writer.start()
        for number, folder in enumerate(folders):
            reached[0] = number
            while not folder.is_dir():
                assert store.count(Thing, f"r{number}") == 0
        writer.join()
    finally:
        reached[0] = len(folders)
        sys.setswitchinterval(interval)
