"""What the probe's mode 'record' is asked for, and what it reports: calls with their arguments."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from perfquarry.data.records import Record


class RecordRequest(Record):
    """Which calls mode 'record' keeps, and how much of them."""

    functions: list[str] = Field(description="Changed functions, 'path::Class.method' with the base's paths.")
    lines: dict[str, list[int]] = Field(description="By path: lines whose execution makes a call worth keeping.")
    test_files: list[str] = Field(description="Patterns of the names of test files.")
    calls: int = Field(description="Most calls kept of one function.")
    test_calls: int = Field(description="Most calls kept of one function in one test.")
    values: int = Field(description="Most values in the arguments of one call.")
    bytes: int = Field(description="Longest description of the arguments of one call.")
    seconds: float = Field(description="After which nothing more is recorded.")
    test_seconds: float = Field(description="After which nothing more is recorded in one test.")


class Recorded(Record):
    """One call of a function of the tree: what it takes to make it again. Described values are unchecked JSON."""

    function: str = Field(max_length=500, description="'path::Class.method'.")
    module: str = Field(max_length=200, description="From which it or its class is imported.")
    path: list[str] = Field(max_length=8, description="Names that lead from the module to the function.")
    kind: Literal["function", "static", "class", "method", "property", "init"]
    level: int = Field(ge=0, description="0: nearest public function around the changed one.")
    positional: list[JsonValue]
    named: dict[str, JsonValue]
    lazy: bool = Field(description="Whether the result is an iterator.")
    digest: str = Field(max_length=64, description="SHA-256 of the view of result and arguments afterwards, or empty.")
    hits: list[tuple[str, int]] = Field(description="Changed functions and lines (0: all) executed meanwhile.")
    node: str = Field(description="The test.")


class Unrecorded(Record):
    """Calls that could not be recorded."""

    function: str = Field(max_length=500)
    reason: str = Field(max_length=500)
    count: int
