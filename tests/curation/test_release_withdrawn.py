"""Tasks that are taken back or replaced, and what is known of a task folder: each is bound to one content."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from release_parts import SampleFolders, candidate, failed, files_at, manifest, repository, sample_task, timings_of

from perfquarry.curation.release import folder as files
from perfquarry.curation.release import task_folders
from perfquarry.curation.release.check import GoldRun
from perfquarry.curation.release.selection import Selection, select
from perfquarry.curation.release.sources import tree_of
from perfquarry.curation.release.writing import Asked, record, write_release
from perfquarry.data.errors import InputError
from perfquarry.data.records import ReleasedFolder, Withdrawn
from tests.registry_server import registry_server

WHY = "its tests | look at the clock"
OTHER = "owner__sample-9999999999"


class Line:
    """Versions of a dataset of two tasks."""

    def __init__(self, place: Path, folders: SampleFolders, clone: Path, selection: Selection) -> None:
        self.place, self.folders, self.clone, self.selection = place, folders, clone, selection
        self.previous: Path | None = None

    def make(self, version: str, **asked: object) -> Path:
        to = self.place / version
        made, ask = timings_of(self.selection), Asked.model_validate(asked)
        clones, before = {"sample": self.clone}, self.previous
        write_release(to, manifest(version), self.selection, made, clones, before, [], self.folders, ask)
        self.previous = to
        return to


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    clone, base, _, patch = repository(tmp_path / "clone")
    task = sample_task(base, patch)
    tasks = [task, task.model_copy(update={"task_id": OTHER})]
    selection = select([candidate(one, tree_of(clone, base)) for one in tasks], {}, {})
    (tmp_path / "registry").mkdir()
    with registry_server(tmp_path / "registry") as registry:
        yield Line(tmp_path, SampleFolders(files_at(clone, base, tmp_path / "tree"), registry), clone, selection)


def rows(folder: Path) -> dict[str, ReleasedFolder]:
    return {row.task_id: row for row in files.read(folder, ReleasedFolder, "tasks")}


def test_a_task_is_taken_back_with_its_reason_and_stays_out(line: Line) -> None:
    first = line.make("0.1.0")
    assert set(rows(first)) == {OTHER, "owner__sample-0123456789"}
    second = line.make("0.2.0", withdrawn={OTHER: WHY})
    third = line.make("0.3.0")
    for folder in (second, third):
        assert set(rows(folder)) == {"owner__sample-0123456789"}
        assert {path.name for path in (folder / "tasks").iterdir()} == set(rows(folder))
        [row] = files.read(folder, Withdrawn, "withdrawn")
        assert (row.task_id, row.version, row.action, row.reason) == (OTHER, "0.2.0", "withdrawn", WHY)
        assert row.sha256 == rows(first)[OTHER].sha256
        for page in ("README.md", "CHANGELOG.md"):
            assert "its tests \\| look at the clock" in (folder / page).read_text()
        assert "withdrawn" not in failed(folder)
    assert "### Withdrawn" in (third / "CHANGELOG.md").read_text().partition("## 0.2.0")[2]


def test_a_task_comes_again_only_when_somebody_says_why(line: Line) -> None:
    line.make("0.1.0")
    line.make("0.2.0", withdrawn={OTHER: WHY})
    again = line.make("0.3.0", replaced={OTHER: "with tests that do not"})
    assert OTHER in rows(again)
    assert [row.action for row in files.read(again, Withdrawn, "withdrawn")] == ["withdrawn", "replaced"]
    assert "### Replaced" in (again / "CHANGELOG.md").read_text()
    assert OTHER in rows(line.make("0.4.0"))


def test_only_what_was_published_can_be_taken_back(line: Line) -> None:
    with pytest.raises(InputError, match="not in the version before"):
        line.make("0.1.0", withdrawn={OTHER: WHY})
    line.make("0.1.0")
    with pytest.raises(InputError, match="nothing-1 is not in the version before"):
        line.make("0.2.0", withdrawn={"nothing-1": WHY})


def run(row: ReleasedFolder, **facts: object) -> GoldRun:
    seen = {"task_id": row.task_id, "sha256": row.sha256, "gold": True, "gold_detail": "", "null": True}
    return GoldRun.model_validate({**seen, "null_detail": "", **facts})


def test_what_was_seen_is_noted_for_that_content_alone(line: Line) -> None:
    folder = line.make("0.1.0")
    good, bad = rows(folder).values()
    assert {good.status, bad.status} == {"unverified"}
    assert record(folder, [run(good), run(bad, gold=False)]) == {
        good.task_id: "verified",
        bad.task_id: "needs_repair",
    }
    assert failed(folder) == {}
    assert "| verified | 1 |" in (folder / "README.md").read_text()
    file = task_folders.write_registry(folder, "https://example.org/tasks", "a" * 40)
    assert good.path in file.read_text() and bad.path not in file.read_text()
    assert failed(folder) == {}, "registry.json is no part of the checksums"
    stale = run(good, sha256="0" * 64, null=False)
    assert record(folder, [stale])[good.task_id] == "verified", "of another content"


def test_a_status_goes_with_the_content_into_the_next_version(line: Line) -> None:
    folder = line.make("0.1.0")
    record(folder, [run(row) for row in rows(folder).values()])
    changed = line.selection.tasks[0].model_copy(update={"problem_realistic": "Make it fast, please."})
    line.selection.tasks[0] = changed
    line.selection.rows[0] = line.selection.rows[0].model_copy(update={"problem_realistic": changed.problem_realistic})
    found = {name: row.status for name, row in rows(line.make("0.2.0")).items()}
    other = ({*found} - {changed.task_id}).pop()
    assert found == {changed.task_id: "unverified", other: "verified"}


def test_the_hash_is_what_its_command_prints(line: Line, tmp_path: Path) -> None:
    folder = line.make("0.1.0") / "tasks" / OTHER
    (folder / "tests" / "a name with 'signs' ü").write_text("x")
    command = task_folders.HASH.replace("PATH", f"'{folder}'")
    said = subprocess.run(["bash", "-c", command], check=True, capture_output=True, text=True).stdout
    assert said.split()[0] == task_folders.hash_of(folder)
    (folder / "odd\\name").touch()
    with pytest.raises(InputError, match="may not"):
        task_folders.hash_of(folder)


def test_what_was_written_over_is_not_pinned(line: Line) -> None:
    folder = line.make("0.1.0")
    (folder / "tasks" / OTHER / "instruction.md").write_text("other")
    with pytest.raises(InputError, match="not as it was written"):
        task_folders.write_registry(folder, "https://example.org/tasks", "a" * 40)
