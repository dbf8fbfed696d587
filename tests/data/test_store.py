"""The table store: what is appended is read back, once, by whatever way it is asked for."""

from __future__ import annotations

import subprocess
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import pyarrow.compute as pc
import pytest
from pyarrow import fs

from perfquarry.data.errors import InputError, StoreError
from perfquarry.data.records import Build, Change, FileChange, Stamp, Timing, Verdict, Workload
from perfquarry.data.store import TableStore
from perfquarry.data.store.places import place_of
from tests.real_servers import BUCKET

ROOT = Path(__file__).resolve().parents[2]
STAMP = Stamp(repo="demo", stage_version="1", config_hash="aa")
THEN = datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def change(number: int, *, stamp: Stamp = STAMP, **values: object) -> Change:
    given: dict[str, object] = {
        "change_id": f"c{number}",
        "kind": "commit",
        "base_sha": "a" * 40,
        "head_sha": f"{number:040x}",
        "authored_at": THEN,
        "merged_at": THEN,
        "title": f"change {number}",
        "message": "",
        "files": [FileChange(path="a.py", status="modified", added=1, deleted=2, role="source", language="python")],
        "patch": "x" * 100,
        **stamp.fields(),
        **values,
    }
    return Change.model_validate(given)


def verdict(number: int, *, stamp: Stamp = STAMP, **values: object) -> Verdict:
    given = {
        "change_id": f"c{number}",
        "judge": "heuristic",
        "is_performance": "yes",
        "probability": 0.5,
        **stamp.fields(),
        **values,
    }
    return Verdict.model_validate(given)


