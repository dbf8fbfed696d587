"""One change that is being given workloads: what every source of workloads gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from perfquarry.data.records import Change, Side, Source, Stamp, Verdict, Workload
from perfquarry.harness.contracts import BuiltSide
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.trees.tree_copies import can_have_own_trees
from perfquarry.testgen.settings import GenerateSettings
from perfquarry.testgen.traced import Trace, has_native_source, texts_of, trace_of


@dataclass
class Seen:
    """What unit tests showed of a change, for the sources that come after them."""

    files: list[str] = field(default_factory=list)
    """Test files that ran; none where no line that was executed says anything."""
    nodes: list[str] = field(default_factory=list)
    """Tests of them that execute changed lines and pass at the base, those that execute most first."""


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
    seen: Seen = field(default_factory=Seen, compare=False)
    """Filled by the source `unit-test`."""

    @property
    def sides(self) -> dict[Side, BuiltSide]:
        """Both sides by name."""
        return {"base": self.base, "head": self.head}

    @cached_property
    def trace(self) -> Trace:
        """What of the change can be traced."""
        return trace_of(self.change, self.verdict, texts_of(self.base.tree, self.head.tree))

    def with_own_trees(self) -> Case | None:
        """The same with a copy of its tree for each process, into which it may write; None where they are too large."""
        if self.base.writable_tree or not all(map(can_have_own_trees, self.sides.values())):
            return None
        base, head = (replace(side, writable_tree=True) for side in (self.base, self.head))
        return replace(self, base=base, head=head, seen=Seen())

    @property
    def changes_code(self) -> bool:
        """Whether anything changed that a workload could execute: statements of functions, or native code."""
        return bool(self.trace) or self.changes_native

    @cached_property
    def changes_native(self) -> bool:
        """Whether source changed that the build compiles: where it compiles nothing, no workload executes any of it."""
        built = (side.tree.rglob("*.so") for side in (self.base, self.head))
        return has_native_source(self.change) and any(next(found, None) for found in built)

    @property
    def why_unchanged(self) -> str:
        """Where nothing changed that a workload could execute: why."""
        uncompiled = has_native_source(self.change)
        return "the build compiles nothing of this tree" if uncompiled else "no statement of a function changed"

    def row(self, source: Source, code: str = "", **columns: Any) -> Workload:
        """A workload of the change; without code, what a source says of the change as a whole."""
        return Workload.of(self.stamp, self.change.change_id, source, code, **columns)
