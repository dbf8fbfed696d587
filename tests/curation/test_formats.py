"""Rows of GSO's and SWE-Perf's datasets, and the scripts in them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from sample_change import BUILDS, CHANGE, NODES, REPOSITORY, VERDICT, WORKLOADS, measured
from simulated_timings import STAMP

from perfquarry.curation.assembly import ChangeTexts, assemble
from perfquarry.curation.evidence import decide
from perfquarry.curation.formats import GSO_SCHEMA, SWEPERF_SCHEMA, export, gso_row, script, sweperf_row
from perfquarry.curation.settings import SelectSettings
from perfquarry.curation.stability import delta_grid, keep_inliers
from perfquarry.data.errors import InputError
from perfquarry.data.records import Task
from perfquarry.data.records.task import TaskWorkload
from perfquarry.data.schema import from_table
from tests.six_functions import REST

GSO_TEXT = """
instance_id repo base_commit opt_commit api prob_script tests hints_text setup_commands install_commands
created_at gt_commit_message gt_diff arch instance_image_tag
"""
GSO = GSO_TEXT.split()
SWEPERF_TEXT = """
repo instance_id patch test_patch base_commit head_commit created_at version duration_changes efficiency_test
patch_functions problem_statement_oracle test_functions problem_statement_realistic human_performance
"""
SWEPERF = SWEPERF_TEXT.split()


def task(*timings) -> Task:
    rows = [row for part in timings for row in part]
    texts = ChangeTexts(patch="diff --git a/x b/x\n", test_patch="diff --git a/t b/t\n", version="1.2")
    evidence = decide(rows, SelectSettings(), STAMP)
    return assemble(CHANGE, VERDICT, BUILDS, WORKLOADS, evidence, rows, texts, REPOSITORY, SelectSettings(), STAMP)


@pytest.fixture(scope="module")
def accepted() -> Task:
    return task(measured(0, 1.5, 1.4), measured(1, 2.5, 2.4))


def test_gso_has_its_fifteen_columns(accepted: Task):
    row = gso_row(accepted)
    assert list(row) == GSO == GSO_SCHEMA.names
    assert row["instance_id"] == "owner__sample-0123456789"
    assert row["opt_commit"] == CHANGE.head_sha
    assert row["created_at"] == "2020-01-02 03:04:05"
    assert row["gt_diff"] == "diff --git a/x b/x\ndiff --git a/t b/t\n"
    assert row["api"] == "pkg.frobnicate"
    assert len(row["tests"]) == 2
    assert row["prob_script"] == row["tests"][0]
    shown = min(accepted.workloads, key=lambda workload: workload.workload_id)
    assert shown.code in row["prob_script"]
    for text in row["tests"]:
        compile(text, "test.py", "exec")


def test_the_test_a_solver_sees_is_visible_and_not_chosen_by_its_speedup(accepted: Task):
    """GSO shows the test with the largest speedup."""
    script_of = dict(zip(NODES, "ab", strict=True))

    def shown(hidden: str, fast: str) -> str:
        workloads = [
            one.model_copy(
                update={
                    "source": "generated",
                    "code": script_of[one.code],
                    "role": "hidden" if one.code == hidden else "visible",
                    "speedup": 9.0 if one.code == fast else 1.1,
                }
            )
            for one in accepted.workloads
        ]
        row = gso_row(accepted.model_copy(update={"workloads": workloads}))
        assert sorted(text[0] for text in row["tests"]) == ["a", "b"] and row["tests"][0] == row["prob_script"]
        return row["prob_script"][0]

    for fast in NODES:
        assert shown(NODES[0], fast) == "b"
        assert shown(NODES[1], fast) == "a"
    assert shown("neither", NODES[0]) == shown("neither", NODES[1])


def test_sweperf_has_its_fifteen_columns(accepted: Task):
    row = sweperf_row(accepted)
    assert list(row) == SWEPERF == SWEPERF_SCHEMA.names
    assert row["efficiency_test"] == NODES
    assert json.loads(row["patch_functions"]) == {"pkg/old.py": ["Frob.run"]}
    assert json.loads(row["test_functions"])["pkg/old.py"][0] == "frobnicate"


def test_sweperfs_own_evaluation_finds_our_human_performance(accepted: Task):
    """The authors' check pools the elements of duration_changes, filters and averages δ over the tests."""
    row = sweperf_row(accepted)
    changes = json.loads(row["duration_changes"])
    gains = []
    for test in row["efficiency_test"]:
        base = np.array([change[test]["base"] for change in changes]).ravel()
        head = np.array([change[test]["head"] for change in changes]).ravel()
        gains.append(delta_grid(keep_inliers(base), keep_inliers(head)))
    assert row["human_performance"] == pytest.approx(np.mean(gains), abs=0.002)


