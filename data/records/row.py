"""What every row of every table has."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

Status = Literal["kept", "rejected"]


class Record(BaseModel):
    """A value with named, typed, documented fields; immutable, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Row(Record):
    """One row of a table. `reason` is a short code (`data.records.reasons`), set when `status` is rejected."""

    TABLE: ClassVar[str]
    """Name of the table's folder."""
    KEY: ClassVar[tuple[str, ...]]
    """The columns that identify a row within one repository, stage version and configuration."""
    SCHEMA_VERSION: ClassVar[int] = 1

    repo: str = Field(description="Registry name of the repository, or the name derived from its URL or path.")
    status: Status = Field(default="kept", description="Whether the stage kept what the row is about.")
    reason: str | None = Field(default=None, description="Code of the reason of a rejection; null for kept rows.")
    stage_version: str = Field(description="Version of the code of the stage that wrote the row.")
    config_hash: str = Field(description="Hash of the settings of the stage that wrote the row.")
    created_at: datetime = Field(default_factory=lambda: datetime.now(UTC), description="When the row was made, UTC.")


class Stamp(Record):
    """Where a row comes from; `Change(**stamp.fields(), ...)` puts it into a row."""

    repo: str
    stage_version: str
    config_hash: str

    def fields(self) -> dict[str, Any]:
        """The three columns as keyword arguments of a row."""
        return {"repo": self.repo, "stage_version": self.stage_version, "config_hash": self.config_hash}


def content_id(*parts: Any) -> str:
    """Content address of JSON-able parts: 16 hexadecimal digits, the same on every machine."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
