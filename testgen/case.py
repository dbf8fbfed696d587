"""One change that is being given workloads: what every source of workloads gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfquarry.data.records import Change, Side, Stamp, Verdict
from perfquarry.data.settings import GenerateSettings
from perfquarry.harness.contracts import BuiltSide
from perfquarry.harness.probing.prober import Prober


@dataclass(frozen=True)
class Case:
    """A change with both sides built, and what it takes to run code on them."""

    change: Change
    verdict: Verdict
    base: BuiltSide
    head: BuiltSide
    prober: Prober
    settings: GenerateSettings
    stamp: Stamp
    tools: Mapping[Side, Path]
    """Folder with coverage and yappi for each side's interpreter (`Environments.tool_overlay`); a side left out
    must have them in its environment."""
    jobs: int = 2
    """Processes run at once."""

    @property
    def sides(self) -> dict[Side, BuiltSide]:
        """Both sides by name."""
        return {"base": self.base, "head": self.head}
