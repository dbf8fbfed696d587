"""The folder of a release: how it is replaced, and read where another version of perfquarry wrote it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from release_parts import candidate, manifest, repository, sample_task, timings_of
from simulated_timings import STAMP

from perfquarry.curation.counts import row_of
from perfquarry.curation.release import folder as files
from perfquarry.curation.release.manifest import Manifest
from perfquarry.curation.release.selection import as_task, select
from perfquarry.curation.release.sources import tree_of
from perfquarry.curation.release.writing import write_release
from perfquarry.data.errors import InputError
from perfquarry.data.records import Count, ReleasedTiming, SeedCount, Task

MakeVersion = Callable[..., Path]


@pytest.fixture
def make_version(tmp_path: Path) -> MakeVersion:
    clone, base, _, patch = repository(tmp_path / "clone")
    task = candidate(sample_task(base, patch), tree_of(clone, base), build_version="1.2.dev0")
    selection = select([task], {}, {})

    def made(version: str, to: str = "out", previous: Path | None = None) -> Path:
        write_release(tmp_path / to, manifest(version), selection, timings_of(selection), {"sample": clone}, previous)
        return tmp_path / to

    return made


FAULT = """
import sys
from pathlib import Path
from perfquarry.curation.release.folder import writing

to, event, name = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
faults = {"os.rename": (1, KeyboardInterrupt), "os.remove": (0, PermissionError)}

def fault(happening, arguments):
    if happening == event and event in faults and Path(arguments[faults[event][0]]).name == name:
        raise faults.pop(event)[1]

sys.addaudithook(fault)
with writing(to) as partial:
    (partial / "new").write_text("")
"""


@pytest.mark.parametrize(
    ("event", "name", "whole"),
    [
        pytest.param("os.rename", "out", "old", id="ctrl-c before the new one is in place"),
        pytest.param("os.remove", "old", "new", id="a file that Python cannot delete"),
    ],
)
def test_one_release_is_whole_whatever_happens(tmp_path: Path, event: str, name: str, whole: str) -> None:
    to = tmp_path / "out"
    with files.writing(to) as partial:
        (partial / "old").write_text("")
    subprocess.run([sys.executable, "-c", FAULT, str(to), event, name], capture_output=True, timeout=60, check=False)
    assert files.files_of(to) == [files.SUMS, whole]
    assert len(list(tmp_path.iterdir())) == 1


def test_of_a_symbolic_link_what_it_names_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for name in ("old", "new"):
        with files.writing(tmp_path / "link") as partial:
            (partial / name).write_text("")
    assert (tmp_path / "link").is_symlink() and files.files_of(tmp_path / "real") == [files.SUMS, "new"]
    assert len(list(tmp_path.iterdir())) == 2


def test_the_version_that_is_replaced_is_the_previous_one(make_version: MakeVersion, tmp_path: Path) -> None:
    make_version("0.1.0")
    first = make_version("0.1.0")
    assert (first / "CHANGELOG.md").read_text().count("##") == 1 and Manifest.read(first).previous == ""
    second = make_version("0.2.0")
    text = (second / "CHANGELOG.md").read_text()
    assert "Against 0.1.0: 0 added, 0 removed, 0 changed." in text and "First version: 1 tasks." in text
    assert Manifest.read(second).previous == "0.1.0"
    with pytest.raises(InputError, match=r"name the folder of 0\.1\.0 with --previous"):
        make_version("0.2.0")
    make_version("0.2.0", previous=make_version("0.1.0", "first"))
    assert (second / "CHANGELOG.md").read_text() == text


def test_a_release_of_another_version_of_perfquarry_is_read_and_compared(make_version: MakeVersion) -> None:
    """Older: figures and a part of the recipe are not there. Newer: columns and parts nobody knows yet."""
    other = make_version("0.1.0", "other")
    file = files.parquet_of(other, "default")
    (row,) = pq.read_table(file, partitioning=None).to_pylist()
    for name in ("overall_speedup", "overall_low", "overall_high", "timed_workloads", "margin", "instructions_ratio"):
        del row[name]
    del row["recipe"]["build_version"]
    for part in (row, row["recipe"], *row["workloads"]):
        part["colour"] = "blue"
    pq.write_table(pa.Table.from_pylist([row]), file)
    (task,) = files.read_tasks(other)
    assert (task.overall_speedup, task.timed_workloads, task.recipe.build_version) == (None, 0, "")
    text = (make_version("0.2.0", previous=other) / "CHANGELOG.md").read_text()
    assert "Against 0.1.0: 0 added, 0 removed, 0 changed." in text
    row["title"] = "Other words"
    row["recipe"]["python"] = "3.10.1"
    pq.write_table(pa.Table.from_pylist([row]), file)
    text = (make_version("0.3.0", previous=other) / "CHANGELOG.md").read_text()
    assert "other texts or facts (title, recipe)" in text


def test_sessions_sides_and_rounds_are_described_as_they_are(make_version: MakeVersion) -> None:
    release = make_version("0.1.0")
    fields = ReleasedTiming.model_fields
    assert "Odd: it selects; the even one after it confirms." in str(fields["session"].description)
    assert "unless `aa`" in str(fields["side"].description)
    card = (release / "README.md").read_text()
    assert "the last pair decides" in card and "in a second, whose figures are published" not in card


def counted(task: Task, ratio: float) -> list[Count]:
    seeds = [SeedCount(seed=1, ir_base=round(1_000_000 * ratio), ir_head=1_000_000)]
    return [row_of(STAMP, one.workload_id, task.change_id, seeds) for one in task.workloads]


def test_counts_stand_in_the_rows_and_in_the_card(tmp_path: Path) -> None:
    clone, base, _, patch = repository(tmp_path / "clone")
    task, tree = sample_task(base, patch), tree_of(clone, base)
    found = {}
    for ratio in (None, 1.0, 2.0):
        counts = counted(task, ratio) if ratio else []
        selection = select([candidate(task, tree, counts=counts)], {}, {})
        write_release(tmp_path / "out", manifest(f"0.{ratio}"), selection, timings_of(selection), {"sample": clone})
        [row] = files.read_tasks(tmp_path / "out")
        found[ratio] = row.instructions_ratio, {one.count_label for one in row.workloads}
        assert [one.count.ratio if one.count else None for one in row.workloads] == [ratio] * len(row.workloads)
        assert row.margin == task.margin and as_task(row).workloads == task.workloads
    assert found[None] == (None, {None}) and found[1.0] == (1.0, {"not_fewer"})
    assert found[2.0] == (pytest.approx(2.0), {"agree"})
    card = (tmp_path / "out" / "README.md").read_text()
    assert "100 % (1 of 1) | 100 % (1 of 1) |" in card
    assert "workloads[].count_label" in (tmp_path / "out" / "SCHEMA.md").read_text()
    assert (
        "instructions counted (count\\_label, instructions\\_ratio)" in (tmp_path / "out" / "CHANGELOG.md").read_text()
    )
