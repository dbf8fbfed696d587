"""A run with little time reads a long history in parts: first what speaks of speed, then the newest."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfquarry.data.records import Change, Verdict
from perfquarry.flows import run as runs
from perfquarry.flows import stages
from perfquarry.flows.options import Options
from perfquarry.flows.pipeline import run_stages
from perfquarry.flows.run import Run
from perfquarry.flows.watermarks import Watermark
from perfquarry.miners.judge.words import rank
from tests.miners.git_repository import Repository

TITLES = ("First", "Speed up one", "Cache two", "Rename three", "Make four faster \xe9", "Add five")
STAGES = ["mine", "judge"]


@pytest.fixture
def history(tmp_path: Path) -> Path:
    made = Repository(tmp_path / "lib")
    for number, title in enumerate(TITLES):
        made.commit(title, {"lib/__init__.py": f"def f():\n    return {number}\n"})
    return made.folder


def titles(run: Run) -> list[str]:
    return [row.title for row in run.store.records(Change, run.name)]


def judged(run: Run) -> int:
    return len(list(run.store.records(Verdict, run.name)))


@pytest.mark.parametrize("seconds", [None, 600.0])
def test_what_there_is_time_for_is_read_at_once(history: Path, tmp_path: Path, seconds: float | None) -> None:
    run = Run(Options(repo=str(history), home=str(tmp_path / "home"), jobs=1, seconds=seconds))
    run_stages(run, STAGES)
    assert sorted(titles(run)) == sorted(TITLES) and stages.unread(run) == 0
    assert judged(run) == len(TITLES) - 1, "the first has no base"


def test_each_run_reads_on_and_what_speaks_of_speed_comes_first(
    history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "READ_SHARE", 0.0)
    monkeypatch.setattr(stages, "LEAST_READ", 2)
    run = Run(Options(repo=str(history), home=str(tmp_path / "home"), jobs=1, seconds=600.0))
    run_stages(run, STAGES)
    assert sorted(titles(run)) == ["Make four faster \xe9", "Speed up one"] and judged(run) == 2
    assert stages.unread(run) == 4
    mark = Watermark(run, STAGES)
    mark.finish()
    assert not mark.reached(), "there is something left"
    for expected in ({"Cache two", "Add five"}, {"Rename three", "First"}):
        before = set(titles(run))
        run.close()
        run_stages(run, STAGES)
        assert set(titles(run)) - before == expected
    assert stages.unread(run) == 0
    run.close()
    run_stages(run, STAGES)
    assert judged(run) == len(TITLES) - 1
    mark.finish()
    assert mark.reached()


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("Make it 2x faster", 0),
        ("Merge pull request #7 from ann/speed-up-parsing\n\nParsing", 0),
        ("Rework it\n\nThis is much faster.", 1),
        ("Cache what was compiled", 1),
        ("Speed up the tests", 2),
        ("Fix a typo", 2),
        ("", 2),
    ],
)
def test_words_of_speed(message: str, found: int) -> None:
    assert rank(message.partition("\n")[0], message) == found
