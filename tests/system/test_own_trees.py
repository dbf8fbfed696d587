"""Tests that write into their tree: found by the search, and run in copies by all that runs the change later."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from perfquarry.curation.evaluation.report import read_grades
from perfquarry.curation.in_force import newest_tasks
from perfquarry.data.records import Build, Reason, Task, Timing, Workload
from perfquarry.data.schema import to_table
from perfquarry.flows import stages
from perfquarry.flows.pipeline import run_stages
from perfquarry.harness.settings import MeasureSettings
from perfquarry.harness.trees import tree_copies
from perfquarry.testgen.case import Case
from tests.outside_tmp import outside_tmp
from tests.system.cheats.gradings import AS_USERS, corpus, export_task, open_folder, why_expected
from tests.system.test_again import Repository

WRITES = """\
    from work import total
    def test_total():
        with open(__file__ + ".out", "w") as file:
            file.write("here")
        assert total(range(20000)) == 199990000
"""
CALLS_AND_WRITES = """\
    import pytest
    from work import total
    @pytest.mark.parametrize("end", [10, 100, 1000, 10000, 20000])
    def test_total(end):
        assert total(range(end)) == end * (end - 1) // 2
        open(__file__ + ".out", "w").close()
    def test_read():
        assert total([1]) == 1
"""
HIDES_WHY_IT_FAILS = """\
    from work import total
    def written():
        try:
            open(__file__ + ".out", "w").close()
        except OSError:
            return False
        return True
    def test_total():
        assert total(range(2000)) == 1999000
        assert written()
"""
FEW = MeasureSettings(max_pairs=6, aa_every=6, warmups=1, turn_seconds=0.02, most_turns=24)
BREAKS = """\
--- a/work/__init__.py
+++ b/work/__init__.py
@@ -1,2 +1,2 @@
-def total(values):
+def totals(values):
     result = 0
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed: all trees can be written")
def test_tests_that_write_into_their_tree_make_a_task_that_can_be_graded(tmp_path: Path, forked: list[str]) -> None:
    made = Repository(tmp_path, tests=WRITES, measure=FEW)
    run = made.run
    run_stages(run, ["mine", "judge", "build", "generate", "measure", "select"])
    kept = [row for row in run.store.records(Workload, run.name) if row.status == "kept"]
    assert [row.code for row in kept] == ["tests/test_work.py::test_total"]
    assert all(row.writable_tree for row in run.store.records(Build, run.name))
    assert {row.outcome for row in run.store.records(Timing, run.name)} == {"passed"}
    assert not list(made.home.rglob("test_work.py.out")), "copies end with their processes"
    (task,) = newest_tasks(run.store, run.name)
    assert (task.status, task.writable_tree) == ("kept", True)

    tasks, predictions, report = (tmp_path / name for name in ("tasks.parquet", "predictions.jsonl", "report"))
    pq.write_table(to_table([task.model_copy(update={"url": ""})], Task), tasks)
    predictions.write_text(
        json.dumps({"instance_id": task.task_id, "model_name_or_path": "breaks", "model_patch": BREAKS})
    )
    with tempfile.TemporaryDirectory(dir=outside_tmp(), prefix=".pq-home-") as home:
        words = ["evaluate", str(predictions), "--dataset", str(tasks), "--source", str(made.path)]
        done = subprocess.run(
            [*forked, *words, "--to", str(report), "--home", home], capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    (grade,) = read_grades(report)
    assert (grade.reason, grade.applied) == ("tests_fail", True), grade.why  # the base's passes: else nothing is known


def test_a_few_tests_that_only_read_do_not_keep_the_others_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied, gather = list[bool](), stages.gather

    def noting(case: Case, *sources: Any) -> list[Workload]:
        copied.append(case.base.writable_tree)
        return gather(case, *sources)

    monkeypatch.setattr(stages, "gather", noting)
    made = Repository(tmp_path, tests=CALLS_AND_WRITES)
    made.change("Speed up total() once more: faster, performance", "def total(values):\n    return sum([*values])\n")
    run_stages(made.run, ["mine", "judge", "build", "generate"])
    by_change: dict[str, set[str]] = {}
    for row in made.run.store.records(Workload, made.run.name):
        if row.status == "kept":
            by_change.setdefault(row.change_id, set()).add(row.code)
    wanted = {f"tests/test_work.py::test_{name}" for name in ("total[10]", "total[20000]", "read")}
    assert len(by_change) == 2 and all(wanted <= codes for codes in by_change.values())
    assert all(row.writable_tree for row in made.run.store.records(Build, made.run.name))
    assert copied == [False, True, True], "the second change begins with copies"


def test_tests_that_do_not_say_why_they_fail_are_tried_in_copies(tmp_path: Path) -> None:
    made = Repository(tmp_path, tests=HIDES_WHY_IT_FAILS)
    run_stages(made.run, ["mine", "judge", "build", "generate"])
    assert [row.code for row in made.run.store.records(Workload, made.run.name) if row.status == "kept"]
    assert all(row.writable_tree for row in made.run.store.records(Build, made.run.name))


def test_large_trees_are_not_copied_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_copies, "OWN_TREE_BYTES", 100)
    made = Repository(tmp_path, tests=WRITES)
    run_stages(made.run, ["mine", "judge", "build", "generate"])
    assert Reason.NEEDS_TREE in {row.reason for row in made.run.store.records(Workload, made.run.name)}
    assert not any(row.writable_tree for row in made.run.store.records(Build, made.run.name))


@pytest.mark.skipif(not AS_USERS, reason="sides are users of their own only where root grades")
def test_each_user_writes_into_a_tree_of_its_own() -> None:
    with open_folder() as place, open_folder() as graded:
        (cheat,) = [one for one in corpus() if one.stem == "other_type"]  # needs no timing
        done = export_task(place, writes=True).grade(cheat.read_text(), graded)
        assert (done.code, done.reward) == (0, 0), done
        assert why_expected(cheat).search(done.why), done
        assert not done.facts.get("not_timed"), "base and expert's side pass"
        assert not list(graded.rglob("*.out"))
