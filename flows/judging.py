"""The judge of a run, with the client of the model it asks, and its verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import pyarrow.compute as pc

from perfquarry.data.records import MEANING, Change, Reason, Verdict
from perfquarry.flows.run import Run
from perfquarry.llm.spec import ModelSpec
from perfquarry.miners.functions import touched
from perfquarry.miners.judge import Judge, make_judge, spec_of
from perfquarry.miners.judge.heuristic import NAME as HEURISTIC
from perfquarry.miners.pulls.joined import discussions

AT_ONCE = 200
"""Changes whose questions are made before the first of them is asked, where answers come at once."""


@contextmanager
def judging(run: Run) -> Iterator[Judge]:
    """The judge that the settings name; its connections end with the context.

    Raises:
        InputError: no such judge or model, no key, no folder of cassettes.
    """
    settings, stamp = run.options.settings, run.stamp("judge")
    spec = spec_of(settings.judge)
    said = discussions(run, run.clone, settings.pulls)
    if spec is None:
        yield make_judge(settings.judge, stamp, discussions=said)
        return
    live = ModelSpec.parse(spec).kind in ("openai", "anthropic") and not settings.llm.batch
    with run.client(spec, stamp) as client:
        yield make_judge(settings.judge, stamp, client, run.clone, AT_ONCE if live else None, said)


def verdicts(run: Run, wanted: Collection[str]) -> Iterator[Verdict]:
    """Verdicts on the mined changes of these ids, as they come.

    Raises:
        BudgetExceeded, AnswersAwaited, ModelFailed: as the judge's client does.
    """
    commit = (pc.field("status") == "kept") & (pc.field("kind") != "merge") & pc.field("patch_id").is_valid()
    patches = run.column("mine", "patch_id", commit)  # a merge of one commit has that commit's
    again: list[Change] = []

    def mined() -> Iterator[Change]:
        where = (pc.field("status") == "kept") & pc.field("change_id").isin(list(wanted))
        for change in run.store.records(Change, run.name, where=where, **run.where("mine")):
            if change.kind == "merge" and change.patch_id in patches:
                again.append(change)
                continue
            yield change

    with judging(run) as judge:
        yield from judge.judge_all(mined())
    stamp = run.stamp("judge")
    for change in again:
        yield Verdict(
            **stamp.fields(),
            status="rejected",
            reason=Reason.SAME_PATCH,
            change_id=change.change_id,
            judge=HEURISTIC,
            is_performance="no",
            probability=0.0,
            why=MEANING[Reason.SAME_PATCH],
        )


def verdict_with_functions(run: Run, change: Change) -> Verdict:
    """The verdict on a change that is taken up; names the functions touched, which are found and written once.

    Raises:
        GitFailed: git cannot read the change.
    """
    verdict = run.rows_of(Verdict, "judge", change.change_id)[0]
    if verdict.functions:
        return verdict
    found = verdict.model_copy(update={"functions": touched(run.clone, change)})
    if found.functions:
        run.store.append([found])
    return found
