"""Labels by measurement, from the decisions that are kept over the sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import decided, judge_labels
from perfquarry.data.home import Home
from perfquarry.data.records import Reason
from perfquarry.data.store import TableStore
from perfquarry.miners.judge.labels import read_labels
from tests.review_home import task_of


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of decisions of its own."""
    monkeypatch.setattr(decided, "KEPT", tmp_path / "decided.jsonl")


def decide(folder: Path, *, speedup: float | None, reason: Reason | None = None) -> tuple[str, str]:
    """Keeps one decision of a home of its own; the repository and the commit."""
    status = {"status": "rejected" if reason else "kept", "reason": reason, "speedup": speedup}
    task = task_of(1, 1.2).model_copy(update=status)
    TableStore(Home(folder).tables).append([task])
    decided.add([folder])
    return task.repo, task.head_sha


@pytest.mark.parametrize(
    ("speedup", "reason", "label"),
    [
        (1.3, None, True),
        (1.04, None, None),
        (None, Reason.NO_GAIN, False),
        (None, Reason.SLOWER, False),
        (None, Reason.UNDECIDED, None),
        (None, Reason.MIXED, None),
    ],
)
def test_a_decision_is_a_label(
    speedup: float | None, reason: Reason | None, label: bool | None, tmp_path: Path
) -> None:
    repo, sha = decide(tmp_path / "home", speedup=speedup, reason=reason)
    to = tmp_path / "labels.parquet"
    judge_labels.main(["measured", "--to", str(to), f"{repo}={tmp_path}"])
    (row,) = read_labels(to)
    assert (row.repo, row.sha, row.source, row.label) == (repo, sha, str(tmp_path), label)


def test_a_later_decision_replaces_an_earlier_one_and_tasks_are_in_the_table(tmp_path: Path) -> None:
    decide(tmp_path / "first", speedup=None, reason=Reason.UNDECIDED)
    assert "0 tasks of 0 repositories" in decided.section() and "of 1 decided changes" in decided.section()
    repo, sha = decide(tmp_path / "second", speedup=1.3)
    assert len(decided.kept()) == 1
    assert f"| {repo} | {sha[:10]} |" in decided.section()


def test_a_clone_is_needed(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        judge_labels.main(["measured", "--to", str(tmp_path / "labels.parquet"), "x"])