def test_exports_hold_the_kept_tasks_only(accepted: Task, tmp_path: Path):
    rejected = task(measured(0, 1.0))
    for name, columns in (("gso", GSO), ("sweperf", SWEPERF)):
        path = tmp_path / "new" / f"{name}.parquet"
        assert export([accepted, rejected], path, name) == 1
        table = pq.read_table(path)
        assert (table.num_rows, table.column_names) == (1, columns)
    assert export([accepted, rejected], tmp_path / "native.parquet") == 1
    assert list(from_table(Task, pq.read_table(tmp_path / "native.parquet"))) == [accepted]
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == [
        "gso.parquet",
        "native.parquet",
        "sweperf.parquet",
    ]


def test_an_empty_export_still_has_its_columns(tmp_path: Path):
    assert export([], tmp_path / "x.parquet", "gso") == 0
    assert pq.read_table(tmp_path / "x.parquet").column_names == GSO


def test_a_place_that_cannot_be_written(accepted: Task, tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        export([accepted], tmp_path / "file" / "x.parquet")
    with pytest.raises(InputError, match="cannot write"):
        export([accepted], tmp_path)


def unit_test(node: str) -> str:
    figures = dict.fromkeys(
        ("base_seconds", "head_seconds", "speedup", "low", "high", "delta", "p_value", "q_value"), 1.0
    )
    return script(TaskWorkload(workload_id="w", source="unit-test", code=node, **figures))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "sleeper.py").write_text("import time\ndef nap(s):\n    time.sleep(s)\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (tmp_path / "test_it.py").write_text(
        "import os, time, unittest, pytest\n"
        "from sleeper import nap\n"
        "@pytest.fixture\ndef slow():\n    time.sleep(1.5)\n"
        "@pytest.mark.parametrize('what', [__file__, '$b {c} \\'\"\\\\ é\\n'])\n"
        "def test_nap(slow, what):\n    nap(0.02)\n"
        "class TestCase(unittest.TestCase):\n    def test_nap(self):\n        nap(0.02)\n"
        "def test_broken():\n    assert 'FIXED' in os.environ\n"
    )
    return tmp_path


def run(checkout: Path, node: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (checkout / "gso_test.py").write_text(unit_test(node), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "gso_test.py", "times.txt", "--file_prefix", "p", *options],
        cwd=checkout,
        env={"PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
    )


def collected(checkout: Path) -> list[str]:
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "addopts=", "-p", "no:cacheprovider"],
        cwd=checkout,
        env={"PYTHONPATH": "src"},
        capture_output=True,
        text=True,
    )
    return [line for line in found.stdout.splitlines() if "::test_nap" in line]


