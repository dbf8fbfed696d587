"""A run over a history it has seen costs a fetch: no stage looks, no model is asked."""

from __future__ import annotations

import json
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest
from asking import PRICES
from model_server import Act, ModelServer
from rich.console import Console

from perfquarry.data.demo import build_demo
from perfquarry.data.errors import RunFailed
from perfquarry.data.home import Home
from perfquarry.data.records import Change, Verdict
from perfquarry.data.runs import runs_of
from perfquarry.flows.options import Options
from perfquarry.flows.pipeline import run_stages
from perfquarry.flows.run import Run
from perfquarry.flows.settings import Settings
from perfquarry.flows.work import perform
from perfquarry.llm.settings import LlmSettings
from perfquarry.miners.settings import JudgeSettings

ANSWER = {
    "why": "It saves work.", "evidence": ["CACHE = {}"], "kind": "caching", "apis": [], "disguise": "none",
    "testable_on_cpu": True, "answer": "yes", "confidence": 0.9,
}  # fmt: skip


def night(home: Home, source: Path, server: ModelServer) -> tuple[str, Run]:
    """One nightly run: how it ended, and the run."""
    options = Options(
        repo=str(source),
        home=str(home.root),
        jobs=1,
        settings=Settings(
            judge=JudgeSettings(judge="cascade", model="openai:m"),
            llm=LlmSettings(base_url=f"{server.url}/v1", prices=PRICES, retries=0),
        ),
    )
    Run.open.cache_clear()  # each night is another process
    run = Run.open(options.model_dump_json())
    perform(run, ("mine", "judge"), nullcontext(run_stages), Console(quiet=True), silent=True)
    return runs_of(home, run.name)[-1].outcome, run


def commit(source: Path, work: Path) -> None:
    """One more commit on the branch of a bare repository."""
    work.mkdir()
    for arguments in (
        ("clone", "-q", source, "."),
        ("config", "user.name", "A"),
        ("config", "user.email", "a@example.org"),
    ):
        subprocess.run(["git", *arguments], cwd=work, check=True)
    file = work / "quarrykit" / "stats.py"
    file.write_text(file.read_text() + "\n\nCACHE = {}\n\n\ndef cached(key):\n    return CACHE[key]\n")
    subprocess.run(["git", "commit", "-qam", "Keep what was looked up in a cache"], cwd=work, check=True)
    subprocess.run(["git", "push", "-q", "origin", "HEAD"], cwd=work, check=True)


def test_nights(home: Home, server: ModelServer, tmp_path: Path) -> None:
    server.script = lambda number, body: Act(text=json.dumps(ANSWER))
    source = tmp_path / "source"
    build_demo(source)
    outcome, run = night(home, source, server)
    first = len(server.asked)
    assert outcome == "done" and first >= 18

    outcome, run = night(home, source, server)
    assert outcome == "nothing new" and len(server.asked) == first
    assert "sandbox" not in run.__dict__ and "builder" not in run.__dict__

    commit(source, tmp_path / "work")
    outcome, run = night(home, source, server)
    assert outcome == "done" and 1 <= len(server.asked) - first <= 3, "only what is new is asked"
    assert run.store.count(Change, run.name) == 35 and run.store.count(Verdict, run.name) == 34
    assert night(home, source, server)[0] == "nothing new"

    asked = len(server.asked)
    for part in (home.tables / "verdicts" / f"repo={run.name}").glob("*.parquet"):
        part.unlink()  # a mark is no progress: what is missing in the tables is done again, here from the kept answers
    outcome, run = night(home, source, server)
    assert outcome == "done" and run.store.count(Verdict, run.name) == 34 and len(server.asked) == asked


def test_a_run_that_fails_leaves_no_mark(home: Home, server: ModelServer, tmp_path: Path) -> None:
    server.script = lambda number, body: Act(status=400, error="no")
    source = tmp_path / "source"
    build_demo(source)
    with pytest.raises(RunFailed, match="1 batch"):
        night(home, source, server)
    assert not list(home.marks.glob("*")) and {run.outcome for run in _records(home)} == {"failed"}


def _records(home: Home) -> list[object]:
    return [record for folder in home.runs.iterdir() for record in runs_of(home, folder.name)]
