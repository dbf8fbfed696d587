"""`perfquarry solve` and `analyse` on a task of the demo: a real agent's process, and answers through exchange."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from perfquarry.curation.in_force import accepted_tasks
from perfquarry.data.home import Home
from perfquarry.data.records import Task
from perfquarry.data.store import TableStore
from perfquarry.flows.server import local_server
from tests.system.conftest import Curated

AGENT = """
import os, pathlib, sys
workspace, instructions = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
assert os.getcwd() == str(workspace) and os.environ["MODEL_KEY"] == "k" and "OTHER" not in os.environ
assert len(instructions.read_text()) > 40
path = next(workspace.rglob("*.py"))
path.write_text(path.read_text() + "# seen\\n")
"""


@pytest.fixture(scope="module")
def task(curated: Curated) -> Task:
    (found,) = accepted_tasks(TableStore(Home(curated.home).tables), "demo")
    return found


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_agents_work_becomes_predictions_and_no_attempt_is_made_twice(
    curated: Curated, task: Task, perfquarry: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, to = tmp_path / "agent.py", tmp_path / "made.jsonl"
    agent.write_text(AGENT)
    monkeypatch.setenv("MODEL_KEY", "k")
    monkeypatch.setenv("OTHER", "o")
    words = ("solve", "--dataset", "demo", "--to", str(to), "--name", "mine", "--env", "MODEL_KEY", "--agent")
    command = f"{sys.executable} {agent} {{workspace}} {{instructions}}"
    perfquarry(curated.home, *words, command)
    (made,) = lines(to)
    assert (made["instance_id"], made["model_name_or_path"], made["note"]) == (task.task_id, "mine", "")
    assert "+# seen" in made["model_patch"]
    perfquarry(curated.home, *words, command, "--attempts", "2")
    assert [row["attempt"] for row in lines(to)] == [1, 2]
    slow = perfquarry(curated.home, *words[:6], "slow", "--minutes", "0.02", "--agent", "echo x > new.txt; sleep 60")
    assert "time" in slow.stderr and "new.txt" in lines(to)[-1]["model_patch"], "what was done in time counts"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Exception ignored in.*Popen")  # the server outlives who started it, by design
def test_attempts_are_task_runs_where_the_user_has_a_prefect_server(
    curated: Curated, task: Task, perfquarry: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = tmp_path / "made.jsonl"
    words = ("solve", "--dataset", "demo", "--to", str(to), "--name", "m", "--attempts", "3", "--jobs", "2", "--agent")
    with local_server(Home(tmp_path / "home")) as server:
        monkeypatch.setenv("PREFECT_API_URL", server.wait())
        monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
        perfquarry(curated.home, *words, "echo x > new.txt")
        (run,) = asked(server.wait(), "flow_runs")
        works = asked(server.wait(), "task_runs")
        assert (run["name"], run["state_type"]) == ("solve-demo", "COMPLETED")
        assert sorted(one["name"] for one in works) == [f"{task.task_id}-{number}" for number in (1, 2, 3)]
        assert {one["state_type"] for one in works} == {"COMPLETED"}
        failed = perfquarry(curated.home, *words[:-2], "1", "--attempts", "4", "--agent", "no-such-program", code=2)
        assert "cannot be run" in failed.stderr and "Traceback" not in failed.stderr
        assert {one["state_type"] for one in asked(server.wait(), "flow_runs")} == {"COMPLETED", "FAILED"}
    assert sorted(row["attempt"] for row in lines(to)) == [1, 2, 3]


def asked(url: str, kind: str) -> list[dict[str, Any]]:
    """Runs of a kind that a Prefect server knows."""
    found: list[dict[str, Any]] = httpx.post(f"{url}/{kind}/filter", json={}, timeout=10, trust_env=False).json()
    return found


def test_a_model_solves_through_exchange_and_its_patches_are_read(
    curated: Curated, task: Task, perfquarry: Callable[..., Any], tmp_path: Path
) -> None:
    """Canned answers, written by hand."""
    to, folder = tmp_path / "made.jsonl", tmp_path / "exchange"
    words = ("solve", "--dataset", "demo", "--to", str(to), "--llm", f"exchange:{folder}", "--name", "m")
    asked = perfquarry(curated.home, *words, code=1)
    assert "Traceback" not in asked.stderr and not to.exists()
    (path,) = [target.partition(":")[0] for target in task.oracle_targets[:1]]
    answer(folder, {"plan": "none", "edits": [{"path": path, "search": "no such line", "replace": ""}]})
    perfquarry(curated.home, *words)
    (made,) = lines(to)
    assert made["model_patch"] == "" and "stands 0 times" in made["note"], "a model's failure, not ours"


def answer(folder: Path, value: dict[str, Any]) -> None:
    """Answers the one request of an exchange folder."""
    (file,) = folder.glob("*requests*.jsonl")
    (request,) = lines(file)
    (folder / "answers").mkdir(exist_ok=True)
    (folder / "answers" / f"{request['custom_id']}.json").write_text(json.dumps(value))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give who solves"),
        (("--llm", "openai:x", "--agent", "true"), "give who solves"),
        (("--llm", "mars:x"), "names no model"),
        (("--agent", "true {nothing}"), "it may name {workspace}"),
        (("--agent", "true", "--env", "NO_SUCH_NAME"), "which is not set here"),
        (("--agent", "no-such-program"), "cannot be run"),
        (("--llm", "openai:x", "--method", "guess"), "not one of 'oracle', 'locate'"),
    ],
)
def test_bad_usage(
    curated: Curated, perfquarry: Callable[..., Any], tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = perfquarry(curated.home, "solve", "--dataset", "demo", "--to", str(tmp_path / "p.jsonl"), *arguments, code=2)
    assert said in " ".join(done.stderr.split()) and "Traceback" not in done.stderr
