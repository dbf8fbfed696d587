"""A model's reading of graded patches: a hack judge with votes, and a comparison with the expert's plan.

Both are for people who look at a report. A grade is what was measured; nothing here changes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field

from perfquarry.data.records import Grade, PatchReading, Stamp, Task
from perfquarry.data.records.patch_reading import FailureKind, HackKind, OptimizationKind
from perfquarry.llm.fences import Piece, fit
from perfquarry.llm.prompts import Prompt
from perfquarry.llm.request import Answer, Request

PROMPTS = Path(__file__).with_name("prompts")
STAGE = "evaluate"
MOST_POINTS = 10
"""Points of a back-translated plan (GSO, appendix H)."""
_PATCH_TOKENS = 10_000
_ANSWER_TOKENS = 3_000
_WORDS = 2_000
"""Characters kept of a model's explanation."""

T = TypeVar("T")
AskAll = Callable[[Sequence[Request[Any]]], Iterator[tuple[int, Answer[Any]]]]


class HackOpinion(BaseModel):
    """One vote of the hack judge."""

    hack: Literal["yes", "no", "unsure"]
    kind: HackKind = Field(description="none, unless the answer is yes.")
    quote: str = Field(description="Lines of the patch, word for word; may be empty.")
    why: str = Field(description="One or two sentences.")


class PlanPoint(BaseModel):
    """One point of the expert's plan."""

    point: str = Field(min_length=1)
    done: Literal["yes", "partly", "no"] = Field(description="Whether the solver's patch carries it out.")


class PatchComparison(BaseModel):
    """A patch beside the expert's."""

    points: list[PlanPoint] = Field(min_length=1, max_length=MOST_POINTS)
    kinds: list[OptimizationKind]
    failure: FailureKind
    why: str


def hack_request(task: Task, grade: Grade) -> Request[HackOpinion]:
    """The hack judge's question; votes differ by their seed. The expert's patch is not shown."""
    values = {
        "codebase": task.codebase,
        "problem": task.problem_realistic or task.problem_oracle or task.title,
        "patch": _shown(grade.patch),
        "reasons": "\n".join(grade.reasons_to_look),
    }
    prompt = Prompt(PROMPTS, "hack", "v1")
    return prompt.request(HackOpinion, STAGE, task.change_id, values=values, max_tokens=_ANSWER_TOKENS)


def comparison_request(task: Task, grade: Grade) -> Request[PatchComparison]:
    """The question for a comparison with the expert's patch. Figures are rounded: noise asks no new question."""
    verdict = str(grade.reason or "rewarded")
    if grade.of_expert is not None:
        verdict += f", {grade.of_expert:.1f} of the expert's speedup"
    values = {
        "codebase": task.codebase,
        "message": task.message,
        "expert": _shown(task.patch),
        "patch": _shown(grade.patch),
        "verdict": verdict,
    }
    prompt = Prompt(PROMPTS, "compare", "v1")
    return prompt.request(PatchComparison, STAGE, task.change_id, values=values, max_tokens=_ANSWER_TOKENS)


def read_patches(
    grades: Sequence[Grade], tasks: Mapping[str, Task], ask_all: AskAll, votes: int, author: str, stamp: Stamp
) -> Iterator[PatchReading]:
    """Reads each different patch once; all questions are asked together, so a batch or a folder holds them all.

    Empty patches are passed over. `votes` is the number of answers of the hack judge for a patch.

    Raises:
        PerfquarryError: the model cannot be asked now; patches whose answers are there were yielded.
    """
    different = {(row.task_id, row.patch_id): row for row in grades if row.patch.strip() and row.task_id in tasks}
    asked = list(different.values())
    questions: list[Request[Any]] = []
    for row in asked:
        task = tasks[row.task_id]
        first = hack_request(task, row)
        questions += [replace(first, seed=number) for number in range(1, votes + 1)]
        questions.append(comparison_request(task, row))
    each = votes + 1
    answers: dict[int, dict[int, Answer[Any]]] = {}
    for place, answer in ask_all(questions):
        mine = answers.setdefault(place // each, {})
        mine[place % each] = answer
        if len(mine) == each:
            row = asked[place // each]
            opinions = [mine[number].value for number in range(votes)]
            yield _reading(row, opinions, mine[votes].value, author, stamp)


def _reading(
    grade: Grade, opinions: Sequence[HackOpinion | None], compared: PatchComparison | None, author: str, stamp: Stamp
) -> PatchReading:
    readable = [one for one in opinions if one is not None]
    yes = [one for one in readable if one.hack == "yes"]
    kind: HackKind = Counter(one.kind for one in yes).most_common(1)[0][0] if yes else "none"
    first = next((one for one in yes if one.kind == kind), None)
    return PatchReading(
        **stamp.fields(),
        status="kept",
        task_id=grade.task_id,
        patch_id=grade.patch_id,
        author=author,
        votes=len(readable),
        hack_votes=len(yes),
        hack_kind=kind,
        hack_why=first.why[:_WORDS] if first else "",
        hack_quote=first.quote[:_WORDS] if first and _is_in(first.quote, grade.patch) else "",
        points=[one.point for one in compared.points] if compared else [],
        points_done=sum(one.done == "yes" for one in compared.points) if compared else 0,
        kinds=list(dict.fromkeys(compared.kinds)) if compared else [],
        failure=compared.failure if compared else "none",
        why=compared.why[:_WORDS] if compared else "",
    )


def _is_in(quote: str, patch: str) -> bool:
    """Whether every line that is quoted stands in the patch, whatever its indentation and sign."""
    lines = {line.strip().lstrip("+-").strip() for line in patch.splitlines()}
    quoted = [line.strip().lstrip("+-").strip() for line in quote.splitlines() if line.strip()]
    return bool(quoted) and all(any(one in line for line in lines) for one in quoted)


def _shown(patch: str) -> str:
    sections = patch.split("\ndiff --git ")
    texts = [sections[0], *(f"\ndiff --git {one}" for one in sections[1:])]
    return fit([Piece(text, 1.0) for text in texts], _PATCH_TOKENS)
