"""`release.json`: what a release says of itself; card and changelog are made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from pydantic import Field, ValidationError

from curation.stability import q_values
from data.errors import InputError
from data.funnel import Funnel
from data.records import Evidence, Machine, Record

FILE = "release.json"


class LeftOut(Record):
    """An accepted task that is not released."""

    task_id: str
    why: str


class Family(Record):
    """The family of all tests of one repository, and what its q-values say of false discoveries."""

    workloads: int = Field(description="Tests of workloads that were ever decided on: the family of the q-values.")
    accepted: int = Field(description="Those that were accepted (R).")
    max_q: float = Field(description="Largest q-value of these.")

    @property
    def expected_false(self) -> float:
        """At most so many false workloads are expected among the accepted ones: q_max · R.

        A q-value is the smallest false discovery rate at which its test is still taken (Storey 2002, §4;
        here by Benjamini & Hochberg 1995), so that of the R taken at q_max at most q_max · R are
        expected to be false. The confirming session, which false ones pass less often than true ones, can
        only lower the share. A false task has at least one false workload and no true one: the same number bounds
        the false tasks.
        """
        return self.max_q * self.accepted

    @classmethod
    def of(cls, evidence: Sequence[Evidence], decisions: Mapping[str, str]) -> Family:
        """From the evidence of all decisions ever made over a repository, and those in force by change.

        A change that was tried with several settings had as many chances, so the q-values are made anew
        over all these tests together; a later decision that saw the same timings again made no new test.
        """
        tests = {(row.p_value, row.workload_id, row.speedup): row for row in evidence if row.p_value is not None}
        q_of = dict(zip(tests, q_values([p for p, _, _ in tests]), strict=True))
        accepted = [
            q_of[row.p_value, row.workload_id, row.speedup]
            for row in evidence
            if row.status == "kept" and row.p_value is not None and decisions.get(row.change_id) == row.config_hash
        ]
        return cls(workloads=len(tests), accepted=len(accepted), max_q=max(accepted, default=0.0))


class Source(Record):
    """One repository of a release."""

    repo: str
    codebase: str
    url: str
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
        """The manifest of a release.

        Raises:
            InputError: the folder is no release, or its manifest is damaged.
        """
        try:
            return cls.model_validate_json((folder / FILE).read_bytes())
        except OSError as error:
            raise InputError(f"{folder} is no release: cannot read {FILE}: {error.strerror or error}") from error
        except ValidationError as error:
            raise InputError(f"{folder / FILE} is damaged: {error.errors()[0]['msg']}") from error