@pytest.fixture(params=["local", "s3"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where the tables lie: every store passes the same tests."""
    if request.param == "local":
        return tmp_path / "tables"
    request.getfixturevalue("s3")
    return f"s3://{BUCKET}/{uuid.uuid4().hex}/tables"


@pytest.fixture
def store(root: Path | str) -> TableStore:
    return TableStore(root)


def parts(root: Path | str) -> list[PurePosixPath]:
    filesystem, folder = place_of(root)
    found = filesystem.get_file_info(fs.FileSelector(folder, recursive=True, allow_not_found=True))
    return [PurePosixPath(info.path).relative_to(folder) for info in found if info.type == fs.FileType.File]


def test_rows_come_back_as_they_were_in_the_order_of_their_appending(store: TableStore) -> None:
    rows = [change(number) for number in range(7)]
    assert store.append(rows[:3]) == 3
    assert store.append(rows[3:]) == 4
    assert list(store.records(Change, "demo")) == rows
    assert store.scan(Change, "demo", columns=["title"])["title"].to_pylist() == [row.title for row in rows]
    assert store.count(Change, "demo") == 7


def test_an_empty_store_holds_nothing(store: TableStore) -> None:
    assert store.append([]) == 0
    assert list(store.records(Change, "demo")) == []
    assert store.scan(Change, "demo").num_rows == 0
    assert store.scan(Change, "demo").schema.names == list(Change.model_fields)
    assert store.get(Change, "demo", {"change_id": "c1"}) is None
    assert store.missing(Change, Verdict, "demo") == []
    assert store.repositories(Change) == []
    assert store.compact(Change, "demo") == 0


def test_rows_of_several_tables_and_repositories_are_sorted_into_their_folders(store: TableStore) -> None:
    other = STAMP.model_copy(update={"repo": "other"})
    store.append([change(1), verdict(1), change(2, stamp=other)])
    assert [row.change_id for row in store.records(Change, "demo")] == ["c1"]
    assert [row.change_id for row in store.records(Change, "other")] == ["c2"]
    assert store.count(Verdict, "demo") == 1
    assert store.repositories(Change) == ["demo", "other"]
    assert store.repositories(Verdict) == ["demo"]


@pytest.mark.parametrize("repo", ["..", ".", "a/b", "a=b", "ü \n%2F", "https://x.org/a?b#c", "x" * 200])
def test_odd_names_stay_inside_the_root(store: TableStore, root: Path | str, repo: str) -> None:
    row = change(1, stamp=STAMP.model_copy(update={"repo": repo}))
    store.append([row])
    assert list(store.records(Change, repo)) == [row]
    assert store.repositories(Change) == [repo]
    assert [str(path.parent.parent) for path in parts(root)] == ["changes"]


def test_a_name_no_folder_can_have_is_refused(store: TableStore) -> None:
    with pytest.raises(StoreError, match="folder"):
        store.append([change(1, stamp=STAMP.model_copy(update={"repo": "x" * 201}))])


def test_of_rows_with_one_key_the_newest_counts(store: TableStore) -> None:
    store.append([verdict(1, why="old"), verdict(2), verdict(1, why="older in the same part, but later")])
    store.append([verdict(1, why="new"), verdict(1, judge="other"), verdict(1, stamp=_configured("bb"), why="b")])
    rows = [(row.change_id, row.judge, row.config_hash, row.why) for row in store.records(Verdict, "demo")]
    assert rows == [
        ("c2", "heuristic", "aa", ""),
        ("c1", "heuristic", "aa", "new"),
        ("c1", "other", "aa", ""),
        ("c1", "heuristic", "bb", "b"),
    ]
    assert store.count(Verdict, "demo") == 4
    assert store.scan(Verdict, "demo", columns=["why"])["why"].to_pylist() == ["", "new", "", "b"]
    # a condition that only the superseded row meets does not bring it back
    assert store.count(Verdict, "demo", where=pc.field("why") == "old") == 0


def _configured(config: str) -> Stamp:
    return STAMP.model_copy(update={"config_hash": config})


def test_rows_are_chosen_by_configuration_version_and_condition(store: TableStore) -> None:
    newer = STAMP.model_copy(update={"stage_version": "2"})
    store.append([change(number) for number in range(4)])
    store.append([change(number, stamp=_configured("bb"), status="rejected", reason="empty_diff") for number in (1, 2)])
    store.append([change(9, stamp=newer)])
    assert store.count(Change, "demo", config_hash="bb") == 2
    assert store.count(Change, "demo", stage_version="2") == 1
    kept = pc.field("status") == "kept"
    assert store.count(Change, "demo", where=kept, config_hash="aa") == 5
    long = pc.field("patch_bytes") == 0
    table = store.scan(Change, "demo", columns=["title"], where=kept & long & (pc.field("change_id") == "c3"))
    assert table.to_pydict() == {"title": ["change 3"]}
    with pytest.raises(InputError, match="no column colour"):
        store.scan(Change, "demo", columns=["colour"])
    with pytest.raises(InputError, match="does not fit"):
        store.count(Change, "demo", where=pc.field("title") > 3)


def test_parts_are_counted_and_compacted(store: TableStore) -> None:
    for number in range(3):
        store.append([change(number), change(9, title=f"written {number}")])
    assert (store.parts(Change, "demo"), store.parts(Verdict, "demo")) == (3, 0)
    assert store.compact(Change, "demo") == 3
    assert store.parts(Change, "demo") == 1
    assert [row.title for row in store.records(Change, "demo")] == ["change 0", "change 1", "change 2", "written 2"]


def test_one_row_is_found_by_its_key(store: TableStore) -> None:
    store.append([change(1), change(2, title="first")])
    store.append([change(2, title="second")])
    found = store.get(Change, "demo", {"change_id": "c2", "config_hash": "aa"})
    assert found is not None
    assert found.title == "second"
    assert store.get(Change, "demo", {"change_id": "c3"}) is None
    with pytest.raises(InputError):
        store.get(Change, "demo", {})


def test_what_is_still_to_do(store: TableStore) -> None:
    store.append([change(3), change(1), change(2, status="rejected", reason="empty_diff"), change(5), change(4)])
    assert store.missing(Change, Verdict, "demo") == ["c3", "c1", "c5", "c4"]
    store.append([verdict(1), verdict(4, status="rejected", reason="unlikely_performance")])
    store.append([verdict(5, stamp=_configured("bb"))])
    assert store.missing(Change, Verdict, "demo") == ["c3"]
    assert store.missing(Change, Verdict, "demo", target={"config_hash": "aa"}) == ["c3", "c5"]
    assert store.missing(Change, Verdict, "demo", source={"config_hash": "zz"}) == []
    named = pc.field("title") != "change 3"
    assert store.missing(Change, Verdict, "demo", target={"config_hash": "aa"}, where=named) == ["c5"]


def test_a_change_goes_on_when_both_sides_are_kept(store: TableStore) -> None:
    def build(number: int, side: str, status: str = "kept") -> Build:
        return Build.model_validate(
            {"build_id": "b", "change_id": f"c{number}", "side": side, "sha": "s", "status": status, **STAMP.fields()}
        )

    store.append([build(1, "base"), build(1, "head"), build(2, "base"), build(2, "head", "rejected"), build(3, "base")])
    assert store.missing(Build, Workload, "demo", at_least=2) == ["c1"]
    assert store.missing(Build, Workload, "demo") == ["c1", "c2", "c3"]


def test_any_file_system_will_do(tmp_path: Path) -> None:
    """The path other than the local one: no locks, no fsync, a move."""
    store = TableStore("inner", fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()))
    store.append([change(1)])
    store.append([change(2)])
    assert store.compact(Change, "demo") == 2
    assert [row.change_id for row in store.records(Change, "demo")] == ["c1", "c2"]
    assert store.repositories(Change) == ["demo"]
    assert len(list((tmp_path / "inner" / "changes" / "repo=demo").iterdir())) == 1
    by_uri = TableStore(f"file://{tmp_path}/inner")
    assert by_uri.count(Change, "demo") == 2


def test_rows_of_nested_records_and_many_key_columns(store: TableStore) -> None:
    machine = {
        "machine_id": "m",
        "system": "Linux",
        "kernel": "6",
        "cpu": "x",
        "cores": 2,
        "memory_bytes": 1 << 40,
        "clock_resolution": 1e-9,
        "sandbox": "process",
    }
    rows = [
        Timing.model_validate(
            {
                **STAMP.fields(),
                "workload_id": f"w{workload}",
                "change_id": "c1",
                "session": session,
                "block": block,
                "position": 0,
                "side": side,
                "aa": aa,
                "samples": [0.1, 0.2],
                "outcome": "passed",
                "hash_seed": 1,
                "machine": machine,
            }
        )
        for workload in range(5)
        for session in (1, 2)
        for block in range(20)
        for side in ("base", "head")
        for aa in (False, True)
    ]
    store.append(rows)
    store.append(rows[::2])
    assert store.count(Timing, "demo") == len(rows)
    found = {row.model_dump_json(): row for row in store.records(Timing, "demo")}
    assert found == {row.model_dump_json(): row for row in rows}


PEAKS = """
import sys
import pyarrow as pa
from perfquarry.data.records import Change
from perfquarry.data.store import TableStore
store = TableStore(sys.argv[1])
for column in ("title", "patch"):
    assert store.scan(Change, "demo", columns=[column]).num_rows == 1000
    print(pa.default_memory_pool().max_memory())
"""


def test_only_the_columns_asked_for_are_read(store: TableStore, root: Path | str) -> None:
    """Reading titles beside 60 MB of patches takes little memory: Arrow's own peak, in a process of its own."""
    store.append([change(number, patch=f"{number:06d}" * 10_000) for number in range(1000)])
    arguments = [sys.executable, "-c", PEAKS, str(root)]
    said = subprocess.run(arguments, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    narrow, wide = map(int, said.split())
    assert narrow < 8_000_000 < 60_000_000 < wide
