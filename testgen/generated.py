"""Performance tests written by a model, with rejection sampling.

A round asks for several scripts at once and tries all of them on both sides. While too few are usable, the
next round shows the model what became of each script, and more of the change. A run that is stopped between
rounds tries the scripts of the answers it has again; no question is asked twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, Field, field_validator

from perfquarry.data.records import MEANING, Reason, Source, Workload
from perfquarry.llm.fences import Piece, fit
from perfquarry.llm.prompts import Prompt
from perfquarry.llm.request import Answer, Request
from perfquarry.testgen.case import Case
from perfquarry.testgen.context import context_of
from perfquarry.testgen.scripts import Script
from perfquarry.testgen.survivors import choose, roles_of, without_duplicates
from perfquarry.testgen.trials import Trial, rows_of, try_scripts

PROMPTS = Path(__file__).with_name("prompts")
VERSION = "v3"
TRIED_SHARE = 0.5
"""Tokens for what was tried, beside those for the change."""
NOTE_CHARACTERS = 200
DETAIL_LINES = 8
"""Lines of a rejection's detail that the model is shown, from its end."""
NONE_CAN = "the model answered that no script can show the change"
_UNITS = {"seconds": 1.0, "milliseconds": 1e-3, "microseconds": 1e-6, "nanoseconds": 1e-9}
_FENCE = re.compile(r"\s*```[\w-]*[ \t]*\n(.*?)\n?```\s*", re.DOTALL)


class Sample(BaseModel):
    """One script of an answer."""

    note: str = Field(description="One line: what it exercises, and with what input.")
    code: str = Field(description="The whole script.")

    @field_validator("code")
    @classmethod
    def _bare(cls, code: str) -> str:
        """Without a Markdown fence around it; halves of characters are no text."""
        match = _FENCE.fullmatch(code)
        bare = match[1] if match else code
        bare.encode()
        if not bare.strip():
            raise ValueError("the script is empty")
        return bare.strip("\n") + "\n"


class Samples(BaseModel):
    """What the model answers."""

    scripts: list[Sample] = Field(description="The scripts; empty: no script can show the change.")


Ask = Callable[[Request[Samples]], Answer[Samples]]


@dataclass(frozen=True)
class Generated:
    """The source `generated`; `ask` is a client's (`llm.client.Client.ask`)."""

    ask: Ask
    wishes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By change: what is missing in its scripts so far. Such a change gets one more round, which asks for that."""
    name: ClassVar[Source] = "generated"

    def workloads(self, case: Case) -> list[Workload]:
        """Kept scripts first, each visible or hidden, then all others with their reasons.

        A round without a readable answer ends the sampling; where nothing was sampled before, its reason is the
        one row, with an empty code.

        Raises:
            PerfquarryError: the model cannot be asked now (budget, server, answers awaited); nothing is lost.
            SandboxUnavailable: the sandbox itself could not start.
        """
        if not case.changes_code:
            return []
        settings = case.settings.generated
        open_wishes = self.wishes.get(case.change.change_id, ())
        wanted = settings.wanted + (settings.samples if open_wishes else 0)
        rounds: dict[str, int] = {}
        trials: list[Trial] = []
        enough = False
        for number in range(1, settings.rounds + 1 + bool(open_wishes)):
            wishes = open_wishes if number > settings.rounds else ()
            if enough and not wishes:
                continue
            answer = self.ask(request_of(case, number, trials, wishes))
            if answer.value is None:
                return _rows(case, trials, rounds, wanted) if trials else [_failed(case, answer, number)]
            samples = answer.value.scripts[: settings.samples]
            notes = {one.code: " ".join(one.note.split())[:NOTE_CHARACTERS] for one in samples}
            fresh = {code: Script(code, self.name, note) for code, note in notes.items() if code not in rounds}
            rounds |= dict.fromkeys(fresh, number)
            trials += try_scripts(case, list(fresh.values()))
            usable = [trial for trial in without_duplicates(trials) if trial.reason is None]
            enough = not fresh or len(usable) >= settings.wanted
        if not trials:
            return [case.row(self.name, reason=Reason.NO_WORKLOADS, detail=NONE_CAN, round=1)]
        return _rows(case, trials, rounds, wanted)


def request_of(case: Case, number: int, trials: Sequence[Trial], wishes: Sequence[str] = ()) -> Request[Samples]:
    """The question of a round, from 1, when these scripts were tried before; their order is that of writing.

    Args:
        wishes: what is missing in the scripts, as screening found; empty: a plain round.
    """
    settings = case.settings.generated
    tokens = number * settings.context_tokens
    shown = context_of(case, tokens, ("base",) if number == 1 else ("base", "head"))
    values = {
        **shown,
        "tried": fit([_trial_in_words(trial) for trial in without_duplicates(trials)], int(TRIED_SHARE * tokens)),
        "wanted": settings.samples,
        "wishes": "\n".join(f"- {wish}" for wish in wishes),
    }
    prompt = Prompt(PROMPTS, "generate", VERSION)
    return prompt.request(Samples, "generate", case.change.change_id, values=values, max_tokens=settings.answer_tokens)


def _trial_in_words(trial: Trial) -> Piece:
    """What became of a script: of a kept one its note, of a rejected one its reason and its text."""
    note = trial.script.note
    if trial.reason is None:
        return Piece(f"## kept: {note}\n", 1.0, note)
    detail = portable(trial.detail)
    lines = [
        f"## rejected, {trial.reason}: {MEANING[trial.reason]}",
        *([detail] if detail else []),
        trial.script.code,
        "",
    ]
    return Piece("\n".join(lines), 0.0, note)


def portable(detail: str) -> str:
    """The end of a detail as it is on every machine: without folders and addresses, durations by their unit."""
    text = re.sub(r"(?<![\w.])/(?:[^\s'\"/]+/)+", "", detail)
    text = re.sub(r"0x[0-9a-fA-F]+", "0x…", text)
    text = re.sub(r"(\d+(?:\.\d+)?(?:e[-+]?\d+)?) s\b", _roughly, text)
    lines = [line for line in text.splitlines() if line.strip(" ^~")]
    return "\n".join(lines[-DETAIL_LINES:])


def _roughly(match: re.Match[str]) -> str:
    """A thousandfold is left: what is too short here must not be put in other words by a faster machine."""
    seconds = float(match[1])
    return next((f"some {unit}" for unit, least in _UNITS.items() if seconds >= least), "no time")


def _rows(case: Case, trials: Sequence[Trial], rounds: dict[str, int], wanted: int) -> list[Workload]:
    settings = case.settings.generated
    chosen = choose(trials, wanted)
    kept = [trial.script.code for trial in chosen if trial.reason is None]
    roles = dict(zip(kept, roles_of(case.change.change_id, kept, settings.held_out), strict=True))
    return [
        row.model_copy(update={"round": rounds[row.code], "role": roles.get(row.code, "visible")})
        for row in rows_of(case, chosen)
    ]


def _failed(case: Case, answer: Answer[Samples], number: int) -> Workload:
    """The row of a change for which the model wrote nothing that can be read."""
    reason = Reason.REFUSED if answer.status == "refused" else Reason.MALFORMED
    return case.row(Generated.name, reason=reason, detail=answer.detail, round=number)
