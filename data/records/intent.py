"""Table `intents`: whether the gain of a task was meant, and whether callers can tell base and head apart."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from perfquarry.data.records.row import Record, Row

IntentClass = Literal["intended", "side_effect", "behaviour_changed"]
HEURISTIC = "heuristic"


class Effect(Record):
    """One thing that callers may notice of a change."""

    kind: str = Field(description="'removed', 'signature', 'raises', 'tests', 'results', …")
    text: str = Field(description="In words, with the name of what differs.")
    weight: float = Field(description="From 1 on, it decides alone.")


class Intent(Row):
    """What one author says of one task. Of several authors a curator decides, then a model, then the heuristic."""

    TABLE: ClassVar[str] = "intents"
    KEY: ClassVar[tuple[str, ...]] = ("task_id", "author")

    task_id: str
    change_id: str
    intent: IntentClass = Field(
        description="intended: an improvement that was meant as one, callers see the same; side_effect: the gain came "
        "with a fix, a feature or a refactoring, callers see the same; behaviour_changed: callers see something else."
    )
    author: str = Field(default=HEURISTIC, description="'heuristic', or the model that answered.")
    evidence: list[str] = Field(default_factory=list, description="In words, the strongest first.")
