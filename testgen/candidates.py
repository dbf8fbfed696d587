"""Tests that execute a change: what is known of each, and which of them to keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

from data.records import Hit, Reason, Side
from harness.contracts import ProbeItem
from testgen.definitions import NodeId

TOO_SHORT_SECONDS = 20e-6
"""A test below it cannot be timed well: the clock and the loop around the call show."""
SHORT_SECONDS = 50e-6
LONG_SECONDS = 1.0
"""A test above it costs minutes to measure."""


@dataclass
class Candidate:
    """One test that executes a change, what each process saw of it, and what speaks against it."""

    node: str
    hits: list[Hit]
    first: dict[Side, ProbeItem]
    """What the run that found it saw (traced, so its seconds are too many)."""
    runs: dict[Side, list[ProbeItem]] = field(default_factory=lambda: {"base": [], "head": []})
    reason: Reason | None = None
    detail: str = ""
    breaks: bool = False
    """Whether it shows that the change alters behaviour."""

    @cached_property
    def lines(self) -> frozenset[tuple[str, str, int]]:
        """Changed lines it executes: (side, path, line)."""
        return frozenset((hit.side, hit.path, line) for hit in self.hits for line in hit.lines)

    @property
    def seconds(self) -> float:
        """Median of the base's untraced runs; the first run's where there is no other."""
        passed = [item.seconds for item in self.runs["base"] if item.outcome == "passed"]
        first = self.first.get("base")
        return median(passed) if passed else first.seconds if first else 0.0

    @property
    def is_checked(self) -> bool:
        """Whether it passed every time, and not only while it was traced."""
        return self.reason is None and bool(self.runs["base"])

    def may_be_better(self, all_failures: bool) -> bool:
        """Whether its first run failed in a way that others can refute: at the head only, or in any."""
        only_head = self.reason == Reason.FAILS_ON_HEAD
        return len(self.first) == 2 and (only_head or (all_failures and self.reason == Reason.FAILS_ON_BASE))

    def reject(self, reason: Reason, detail: str) -> None:
        """Records why it is no workload."""
        self.reason, self.detail = reason, detail

    def restart(self) -> None:
        """Forgets the first run."""
        self.first = {}
        self.reason, self.detail = None, ""

    def settle(self) -> None:
        """Judges by all runs: it must pass in each of them."""
        seen = {side: [*([first] if (first := self.first.get(side)) else []), *self.runs[side]] for side in self.runs}
        failed = [(side, item) for side, items in seen.items() for item in items if item.outcome != "passed"]
        if not failed:
            return
        passed = {side: [item.outcome == "passed" for item in items] for side, items in seen.items()}
        reason = Reason.FLAKY
        if any(item.outcome == "timeout" for _, item in failed):
            reason = Reason.TEST_TIMEOUT
        elif not any(passed["base"]):
            reason = Reason.FAILS_ON_BASE
        elif all(passed["base"]) and not any(passed["head"]):
            reason = Reason.FAILS_ON_HEAD
        side, item = failed[0]
        self.reject(reason, f"{item.outcome} at the {side}: {item.message}")


def choose(candidates: Iterable[Candidate], limit: int) -> list[Candidate]:
    """The best `limit` candidates, best first.

    Each pick is the one that executes most changed lines not yet executed by earlier picks,
    then most changed lines; then of a function and a file picked least; then one that can be
    timed well. Those too short to be timed come last.
    """
    left = sorted(candidates, key=lambda candidate: candidate.node)
    chosen: list[Candidate] = []
    covered: set[tuple[str, str, int]] = set()
    picked: Counter[object] = Counter()
    while left and len(chosen) < limit:
        best = min(left, key=lambda candidate: _cost(candidate, covered, picked))
        left.remove(best)
        chosen.append(best)
        covered |= best.lines
        place = NodeId.parse(best.node)
        picked.update([place, place.path])
    return chosen


def _cost(
    candidate: Candidate, covered: set[tuple[str, str, int]], picked: Counter[object]
) -> tuple[bool, int, int, int, int, bool, float]:
    lines, seconds = candidate.lines, candidate.seconds
    place = NodeId.parse(candidate.node)
    return (
        seconds < TOO_SHORT_SECONDS,
        -len(lines - covered),
        -len(lines),
        picked[place],
        picked[place.path],
        not SHORT_SECONDS <= seconds <= LONG_SECONDS,
        -seconds,
    )
