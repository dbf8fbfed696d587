"""`release.json`: what a release says of itself; card and changelog are made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from pydantic import Field, ValidationError

from perfquarry.data.errors import InputError
from perfquarry.data.funnel import Funnel
from perfquarry.data.git import plain_text
from perfquarry.data.records import Evidence, Machine, Record
from perfquarry.data.records.inputs import Address, Codebase, Name, validation_message

FILE = "release.json"
LARGEST = 64 * 1024 * 1024
"""Bytes of it."""


class LeftOut(Record):
    """An accepted task that is not released."""

    task_id: str
    why: str


class Family(Record):
    """The family of all tests of one repository, and how many false workloads chance leaves among the accepted."""

    workloads: int = Field(description="Tests of workloads that were ever decided on (m).")
    accepted: int = Field(description="Those that were accepted and are in force.")
    max_p: float = Field(default=1.0, description="Their largest p-value in the selecting session.")
    max_confirming_p: float = Field(default=1.0, description="Their largest p-value in the confirming session.")
    rounds: int = Field(default=1, description="Most rounds of both sessions that a test had.")

    @property
    def expected_false(self) -> float:
        """So many false workloads are expected among the accepted ones at most: m · rounds · max_p · max_confirming_p.

        Without a gain, each p-value falls below a threshold t with probability t at most, and sessions are
        independent. m · max_p alone is what Benjamini & Hochberg (1995) and Storey (2002, §4) take as the number of
        false ones that a selecting session lets through (q_max times the number of tests at or below max_p); each of
        these has to pass the confirming session, and had a chance in each round. A false task has at least one false
        workload and no true one: the same number bounds the false tasks.
        """
        return self.workloads * self.rounds * self.max_p * self.max_confirming_p if self.accepted else 0.0

    @classmethod
    def of(cls, evidence: Sequence[Evidence], decisions: Mapping[str, str]) -> Family:
        """From the evidence of all decisions ever made over a repository, and those in force by change.

        A change that was tried with several settings had as many chances: all of them count. A later decision
        that saw the same timings again made no new test.
        """
        tested = [row for row in evidence if row.p_value is not None and row.sessions]
        accepted = [row for row in tested if row.status == "kept" and decisions.get(row.change_id) == row.config_hash]
        return cls(
            workloads=len({(row.workload_id, row.p_value, row.speedup) for row in tested}),
            accepted=len(accepted),
            max_p=max((row.p_value or 0.0 for row in accepted), default=1.0),
            max_confirming_p=max((row.sessions[-1].p_value for row in accepted), default=1.0),
            rounds=max(((one.session + 1) // 2 for row in tested for one in row.sessions), default=1),
        )


class Source(Record):
    """One repository of a release."""

    repo: Name
    codebase: Codebase
    url: Address
    licence: str
    tasks: int
    mined_until: datetime = Field(description="When the newest change that was looked at reached the branch.")
    funnel: Funnel
    family: Family


class Manifest(Record):
    """Facts of a release."""

    name: str
    version: str
    previous: str = Field(default="", description="Version the changelog compares with.")
    made_at: datetime
    made_by: str = Field(description="'perfquarry X.Y.Z'.")
    sources: list[Source]
    machines: list[Machine]
    rows: dict[str, int] = Field(description="Rows by configuration.")
    accepted_by_curators: int
    left_out: list[LeftOut]
    without_folder: list[LeftOut] = Field(default_factory=list, description="Released tasks without a task folder.")
    image_bytes: int = Field(default=0, description="Of all images, each blob counted once; 0: no task folders.")
    oldest: datetime | None = Field(description="When the oldest fix became public.")
    newest: datetime | None = Field(description="The same of the newest fix: the decontamination date.")

    @property
    def expected_false(self) -> float:
        """Expected number of false tasks, an upper bound: the families' sum."""
        return sum(source.family.expected_false for source in self.sources)

    def write(self, folder: Path) -> None:
        """Writes it into a release."""
        (folder / FILE).write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest of a release; what another version wrote that this one does not know is passed over.

        Raises:
            InputError: the folder is no release, or its manifest is damaged.
        """
        try:
            text = plain_text(folder / FILE, LARGEST)
        except (OSError, ValueError) as error:
            raise InputError(f"{folder} is no release: cannot read {FILE}: {error}") from error
        if not text:
            raise InputError(f"{folder} is no release: it has no {FILE}")
        try:
            return cls.model_validate_json(text, extra="ignore")
        except ValidationError as error:
            raise InputError(f"{folder / FILE} is damaged: {validation_message(error)}") from error
