"""The command line from outside: what it prints, its JSON, its exit codes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from perfquarry.curation.in_force import newest_findings
from perfquarry.data.home import Home
from perfquarry.data.records import Evidence, Finding, Task
from perfquarry.data.store import TableStore
from perfquarry.harness.doctor import DoctorCheck, examine, verdict
from tests.system.conftest import Curated

Facts = Callable[..., Any]
Program = Callable[..., subprocess.CompletedProcess[str]]


def test_tasks_funnel_and_run_show_the_same(curated: Curated, facts: Facts) -> None:
    home, printed = curated.home, curated.printed
    tasks = facts(home, "tasks", "demo")
    funnel = facts(home, "funnel", "demo")
    assert printed["tasks"] == tasks and printed["funnel"] == funnel
    assert [set(task) for task in tasks] == [
        {"task_id", "base_sha", "head_sha", "speedup", "low", "high", "delta", "overall_speedup", "workloads"}
        | {"intent", "intent_by", "intent_evidence"}
    ]
    task = tasks[0]
    assert task["low"] <= task["speedup"] <= task["high"] and task["delta"] > 0.05
    assert funnel["repository"] == "demo"
    assert [stage["stage"] for stage in funnel["stages"]] == ["mine", "judge", "build", "generate", "measure", "select"]
    for before, after in zip(funnel["stages"], funnel["stages"][1:], strict=False):
        assert after["in"] == before["kept"]
        assert after["in"] == after["kept"] + sum(after["rejected"].values()) + after["pending"]
    assert funnel["stages"][3]["rejected"] == {"no_test_executes_change": 1, "tests_fail_at_head": 1}


def test_workloads_are_shown_by_source(curated: Curated, facts: Facts, perfquarry: Program) -> None:
    home, printed = curated.home, curated.printed
    count, *further = facts(home, "workloads", "demo")
    assert not further, "asked though no test executes the change"
    assert count["source"] == "unit-test" and count["changes"] == 3 and count["kept_changes"] == 1
    assert count["accepted"] == len(printed["tasks"][0]["workloads"]) and count["accepted_changes"] == 1
    assert count["without"] == {"no_test_executes_change": 1}
    assert "no_test_executes_change" in perfquarry(home, "workloads", "demo").stdout


def test_show_explains_a_task(curated: Curated, facts: Facts, perfquarry: Program) -> None:
    home, printed = curated.home, curated.printed
    task_id = printed["tasks"][0]["task_id"]
    shown = facts(home, "show", task_id)
    assert shown["task"]["task_id"] == task_id
    assert shown["task"]["oracle_targets"] and shown["task"]["realistic_targets"]
    text = perfquarry(home, "show", task_id).stdout
    assert "confirmed" in text and "session 2" in text and shown["task"]["oracle_targets"][0] in text


@pytest.mark.slow
def test_a_task_is_screened_by_running_it(curated: Curated, tmp_path: Path, facts: Facts) -> None:
    home, printed = curated.home, curated.printed
    facts(home, "screen", "demo", "--run")
    found = list(TableStore(home / "tables").records(Finding, "demo"))
    ran = [row for row in found if row.check == "screened" and row.subject == "run"]
    assert [row.task_id for row in ran] == [printed["tasks"][0]["task_id"]]
    assert {"call-depth", "mutation-survives", "memo-survives"} & {row.check for row in found}
    facts(home, "screen", "demo", "--run")
    assert list(TableStore(home / "tables").records(Finding, "demo")) == found
    later = tmp_path / "home"
    for folder in ("tables", "repositories"):
        shutil.copytree(home / folder, later / folder)
    store = TableStore(later / "tables")
    for model in (Task, Evidence):
        rows = store.records(model, "demo")
        store.append([row.model_copy(update={"config_hash": "later", "created_at": datetime.now(UTC)}) for row in rows])
    facts(later, "screen", "demo")
    kept = {(row.check, row.subject) for row in newest_findings(store, "demo")}
    assert {(row.check, row.subject) for row in found} == kept, "what was found by running the task is carried along"


@pytest.mark.parametrize(("form", "columns"), [("native", None), ("gso", 15), ("sweperf", 15)])
def test_export_writes_parquet(curated: Curated, tmp_path: Path, facts: Facts, form: str, columns: int | None) -> None:
    home, printed = curated.home, curated.printed
    file = tmp_path / f"{form}.parquet"
    assert facts(home, "export", "demo", "--to", str(file), "--format", form)["rows"] == 1
    table = pq.read_table(file)
    assert table.num_rows == len(printed["tasks"])
    assert columns is None or table.num_columns == columns


def test_stability_of_foreign_timings(tmp_path: Path, perfquarry: Program) -> None:
    vectors = json.loads((Path(__file__).parents[1] / "curation" / "delta_vectors.json").read_text())["cases"][:40]
    file = tmp_path / "timings.json"
    file.write_text(json.dumps({"cases": [{"base": one["base"], "head": one["head"]} for one in vectors]}))
    done = perfquarry(None, "stability", str(file), "--mode", "sweperf", "--json")
    results = json.loads(done.stdout)["results"]
    assert [round(one["delta"], 3) for one in results] == [one["delta_grid"] for one in vectors]
    assert [one["base_kept"] for one in results] == [one["base_kept"] for one in vectors]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("curate", "no-such-repository"), "The registry has"),
        (("curate", "demo", "--no-server", "--changes", "deadbeef"), "no commit"),
        (("curate", "demo", "--no-server", "--judge", "oracle"), "known: heuristic"),
        (("curate", "demo", "--no-server", "--workloads", "unit-test,guesses"), "'guesses': known are unit-test"),
        (("curate", "demo", "--no-server", "--limit", "0"), "limit"),
        (("tasks", "numpy"), "perfquarry curate numpy"),
        (("show", "nothing"), "no task"),
    ],
)
def test_bad_usage_is_one_clear_line_and_exit_code_2(
    tmp_path: Path, perfquarry: Program, arguments: tuple[str, ...], words: str
) -> None:
    done = perfquarry(tmp_path, *arguments, code=2)
    assert words in done.stderr and "Traceback" not in done.stderr


def test_doctor_names_every_check(tmp_path: Path, facts: Facts) -> None:
    checks = {check["name"]: check for check in facts(tmp_path, "doctor")}
    assert {"git", "sandbox", "interpreters", "disk"} <= set(checks)
    assert all(check["ok"] or (check["cost"] and check["remedy"]) for check in checks.values())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ((), "ready"),
        (("load", "docker"), "works, with 2 remarks: load, docker"),
        (("load", "git"), "cannot work: git missing"),
    ],
)
def test_doctor_begins_with_a_verdict(wrong: tuple[str, ...], said: str) -> None:
    names = ("load", "docker", "git", "cores")
    assert verdict([DoctorCheck(name=n, ok=n not in wrong, found="x", needed=n == "git") for n in names]) == said


def test_doctor_breaks_no_word_at_80_columns(tmp_path: Path, forked: list[str]) -> None:
    words = [*forked, "doctor", "--home", str(tmp_path)]
    environment = {**os.environ, "COLUMNS": "80"}
    shown = subprocess.run(words, capture_output=True, text=True, check=True, env=environment).stdout
    assert shown.startswith(("ready\n", "works, with ")) and all(len(line) <= 80 for line in shown.splitlines())
    facts = [check.found for check in examine(Home(tmp_path)) if check.name in ("git", "docker", "interpreters")]
    assert all(word in shown for found in facts for word in found.split())
