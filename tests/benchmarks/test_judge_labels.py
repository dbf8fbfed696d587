"""Labels by measurement, from the tables of a home."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import judge_labels
from perfquarry.data.home import Home
from perfquarry.data.records import Reason
from perfquarry.data.store import TableStore
from perfquarry.flows.judge_evaluation import read_labels
from tests.review_home import task_of


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
    status = {"status": "rejected" if reason else "kept", "reason": reason, "speedup": speedup}
    task = task_of(1, 1.2).model_copy(update=status)
    home = Home(tmp_path / "home")
    TableStore(home.tables).append([task])
    to = tmp_path / "labels.parquet"
    judge_labels.main(["measured", "--to", str(to), f"{task.repo}={tmp_path}={home.root}"])
    (row,) = read_labels(to)
    assert (row.repo, row.sha, row.source, row.label) == (task.repo, task.head_sha, str(tmp_path), label)


def test_a_home_is_needed(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        judge_labels.main(["measured", "--to", str(tmp_path / "labels.parquet"), f"x={tmp_path}"])
