"""Problem texts and plans written by a model.

Who writes a problem text is shown nothing but the base: what it was never shown it can hardly reveal. Plans are
made of the fix itself (back-translation, GSO appendix H) for analysis; they never reach a solver.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field

from perfquarry.curation.formats import gso_row
from perfquarry.curation.patch import changed_lines
from perfquarry.curation.problems.leaks import Fix
from perfquarry.curation.problems.texts import gso_text, milliseconds, problem_of
from perfquarry.data.records import Problem, Setting, Stamp, Task
from perfquarry.llm.fences import Piece, fit
from perfquarry.llm.prompts import Prompt
from perfquarry.llm.request import Request

PROMPTS = Path(__file__).with_name("prompts")
STAGE = "screen"
_DIFF_TOKENS = 12_000
_SCRIPT_TOKENS = 4_000
_PLAN_CHARACTERS = 20_000


class Statements(BaseModel):
    """What a model answers for a task; empty where it was given nothing."""

    gso: str = Field(description="Refers to the script that is appended.")
    oracle: str = Field(description="Names the functions to change.")
    realistic: str = Field(description="Names the functions that end users call.")
    fuzzy: str = Field(description="As a user would report it; names no function, class, module or file.")


class Plan(BaseModel):  # its name is part of the form, and so of the address of answers that were paid for
    """What a model answers of a fix."""

    plan: str = Field(description="At most ten points.", min_length=1)


def texts_in(task: Task, answer: Statements, fix: Fix, author: str, stamp: Stamp) -> list[Problem]:
    """Texts of the four settings in a model's words, each checked for the fix."""
    texts: dict[Setting, str] = {
        "gso": f"{answer.gso.strip()}\n\n{_script_of(gso_text(task))}" if answer.gso.strip() and gso_text(task) else "",
        "oracle": answer.oracle.strip() if task.oracle_targets else "",
        "realistic": answer.realistic.strip() if task.realistic_targets else "",
        "fuzzy": answer.fuzzy.strip(),
    }
    return [problem_of(task, setting, text, fix, stamp, author) for setting, text in texts.items() if text]


def plan_in(task: Task, answer: Plan, author: str, stamp: Stamp) -> Problem:
    """The plan of a task's fix (setting 'plan')."""
    return problem_of(task, "plan", answer.plan[:_PLAN_CHARACTERS], Fix(), stamp, author)


def statements_request(task: Task) -> Request[Statements]:
    """The question for problem texts: nothing in it is of the head."""
    script = gso_row(task)["prob_script"]
    values = {
        "codebase": task.codebase,
        "script": fit([Piece(script, 1.0)], _SCRIPT_TOKENS) if script else "",
        "oracle": "\n".join(task.oracle_targets),
        "realistic": "\n".join(task.realistic_targets),
        "milliseconds": milliseconds(task),
    }
    return Prompt(PROMPTS, "problem", "v2").request(Statements, STAGE, task.change_id, values=values, max_tokens=4000)


def plan_request(task: Task) -> Request[Plan]:
    """The question for a plan: the message and the expert's patch."""
    sections = task.patch.split("\ndiff --git ")
    pieces = [Piece(text, float(len(changed_lines(text)) > 0), "") for text in sections]
    values = {"codebase": task.codebase, "message": task.message, "diff": fit(pieces, _DIFF_TOKENS)}
    return Prompt(PROMPTS, "plan", "v1").request(Plan, STAGE, task.change_id, values=values, max_tokens=4000)


def _script_of(text: str) -> str:
    """The fenced script of a GSO text."""
    begin = text.index("```python")
    return text[begin : text.rindex("```") + 3]
