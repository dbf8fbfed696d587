"""Models read graded patches: votes, quotes, and what a report shows. Answers are canned, written by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from perfquarry.curation.evaluation.readings import (
    HackOpinion,
    PatchComparison,
    PlanPoint,
    comparison_request,
    hack_request,
    read_patches,
)
from perfquarry.curation.evaluation.report import read_readings, report_of, write_readings, write_report
from perfquarry.data.records import PatchReading, Reason
from perfquarry.data.records.patch_reading import HackKind
from perfquarry.llm.request import Answer, Request
from tests.curation.test_evaluation import TASKS, row
from tests.review_home import STAMP

CHEAT = "--- a/pkg/words.py\n+++ b/pkg/words.py\n@@ -1 +1,2 @@\n+    _SEEN = {}\n+    return _SEEN[text]\n"
BY_ID = {task.task_id: task for task in TASKS}


def asked(votes: Sequence[HackOpinion | None], compared: PatchComparison | None) -> Any:
    """A client's `ask_all` whose answers are given here; the comparison comes first, as answers may."""

    def ask_all(requests: Sequence[Request[Any]]) -> Iterator[tuple[int, Answer[Any]]]:
        each = len(votes) + 1
        assert len(requests) % each == 0
        for place in sorted(range(len(requests)), key=lambda place: -(place % each)):
            value: Any = [*votes, compared][place % each]
            yield place, Answer("ok" if value is not None else "malformed", value)

    return ask_all


def vote(hack: Any, kind: HackKind = "none", quote: str = "") -> HackOpinion:
    return HackOpinion(hack=hack, kind=kind, quote=quote, why=f"because of {kind}")


def reading(votes: Sequence[HackOpinion | None], compared: PatchComparison | None = None) -> PatchReading:
    (found,) = read_patches([row(patch=CHEAT)], BY_ID, asked(votes, compared), len(votes), "canned:hand", STAMP)
    return found


def test_most_of_the_readable_votes_decide() -> None:
    persistent = vote("yes", "persistent_state", "_SEEN = {}")
    found = reading([persistent, vote("yes", "persistent_state"), vote("no")])
    assert (found.votes, found.hack_votes, found.hack_kind, found.is_hack) == (3, 2, "persistent_state", True)
    assert found.hack_quote == "_SEEN = {}" and found.hack_why == "because of persistent_state"
    assert not reading([persistent, vote("no"), vote("unsure")]).is_hack
    lost = reading([None, vote("yes", "test_pattern"), None])
    assert (lost.votes, lost.is_hack) == (1, True)
    assert not reading([None, None, None]).is_hack, "no readable answer accuses nobody"


def test_a_quote_that_is_not_in_the_patch_is_not_shown() -> None:
    assert reading([vote("yes", "test_pattern", "if 'pytest' in sys.modules:")]).hack_quote == ""


def test_the_expert_is_shown_to_the_comparison_alone() -> None:
    grade = row(patch=CHEAT, reasons_to_look=["pkg/words.py: sys.modules"])
    hack, compared = hack_request(TASKS[0], grade), comparison_request(TASKS[0], grade)
    assert "_SEEN" in hack.text and "sys.modules" in hack.text and "list(found)" not in hack.text
    assert "list(found)" in compared.text and "1.0 of the expert's speedup" in compared.text
    noisy = comparison_request(TASKS[0], grade.model_copy(update={"of_expert": 1.02}))
    assert noisy.address == compared.address, "noise asks no new question"


def test_equal_patches_are_read_once_and_empty_ones_never() -> None:
    counted: list[int] = []

    def ask_all(requests: Sequence[Request[Any]]) -> Iterator[tuple[int, Answer[Any]]]:
        counted.append(len(requests))
        yield from asked([vote("no")], None)(requests)

    same = [row(patch=CHEAT, patch_id="same", model=name) for name in ("a", "b")]
    rows = list(read_patches([*same, row(model="nop", patch="")], BY_ID, ask_all, 1, "canned:hand", STAMP))
    assert len(rows) == 1 and counted == [2]


def test_a_report_shows_what_was_said_and_scores_stay(tmp_path: Path) -> None:
    grades = [row(patch=CHEAT, reason=Reason.BELOW_EXPERT, status="rejected")]
    points = [PlanPoint(point="Look <b>up</b> in the dict", done="yes"), PlanPoint(point="Keep it", done="no")]
    compared = PatchComparison(points=points, kinds=["caching", "caching"], failure="only_easy_gain", why="Half of it.")
    found = reading([vote("yes", "persistent_state", "_SEEN = {}")], compared)
    report = report_of(grades, TASKS, {}, "d", "p")
    write_report(report, grades, tmp_path)
    before = (tmp_path / "report.json").read_text()
    write_readings([found], tmp_path)
    write_report(report, grades, tmp_path)
    assert read_readings(tmp_path) == [found] and (found.points_done, found.kinds) == (1, ["caching"])
    page = (tmp_path / "report.html").read_text()
    assert "a hack (persistent_state), 1 of 1 votes" in page and "1 of 2 points" in page and "only_easy_gain" in page
    assert "Look &lt;b&gt;up&lt;/b&gt;" in page and (tmp_path / "report.json").read_text() == before
