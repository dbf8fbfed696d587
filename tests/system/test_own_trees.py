"""Tests that write into their tree: found by the search, and run in copies by all that runs the change later."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from perfquarry.curation.evaluation.report import read_grades
from perfquarry.curation.in_force import newest_tasks
from perfquarry.data.records import Build, Reason, Task, Timing, Workload
from perfquarry.data.schema import to_table
from perfquarry.flows.pipeline import run_stages
from perfquarry.harness.trees import tree_copies
from tests.outside_tmp import outside_tmp
from tests.system.cheats.gradings import AS_USERS, export_task, open_folder
from tests.system.test_again import FASTER, WORK, Repository

WRITES = """\
    from work import total
    def test_total():
        with open(__file__ + ".out", "w") as file:
            file.write("here")
        assert total(range(20000)) == 199990000
"""
QUICK = "[measure]\npairs = 6\nmax_pairs = 12\nturn_seconds = 0.05\nmost_turns = 24\n"


@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed: all trees can be written")
def test_tests_that_write_into_their_tree_make_a_task_that_can_be_graded(tmp_path: Path, forked: list[str]) -> None:
    made = Repository(tmp_path, before=WORK, after=FASTER, tests=WRITES)
    run = made.run
    run_stages(run, ["mine", "judge", "build", "generate", "measure", "select"])
    kept = [row for row in run.store.records(Workload, run.name) if row.status == "kept"]
    assert [row.code for row in kept] == ["tests/test_work.py::test_total"]
    assert all(row.writable_tree for row in run.store.records(Build, run.name))
    assert {row.outcome for row in run.store.records(Timing, run.name)} == {"passed"}
    assert not list(made.home.rglob("test_work.py.out")), "copies end with their processes"
    (task,) = newest_tasks(run.store, run.name)
    assert (task.status, task.writable_tree) == ("kept", True)

    tasks, report, settings = (tmp_path / name for name in ("tasks.parquet", "report", "quick.toml"))
    pq.write_table(to_table([task.model_copy(update={"url": ""})], Task), tasks)
    settings.write_text(QUICK)
    with tempfile.TemporaryDirectory(dir=outside_tmp(), prefix=".pq-home-") as home:
        words = ["evaluate", "expert", "--dataset", str(tasks), "--source", str(made.path), "--to", str(report)]
        words += ["--settings", str(settings), "--home", home]
        done = subprocess.run([*forked, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (grade,) = read_grades(report)
    assert (grade.status, grade.reason) == ("kept", None), grade.why


def test_large_trees_are_not_copied_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_copies, "OWN_TREE_BYTES", 100)
    made = Repository(tmp_path, before=WORK, after=FASTER, tests=WRITES)
    run_stages(made.run, ["mine", "judge", "build", "generate"])
    assert Reason.NEEDS_TREE in {row.reason for row in made.run.store.records(Workload, made.run.name)}
    assert not any(row.writable_tree for row in made.run.store.records(Build, made.run.name))


@pytest.mark.skipif(not AS_USERS, reason="sides are users of their own only where root grades")
def test_each_user_writes_into_a_tree_of_its_own() -> None:
    with open_folder() as place, open_folder() as graded:
        exported = export_task(place, writes=True)
        done = exported.grade(exported.expert, graded, most_pairs=6)
        assert (done.code, done.reward) == (0, 1), (done.why, done.facts)
        assert not list(graded.rglob("*.out"))