def test_the_script_times_the_call_of_a_test_and_not_its_fixtures(checkout: Path):
    nodes = [node.replace(str(checkout), "<tree>") for node in collected(checkout)]
    assert len(nodes) == 3 and "test_it.py::test_nap[<tree>/test_it.py]" in nodes
    for node in nodes:
        reference = run(checkout, node, "--reference")
        assert reference.returncode == 0, reference.stderr
    again = run(checkout, nodes[-1], "--eqcheck")
    assert again.returncode == 0, again.stderr
    lines = (checkout / "times.txt").read_text().splitlines()
    assert len(lines) == 4
    for line in lines:
        name, _, seconds = line.partition(": ")
        assert name == "Execution time"
        assert 0.02 <= float(seconds.removesuffix("s")) < 1.5


def test_the_script_fails_where_the_test_fails_or_is_missing(checkout: Path):
    assert run(checkout, "test_it.py::test_broken", FIXED="1").returncode == 0
    for node in ("test_it.py::test_broken", "test_it.py::test_none"):
        broken = run(checkout, node)
        assert broken.returncode != 0
        assert "did not pass" in broken.stderr
    assert len((checkout / "times.txt").read_text().splitlines()) == 1


def test_other_results_are_not_equivalent(checkout: Path):
    node = "test_it.py::test_broken"
    assert run(checkout, node, "--reference", FIXED="1").returncode == 0
    stored = checkout / "p_result.json"
    stored.write_text(stored.read_text().replace("passed", "skipped"))
    assert "AssertionError" in run(checkout, node, "--eqcheck", FIXED="1").stderr


SCRIPT = f"""
import sleeper

def setup():
    return 0.02

def experiment(data):
    sleeper.nap(data)
    return {{"slept": data}}
{REST}
if __name__ == "__main__":
    if run_test() > 0:
        raise SystemExit("its own main, which knows no options")
"""


def scripted(number: int, speedup: float) -> TaskWorkload:
    return TaskWorkload(
        workload_id=f"w{number}", source="generated", code=f"# {number}\n{SCRIPT}",
        speedup=speedup, calls=["pkg/x.py::f"],
        **dict.fromkeys(("base_seconds", "head_seconds", "low", "high", "delta", "p_value", "q_value"), 1.0),
    )  # fmt: skip


def test_a_script_runs_as_gso_runs_its_tests(checkout: Path):
    (checkout / "gso_test.py").write_text(script(scripted(1, 2.0)), encoding="utf-8")
    for option in ("--reference", "--eqcheck"):
        done = subprocess.run(
            [sys.executable, "gso_test.py", "times.txt", "--file_prefix", "p", option],
            cwd=checkout,
            env={"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": "src"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    assert json.loads((checkout / "p_result.json").read_text()) == {"slept": 0.02}
    for line in (checkout / "times.txt").read_text().splitlines():
        assert 0.02 <= float(line.removeprefix("Execution time: ").removesuffix("s")) < 1.0


def test_scripts_are_gsos_tests_and_unit_tests_are_sweperfs(accepted: Task):
    scripts = [scripted(number, speedup) for number, speedup in enumerate((9.0, 1.5, 3.0))]
    mixed = accepted.model_copy(update={"workloads": [*accepted.workloads, *scripts], "delta": 0.9})
    row = gso_row(mixed)
    assert [text.partition("\n")[0] for text in row["tests"]] == ["# 0", "# 1", "# 2"]
    hidden = [one.model_copy(update={"role": "hidden"}) if one.code.startswith("# 0") else one for one in scripts]
    row = gso_row(mixed.model_copy(update={"workloads": [*accepted.workloads, *hidden]}))
    assert [text.partition("\n")[0] for text in row["tests"]] == ["# 1", "# 2", "# 0"]
    assert row["prob_script"] == row["tests"][0]
    assert sweperf_row(mixed) == sweperf_row(accepted)


def test_a_task_without_unit_tests_is_no_row_of_sweperf(accepted: Task, tmp_path: Path):
    only = accepted.model_copy(update={"workloads": [scripted(1, 2.0)]})
    assert export([accepted, only], tmp_path / "a.parquet", "sweperf") == 1
    assert export([accepted, only], tmp_path / "b.parquet", "gso") == 2
