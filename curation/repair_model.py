"""A language model as the last resort of the build stage: asked for requirements when no rule of repair fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, Field

from perfquarry.data.records import Change
from perfquarry.harness.metadata.recipe import Recipe
from perfquarry.llm.client import Client
from perfquarry.llm.fences import Piece, fit
from perfquarry.llm.prompts import Prompt

MOST = 5
"""Requirements taken of one answer."""
LOG_TOKENS = 3000
_LINES = 25
"""Lines of a piece of the log: what does not fit is left out from its beginning."""
_PROMPTS = Path(__file__).with_name("prompts")


class Requirements(BaseModel):
    """What the model answers."""

    requirements: list[str] = Field(description="PEP 508 lines, the most promising first; empty: none would help.")


@dataclass(frozen=True)
class ModelProposer:
    """Asks once a log; what it answers is installed only when it is a known or declared package."""

    client: Client

    def __call__(self, change: Change, log: str, recipe: Recipe) -> Sequence[str]:
        """Requirements that may help; none of an answer that cannot be read.

        Raises:
            PerfquarryError: the model cannot be asked (budget, server, answers awaited).
        """
        lines = log.splitlines()
        parts = ["\n".join(lines[at : at + _LINES]) for at in range(0, len(lines), _LINES)]
        shown = fit([Piece(part, relevance=float(at)) for at, part in enumerate(parts)], LOG_TOKENS)
        values = {"requirements": "\n".join(recipe.requirements), "log": shown, "most": MOST}
        request = Prompt(_PROMPTS, "repair", "v1").request(Requirements, "build", change.change_id, values=values)
        answer = self.client.ask(request)
        return answer.value.requirements[:MOST] if answer.value else []
