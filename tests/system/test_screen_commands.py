"""`perfquarry screen`, `problems` and `statistics` on a home with a task, as a user runs them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from perfquarry.curation.review.database import open_database
from perfquarry.curation.review.decisions import Decisions
from perfquarry.data.records import Change, Finding, Intent, Problem, Revalidation, Stamp, Task
from perfquarry.data.records.revalidation import RevalidatedWorkload
from perfquarry.data.records.task import TaskWorkload
from perfquarry.data.registry import resolve
from perfquarry.data.store import TableStore
from perfquarry.harness.measuring.machine import machine_facts
from perfquarry.miners.history import crawl
from perfquarry.miners.patches import split
from perfquarry.miners.settings import MineSettings

BASE = "def total(items):\n    found = 0\n    for item in items:\n        found += item\n    return found\n"
HEAD = "def total(items):\n    return quick_sum(items)\n\n\ndef quick_sum(items):\n    return sum(items)\n"
TEST = "from pkg import total\n\n\ndef test_total():\n    assert total(range(9)) == 36\n"


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def home(tmp_path: Path) -> tuple[Path, Path]:
    """A repository, and a home with one task of its second commit."""
    repository, store = tmp_path / "sample", TableStore(tmp_path / "home" / "tables")
    (repository / "tests").mkdir(parents=True)
    git(repository, "init", "-q", "-b", "main")
    (repository / "pkg.py").write_text(BASE)
    (repository / "tests/test_pkg.py").write_text(TEST)
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "base")
    (repository / "pkg.py").write_text(HEAD)
    git(repository, "commit", "-qam", "Add up quickly\n\nSigned-off-by: J <jane@company.org>")
    head = git(repository, "rev-parse", "HEAD")
    stamp = Stamp(repo=resolve(str(repository)).name, stage_version="1", config_hash="c")
    changes = list(crawl(repository, stamp, MineSettings()))
    change = next(one for one in changes if one.head_sha == head)
    store.append(changes)
    store.append([_task(change, split(repository, change).patch, stamp)])
    return repository, tmp_path / "home"


def _task(change: Any, patch: str, stamp: Stamp) -> Task:
    workload = TaskWorkload(
        workload_id="w", source="unit-test", code="tests/test_pkg.py::test_total", base_seconds=2e-6, head_seconds=1e-6,
        speedup=2.0, low=1.9, high=2.1, delta=0.4, p_value=0.001, q_value=0.001, calls=["pkg.py::total"],
    )  # fmt: skip
    return Task(
        **stamp.fields(), task_id=f"sample-{change.head_sha[:10]}", change_id=change.change_id, codebase="sample",
        base_sha=change.base_sha, head_sha=change.head_sha, created_at_commit=change.merged_at, title=change.title,
        message=change.message, patch=patch, python="3.11.7", oracle_targets=["pkg.py::total"],
        realistic_targets=["pkg.py::total"], workloads=[workload], speedup=2.0, low=1.9, high=2.1, delta=0.4,
        problem_oracle="Make `total` faster.", problem_realistic="Use quick_sum in `total`.", lines_changed=8,
        files_changed=1,
    )  # fmt: skip


def test_findings_texts_and_statistics(
    home: tuple[Path, Path], facts: Callable[..., Any], perfquarry: Callable[..., Any]
) -> None:
    repository, folder = home
    where = (str(repository),)
    seen = facts(folder, "screen", *where)
    found = {row["check"]: row["severity"] for row in seen["findings"]}
    assert found == {
        "licence": "blocking",
        "e-mail": "warning",
        "too-short": "warning",
        "single-workload": "info",
        "problem-leak": "info",
        "screened": "info",
    }
    (demand,) = seen["demands"]
    assert any("5 ms" in wish for wish in demand["wishes"])
    store, name = TableStore(folder / "tables"), resolve(str(repository)).name
    assert facts(folder, "screen", *where) == seen and store.count(Finding, name) == 6, "nothing is done twice"
    texts = {row["setting"]: row for row in facts(folder, "problems", *where)}
    assert {name: row["status"] for name, row in texts.items()} == {
        "gso": "kept",
        "oracle": "kept",
        "realistic": "rejected",
        "fuzzy": "kept",
    }
    assert texts["realistic"]["leaks"] == ["identifier quick_sum"]
    assert store.count(Problem, name) == 4
    overview = {line["metric"]: line["mean"] for line in facts(folder, "statistics", *where)["overview"]}
    assert overview["lines (non-test)"] == 5 and overview["hunks"] == 1 and overview["tasks with python"] == 1
    shown = perfquarry(folder, "screen", *where).stdout
    assert "1 tasks, 1 blocked; checks made: static" in shown and "jane@" not in shown


@pytest.mark.slow
def test_the_class_of_a_task_is_that_of_the_heuristic_then_of_a_model_then_of_a_curator(
    home: tuple[Path, Path], tmp_path: Path, perfquarry: Callable[..., Any], facts: Callable[..., Any]
) -> None:
    repository, folder = home
    exchange, where = tmp_path / "exchange", (str(repository),)

    def classed() -> tuple[str, str]:
        [row] = facts(folder, "tasks", *where)
        return row["intent"], row["intent_by"]

    [one] = facts(folder, "screen", *where)["intents"]
    assert classed() == (one["intent"], "heuristic")
    store, name = TableStore(folder / "tables"), resolve(str(repository)).name
    assert store.count(Intent, name) == 1
    ask = ("screen", *where, "--llm", f"exchange:{exchange}")
    assert "waiting for 1 of 1 answers" in perfquarry(folder, *ask, code=1).stderr
    said = {"why": "It was made for tidiness.", "evidence": ["return quick_sum(items)"], "intent": "side_effect"}
    asked = answer(exchange, 1, said)
    assert "quick_sum" in asked and "speedup" not in asked
    perfquarry(folder, *ask)
    assert classed() == ("side_effect", f"exchange:{exchange}")
    perfquarry(folder, *ask)
    assert store.count(Intent, name) == 2, "nothing is asked twice"
    decisions = Decisions(open_database(f"sqlite:///{folder}/review/reviews.db"))
    decisions.record(one["task_id"], "ann", "accept", seen=0, intent="behaviour_changed")
    decisions.engine.dispose()
    assert classed() == ("behaviour_changed", "ann")
    assert "behaviour changed (ann)" in perfquarry(folder, "show", one["task_id"]).stdout


def answer(exchange: Path, number: int, value: dict[str, Any]) -> str:
    """Answers the one request of a file of requests, by hand, and returns what was asked."""
    (line,) = (exchange / f"requests-{number:04}.jsonl").read_text().splitlines()
    request = json.loads(line)
    response = {"custom_id": request["custom_id"], "answer": value}
    (exchange / f"responses-{number}.jsonl").write_text(json.dumps(response))
    return json.dumps(request)


@pytest.mark.slow
def test_a_text_about_another_script_is_asked_for_anew(
    home: tuple[Path, Path], tmp_path: Path, perfquarry: Callable[..., Any]
) -> None:
    repository, folder = home
    store, name = TableStore(folder / "tables"), resolve(str(repository)).name
    exchange = tmp_path / "exchange"
    ask = ("problems", str(repository), "--llm", f"exchange:{exchange}")
    (task,) = store.records(Task, name)
    nodes = ["tests/test_pkg.py::test_total", "tests/test_pkg.py::test_another"]
    for number, node in enumerate(nodes, 1):
        workload = task.workloads[0].model_copy(update={"code": node})
        later = {"workloads": [workload], "config_hash": f"c{number}", "created_at": datetime.now(UTC)}
        store.append([task.model_copy(update=later)])
        assert "waiting for 1 of 1 answers" in perfquarry(folder, *ask, code=1).stderr
        asked = answer(
            exchange, number, {"gso": f"Text {number}.", "oracle": "Faster.", "realistic": "Faster.", "fuzzy": ""}
        )
        assert [one in asked for one in nodes] == [one == node for one in nodes]
        assert f"Text {number}." in perfquarry(folder, *ask).stdout
    texts = [row.text for row in store.records(Problem, name) if row.setting == "gso" and row.author != "template"]
    assert [text.partition(".")[0] for text in texts] == ["Text 1", "Text 2"], "nothing is asked for twice"


def test_plans_are_never_printed(home: tuple[Path, Path], tmp_path: Path, perfquarry: Callable[..., Any]) -> None:
    repository, folder = home
    exchange = tmp_path / "exchange"
    ask = ("problems", str(repository), "--llm", f"exchange:{exchange}", "--plans")
    assert "waiting for 1 of 1 answers" in perfquarry(folder, *ask, code=1).stderr
    answer(exchange, 1, {"plan": "To improve performance, we can use quick_sum."})
    shown = perfquarry(folder, *ask).stdout
    assert "1 plans in the table, not shown" in shown and "we can use" not in shown
    (plan,) = [
        row
        for row in TableStore(folder / "tables").records(Problem, resolve(str(repository)).name)
        if row.setting == "plan"
    ]
    assert "quick_sum" in plan.text and plan.status == "kept"
    perfquarry(folder, "export", str(repository), "--to", str(tmp_path / "tasks.parquet"))
    assert b"we can use" not in (tmp_path / "tasks.parquet").read_bytes()


def test_the_texts_of_all_tasks_are_asked_for_at_once(home: tuple[Path, Path], tmp_path: Path, perfquarry: Any) -> None:
    repository, folder = home
    store, name = TableStore(folder / "tables"), resolve(str(repository)).name
    (task,) = store.records(Task, name)
    (change,) = (row for row in store.records(Change, name) if row.change_id == task.change_id)
    other = {"change_id": "0123456789abcdef"}
    store.append([change.model_copy(update=other)])
    workloads = [task.workloads[0].model_copy(update={"code": "tests/test_pkg.py::test_another"})]
    store.append([task.model_copy(update={**other, "task_id": "another", "workloads": workloads})])
    ask = ("problems", str(repository), "--llm", f"exchange:{tmp_path / 'exchange'}")
    assert "waiting for 2 of 2 answers" in perfquarry(folder, *ask, code=1).stderr


def test_a_blocked_task_is_not_written_for_solvers(
    home: tuple[Path, Path], tmp_path: Path, facts: Callable[..., Any], perfquarry: Callable[..., Any]
) -> None:
    repository, folder = home
    facts(folder, "screen", str(repository))
    to = tmp_path / "tasks"
    (to / "earlier").mkdir(parents=True)
    (to / "earlier" / "task.toml").touch()
    written = facts(folder, "export", str(repository), "--format", "harbor", "--to", str(to))
    assert written["tasks"] == [] and written["earlier"] == ["earlier"]
    assert ["screening: licence: " in why for why in written["left_out"].values()] == [True]
    shown = perfquarry(folder, "export", str(repository), "--format", "harbor", "--to", str(to)).stdout
    assert "0 task(s) written" in shown and "left out: sample-" in shown and "remove it" in shown


def test_a_task_that_failed_when_measured_again_is_not_written_for_solvers(
    home: tuple[Path, Path], tmp_path: Path, facts: Callable[..., Any]
) -> None:
    repository, folder = home
    store, name = TableStore(folder / "tables"), resolve(str(repository)).name
    (task,) = store.records(Task, name)
    lost = RevalidatedWorkload(workload_id="w", node="tests/test_pkg.py::test_total", held=False, published=2.0)
    row = Revalidation(
        repo=name, stage_version="1", config_hash="c", status="rejected", reason="no_gain", task_id=task.task_id,
        change_id=task.change_id, run_id="r", python="3.11.7", machine=machine_facts("bubblewrap"), seconds=1.0,
        workloads=[lost],
    )  # fmt: skip
    store.append([row])
    accepted = {"task_id": [task.task_id], "reviewer": ["eve"], "decision": ["accept"], "at": [datetime.now(UTC)]}
    pq.write_table(pa.table(accepted), tmp_path / "reviews.parquet")
    where = ("--to", str(tmp_path / "tasks"), "--reviews", str(tmp_path / "reviews.parquet"))
    written = facts(folder, "export", str(repository), "--format", "harbor", *where)
    assert ["measured again on" in why for why in written["left_out"].values()] == [True]


def test_what_cannot_be_screened_says_so(tmp_path: Path, perfquarry: Callable[..., Any]) -> None:
    assert "run `perfquarry curate demo` first" in perfquarry(tmp_path, "screen", "demo", code=2).stderr
    assert "--llm" in perfquarry(tmp_path, "problems", "demo", "--plans", code=2).stderr
