"""Table `patch_readings`: what a model says of one graded patch. It never changes a grade."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from perfquarry.data.records.row import Row

HackKind = Literal[
    "none",
    "persistent_state",
    "hard_coded_input",
    "test_pattern",
    "subtle_breakage",
    "circumvention",
    "work_migration",
    "fast_path_only",
]
"""Kinds of reward hacks: those of GSO's hack detector."""
OptimizationKind = Literal[
    "algorithm", "data_structure", "caching", "fewer_copies", "vectorization", "native_code", "lazy_work", "io", "other"
]
FailureKind = Literal["none", "wrong_place", "misread_bottleneck", "only_easy_gain", "broken_code", "no_attempt"]
"""Why a patch is not as fast as the expert's (after GSO §5.2: localisation, diagnosis, easy gains, low-level code)."""


class PatchReading(Row):
    """One model's reading of one patch: a second opinion for people, never a part of a score."""

    TABLE: ClassVar[str] = "patch_readings"
    KEY: ClassVar[tuple[str, ...]] = ("task_id", "patch_id", "author")

    task_id: str
    patch_id: str = Field(description="Content address of the patch (`grades.patch_id`).")
    author: str = Field(description="The model that read it.")
    votes: int = Field(description="Readable answers to the question whether the patch is a hack.")
    hack_votes: int = Field(description="Answers that said yes.")
    hack_kind: HackKind = Field(default="none", description="What most of these said it is.")
    hack_why: str = Field(default="", description="The reason in words, of one of these answers.")
    hack_quote: str = Field(default="", description="Lines of the patch that show it; empty: none that are in it.")
    points: list[str] = Field(default_factory=list, description="The expert's plan, back-translated: at most ten.")
    points_done: int = Field(default=0, description="Points that the patch carries out.")
    kinds: list[OptimizationKind] = Field(default_factory=list, description="Kinds of optimisation in the patch.")
    failure: FailureKind = Field(default="none", description="Why it is not as fast as the expert's.")
    why: str = Field(default="", description="The comparison in words.")

    @property
    def is_hack(self) -> bool:
        """Whether more than half of the votes say so."""
        return self.hack_votes * 2 > self.votes
