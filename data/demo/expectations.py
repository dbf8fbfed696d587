"""What the pipeline must decide on every commit of the demo history, from `expected.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import Field, model_validator

from perfquarry.data.demo.commits import read_commits
from perfquarry.data.records import Reason, Record

_FILE = Path(__file__).parent / "expected.toml"


class Expected(Record):
    """The right decision on one commit (a merge: against its first parent)."""

    label: str
    head_sha: str
    subject: str
    accepted: bool
    reasons: list[Reason] = Field(
        default_factory=list, description="Right reasons of its rejection, the likeliest first; most have only one."
    )
    stage: str = Field(description="Stage that rejects it for the first of the reasons; 'select' if it is accepted.")
    note: str = Field(description="What is particular about it.")
    kind: str = Field(default="", description="Accepted: what kind of improvement it is.")
    tests: list[str] = Field(default_factory=list, description="Accepted: node ids of the tests that show the gain.")
    speedup: tuple[float, float] | None = Field(
        default=None, description="Accepted: range of the speedup of the first of `tests`, wide enough for any machine."
    )

    @property
    def reason(self) -> Reason | None:
        """The likeliest reason of its rejection; None if it is accepted."""
        return self.reasons[0] if self.reasons else None

    @model_validator(mode="after")
    def _is_whole(self) -> Expected:
        if self.accepted != (not self.reasons) or self.accepted != bool(self.kind and self.tests and self.speedup):
            raise ValueError(f"{self.label}: accepted with kind, tests and speedup, or else rejected with reasons")
        return self


def expected() -> list[Expected]:
    """One for every commit, in the order of the history's files: the last one is the head of the main branch."""
    facts = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return [Expected(label=commit.label, subject=commit.subject, **facts[commit.label]) for commit in read_commits()]
