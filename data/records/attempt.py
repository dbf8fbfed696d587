"""Table `attempts`: one try at making one side of one change runnable."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import Field

from perfquarry.data.records.build import Side
from perfquarry.data.records.row import Record, Row

Step = Literal["interpreter", "parse", "environment", "build", "import", "collect", "built"]


class Amendment(Record):
    """What repairs add to what a tree says of itself."""

    requirements: list[str] = Field(default_factory=list, description="Modules that were missing, and upper bounds.")
    python_below: str = Field(default="", description="Interpreters from this 'X.Y' on are left out; empty: none.")
    system_packages: list[str] = Field(default_factory=list, description="Debian packages that have to be installed.")

    def __bool__(self) -> bool:
        """Whether it changes anything."""
        return bool(self.requirements or self.python_below or self.system_packages)


class Attempt(Row):
    """Kept attempts made the side runnable; what was still missing when the tests were collected is in `log`."""

    TABLE: ClassVar[str] = "attempts"
    KEY: ClassVar[tuple[str, ...]] = ("change_id", "side", "number")

    change_id: str
    side: Side
    number: int = Field(description="From 1, in the order of trying.")
    merged_at: datetime = Field(description="The change's: neighbours in time begin with what served it.")
    python: str = Field(default="", description="Version of the interpreter, 'X.Y.Z'.")
    requirements: list[str] = Field(default_factory=list, description="Asked for, PEP 508.")
    commands: list[str] = Field(default_factory=list, description="Commands that were run.")
    outcome: Step = Field(description="The step that failed; collect: built, but tests cannot all be collected.")
    rule: str = Field(default="", description="What led to this attempt: a rule's name; empty: what the tree says.")
    amendment: Amendment = Amendment()
    chosen: bool = Field(default=False, description="Whether the change's builds are those of this attempt.")
    seconds: float = Field(default=0.0, description="Wall time of the attempt, both sides together.")
    log: str = Field(default="", description="End of what failed, at most 4 KiB.")
