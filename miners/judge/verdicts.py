"""The judge of a repository, with the client of the model it asks, and its verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.compute as pc

from perfquarry.data.own_rows import OwnRows
from perfquarry.data.records import MEANING, Change, Reason, Verdict
from perfquarry.llm.client import open_client
from perfquarry.llm.settings import LlmSettings
from perfquarry.llm.spec import ModelSpec
from perfquarry.miners.functions import touched
from perfquarry.miners.judge import Judge, make_judge, spec_of
from perfquarry.miners.judge.heuristic import NAME as HEURISTIC
from perfquarry.miners.pulls.joined import discussions
from perfquarry.miners.settings import JudgeSettings, PullSettings

AT_ONCE = 200
"""Changes whose questions are made before the first of them is asked, where answers come at once."""


@contextmanager
def judging(
    rows: OwnRows, clone: Path, settings: JudgeSettings, pulls: PullSettings, llm: LlmSettings
) -> Iterator[Judge]:
    """The judge that the settings name; its connections end with the context, and its costs are the repository's.

    Raises:
        InputError: no such judge or model, no key, no folder of cassettes.
    """
    stamp, spec, said = rows.stamp("judge"), spec_of(settings), discussions(rows, clone, pulls)
    if spec is None:
        yield make_judge(settings, stamp, discussions=said)
        return
    live = ModelSpec.parse(spec).kind in ("openai", "anthropic") and not llm.batch
    with open_client(spec, rows.home, rows.store, stamp, llm) as client:
        yield make_judge(settings, stamp, client, clone, AT_ONCE if live else None, said)


def verdicts(rows: OwnRows, judge: Judge, wanted: Collection[str]) -> Iterator[Verdict]:
    """Verdicts on the mined changes of these ids, as they come.

    Raises:
        BudgetExceeded, AnswersAwaited, ModelFailed: as the judge's client does.
    """
    first = _first_of_patches(rows)
    again: list[tuple[Change, str]] = []

    def mined() -> Iterator[Change]:
        where = (pc.field("status") == "kept") & pc.field("change_id").isin(list(wanted))
        for change in rows.store.records(Change, rows.name, where=where, **rows.where("mine")):
            sha = first.get(change.patch_id or "", change.head_sha)
            if sha == change.head_sha:
                yield change
            else:
                again.append((change, sha))

    yield from judge.judge_all(mined())
    stamp = rows.stamp("judge")
    for change, sha in again:
        yield Verdict(
            **stamp.fields(),
            status="rejected",
            reason=Reason.SAME_PATCH,
            change_id=change.change_id,
            judge=HEURISTIC,
            is_performance="no",
            probability=0.0,
            why=f"{MEANING[Reason.SAME_PATCH]}: {sha}",
        )


def _first_of_patches(rows: OwnRows) -> dict[str, str]:
    """By patch id the commit that brought the patch first; merges have none of their own.

    A merge of one commit has that commit's patch; a branch that was rebased and merged twice has each commit twice.
    """
    commit = (pc.field("status") == "kept") & (pc.field("kind") != "merge") & pc.field("patch_id").is_valid()
    columns = ["patch_id", "head_sha", "merged_at"]
    found = rows.store.scan(Change, rows.name, columns=columns, where=commit, **rows.where("mine"))
    ordered = found.sort_by([("merged_at", "descending"), ("head_sha", "descending")])
    return dict(zip(ordered["patch_id"].to_pylist(), ordered["head_sha"].to_pylist(), strict=True))


def verdict_with_functions(rows: OwnRows, clone: Path, change: Change) -> Verdict:
    """The verdict on a change that is taken up; names the functions touched, which are found and written once.

    Raises:
        GitFailed: git cannot read the change.
    """
    verdict = rows.rows_of(Verdict, "judge", change.change_id)[0]
    if verdict.functions:
        return verdict
    found = verdict.model_copy(update={"functions": touched(clone, change)})
    if found.functions:
        rows.store.append([found])
    return found
