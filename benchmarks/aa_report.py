"""What the timings of A/A and of known gains say: the section of docs/benchmarks.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.aa_packages import GAINS, KINDS, known_nodes
from benchmarks.report import machine_facts, percent, table
from perfquarry.curation.evidence import decide
from perfquarry.curation.settings import SelectSettings
from perfquarry.data.records import Evidence, Stamp, Timing


@dataclass(frozen=True)
class Batch:
    """Timings of tests that were measured in the same processes."""

    key: str
    """'aa/REPOSITORY/LOAD/NUMBER' or 'known/LOAD/NUMBER/PART'."""
    timings: list[Timing]
    nodes: Mapping[str, str]
    """Node ids by workload id."""
    seconds: float

    @property
    def kind(self) -> str:
        """What the table's row is about."""
        words = self.key.split("/")
        return f"{words[1]}, {words[2]}" if words[0] == "aa" else words[1]


@dataclass(frozen=True)
class Group:
    """Batches of one kind, decided together, as a repository is."""

    name: str
    evidence: list[Evidence]
    nodes: dict[str, str]
    seconds: float
    load: float
    """Processor use of others on the core, median over processes: what 'quiet' was really like."""

    @property
    def spreads(self) -> np.ndarray:
        """Spread of one pair, by workload."""
        return np.array([e.sessions[0].pair_spread for e in self.evidence if e.sessions and e.sessions[0].pair_spread])

    @property
    def pairs(self) -> float:
        """Mean pairs of a workload, both sessions."""
        return float(np.mean([sum(s.n_base for s in e.sessions) for e in self.evidence]))


def grouped(batches: Sequence[Batch], prefix: str, select: SelectSettings, stamp: Stamp) -> list[Group]:
    """Batches of A/A ('aa') or of known gains ('known') by kind."""
    chosen = [batch for batch in batches if batch.key.startswith(prefix)]
    groups = []
    for name in dict.fromkeys(batch.kind for batch in chosen):
        mine = [batch for batch in chosen if batch.kind == name]
        timings = [row for batch in mine for row in batch.timings]
        evidence = decide(timings, select, stamp)
        load = float(np.median([row.foreign_load for row in timings]))
        nodes = {one: node for batch in mine for one, node in batch.nodes.items()}
        groups.append(Group(name, evidence, nodes, sum(batch.seconds for batch in mine), load))
    return groups


def section(batches: Sequence[Batch], select: SelectSettings, stamp: Stamp) -> str:
    """The whole section."""
    same, gained = (grouped(batches, prefix, select, stamp) for prefix in ("aa", "known"))
    return f"""\
{machine_facts()}. Base against a second copy of itself: every accepted test is a false one. *Load*: of others \
on the core, processors. *Spread*: standard deviation of the log ratio of one pair, median and 90 % quantile over tests.

{_same(same)}

Reasons: {"; ".join(f"{group.name}: {_reasons(group)}" for group in same)}.

Known gains: tests of a package that do exactly so much less work on the head, of 0.2, 2 and 20 ms or so. *Covered*: \
first sessions whose interval contains the true speedup.

{_gained(gained)}
"""


def _same(groups: Sequence[Group]) -> str:
    rows = []
    for group in groups:
        firsts = [e.sessions[0] for e in group.evidence if e.sessions]
        outside = sum(not one.low <= 1 <= one.high for one in firsts)
        rows.append(
            [
                group.name,
                f"{group.load:.2f}",
                str(len(group.evidence)),
                str(sum(e.status == "kept" for e in group.evidence)),
                str(sum(len(e.sessions) > 1 for e in group.evidence)),
                percent(outside / max(1, len(firsts))),
                _spread(group.spreads),
                f"{group.pairs:.1f}",
                f"{group.seconds / max(1, len(group.evidence)):.1f}",
            ]
        )
    heads = [
        "tests",
        "load",
        "number",
        "falsely accepted",
        "confirmed",
        "interval without 1",
        "spread",
        "pairs",
        "seconds each",
    ]
    return table(heads, rows)


def _gained(groups: Sequence[Group]) -> str:
    truth = known_nodes()
    rows = []
    for group in groups:
        for kind in KINDS:
            for gain in GAINS:
                found = [e for e in group.evidence if truth[group.nodes[e.workload_id]] == (kind, gain)]
                firsts = [e.sessions[0] for e in found if e.sessions]
                if not firsts:
                    continue
                true = 1 / (1 - gain)
                covered = np.mean([one.low <= true <= one.high for one in firsts])
                kept = [e.speedup for e in found if e.status == "kept"]
                rows.append(
                    [
                        group.name,
                        kind,
                        percent(gain, 0),
                        f"{len(kept)} of {len(found)}",
                        f"{np.median([one.speedup for one in firsts]):.4f} ({true:.4f})",
                        percent(float(covered)),
                        _spread(np.array([one.pair_spread for one in firsts])),
                        f"{np.mean([sum(s.n_base for s in e.sessions) for e in found]):.1f}",
                    ]
                )
    return table(["load", "work", "gain", "accepted", "speedup (true)", "covered", "spread", "pairs"], rows)


def _spread(spreads: np.ndarray) -> str:
    if not len(spreads):
        return "–"
    return f"{percent(float(np.median(spreads)))}, {percent(float(np.quantile(spreads, 0.9)))}"


def _reasons(group: Group) -> str:
    counts = Counter(str(e.reason) if e.reason else "kept" for e in group.evidence)
    return ", ".join(f"{reason} {count}" for reason, count in counts.most_common())
