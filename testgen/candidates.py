"""Tests that execute a change: what is known of each, and which of them to keep."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

from perfquarry.data.records import Hit, Reason, Side
from perfquarry.harness.building.python2 import fails_in_tests_since
from perfquarry.harness.contracts import ProbeItem
from perfquarry.testgen.definitions import NodeId
from perfquarry.testgen.traced import lines_of

TOO_SHORT_SECONDS = 20e-6
"""A test below it cannot be timed well: the clock and the loop around the call show."""
SHORT_SECONDS = 50e-6
LONG_SECONDS = 1.0
"""A test above it costs ten minutes to measure."""
UNLIKELY = 4
"""Workloads kept that spend less time in the changed functions than the smallest gain: the profile may err."""
MOST_SECONDS = 1.5
"""Of one call of all workloads kept together: measuring makes at least sixty of them on each side."""
LITTLE_SECONDS = 0.2
"""The same of the workloads that can gain little, beside one that can gain more: they would cost most of the time."""
FEW = 3
"""As many quick tests make slow ones unnecessary."""
SHARES = (0.5, 0.2, 0.05)
"""Shares of a test's time that make a difference to what a change can gain; the smallest gain is the last."""

_PURE = r"[Pp]y|[Pp]ython|[Pp]ure|[Ff]allback"
_PURE_PARAMETER = re.compile(rf"\[(?:.*[-_.])?(?:{_PURE})(?:[-_.].*)?\]$|\[(?:.*-)?Py[A-Z].*\]$")
_PURE_CLASS = re.compile(r"::(Test)?(?:PurePython|Pure|Python|Py|Fallback)_?(?=[A-Z])")

_NEEDS = (
    (
        Reason.MODULE_MISSING,
        r"No module named|ModuleNotFoundError|could not import '|fixture '\w+' not found"
        r"|cannot open shared object file",
    ),
    (
        Reason.NEEDS_SERVICE,
        r"Connection ?Refused|gaierror|Name or service not known|Temporary failure in name resolution"
        r"|Network is unreachable|NewConnectionError|Max retries exceeded|could not connect to server"
        r"|urlopen error|(?:unable|failed) to download|internet connection",
    ),
    (Reason.NEEDS_TREE, r"Read-only file system|unable to open database|attempt to write a readonly database"),
    (
        Reason.NEEDS_FILE,
        r"FileNotFoundError|No such file or directory"
        r"|Downloader to obtain|to download the (?:\w+ )?(?:data|model)|python3? -m [\w.]+[. ]download",
    ),
)
NEEDS = (Reason.NEEDS_PYTHON_2, *(reason for reason, _ in _NEEDS))
"""What may be missing for a test where it runs: Python 2, a module, a service, a folder to write into, a file."""


@dataclass(eq=False)
class Candidate:
    """One test that executes a change, what each process saw of it, and what speaks against it."""

    node: str
    hits: list[Hit]
    first: dict[Side, ProbeItem]
    """What the run that found it saw (traced, so its seconds are too many)."""
    runs: dict[Side, list[ProbeItem]] = field(default_factory=lambda: {"base": [], "head": []})
    reason: Reason | None = None
    detail: str = ""
    profile: ProbeItem | None = None
    shares: dict[str, float] = field(default_factory=dict)
    """Share of the call's time on the base spent in each changed function and what it calls."""
    breaks: bool = False
    """Whether it shows that the change alters behaviour."""

    @cached_property
    def lines(self) -> frozenset[tuple[str, str, int]]:
        """Changed lines it executes: (side, path, line)."""
        return lines_of(self.hits)

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

    def passes(self, side: Side) -> int:
        """Runs with a tracer or a profiler that it passed on a side: as good as others, whatever they measure."""
        seen = [self.first.get(side), self.profile if side == "base" else None]
        return sum(item is not None and item.outcome == "passed" for item in seen)

    def may_be_better(self, all_failures: bool) -> bool:
        """Whether its first run failed in a way that others can refute: at the head only, or in any."""
        only_head = self.reason == Reason.FAILS_ON_HEAD
        return len(self.first) == 2 and (only_head or (all_failures and self.reason in (Reason.FAILS_ON_BASE, *NEEDS)))

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
            reason = need_of(failed[0][1].message) or Reason.FAILS_ON_BASE
        elif all(passed["base"]) and not any(passed["head"]):
            reason = Reason.FAILS_ON_HEAD
        side, item = failed[0]
        self.reject(reason, f"{item.outcome} at the {side}: {item.message}")

    def take_profile(self, item: ProbeItem, functions: frozenset[str]) -> None:
        """Keeps what the profiler saw: which share of the call the changed functions took."""
        self.profile = item
        if item.seconds > 0:
            totals = {one: item.statistics[one][2] for one in functions if one in item.statistics}
            self.shares = {one: min(1.0, total / item.seconds) for one, total in totals.items()}

    @property
    def rank_of_share(self) -> int:
        """0 for tests that spend most of their time in the changed functions; the last for those that hardly do.

        No change of a function can save a larger share of a test than the function took.
        """
        share = max(self.shares.values(), default=0.0)
        return sum(share < limit for limit in SHARES)

    @property
    def may_gain(self) -> bool:
        """Whether it spends enough time in the changed functions for a gain to show."""
        return self.rank_of_share < len(SHARES)

    @property
    def may_gain_much(self) -> bool:
        """Whether it spends so much time there that it could become 1.25 times as fast."""
        return self.rank_of_share < len(SHARES) - 1


def need_of(message: str) -> Reason | None:
    """The first of these that the text of a failure or of a skip speaks of."""
    if fails_in_tests_since(message):
        return Reason.NEEDS_PYTHON_2
    return next((reason for reason, pattern in _NEEDS if re.search(pattern, message, re.I)), None)


def without_slow(candidates: Sequence[Candidate], seconds: float) -> list[Candidate]:
    """Leaves out the tests that take longer, unless hardly any would be left."""
    quick = [candidate for candidate in candidates if candidate.seconds <= seconds]
    return quick if len(quick) >= FEW else list(candidates)


def without_twins(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Leaves out tests of a pure Python implementation that are there for a compiled one, too.

    For changes of native code, of which no line is traced. Such tests have parameters or classes for each:
    `test_add[py]` beside `test_add[c]`, `TestPyIStr` beside `TestIStr`.
    """
    nodes = {candidate.node for candidate in candidates}
    functions = {NodeId.parse(node) for node in nodes if not _PURE_PARAMETER.search(node)}

    def is_twin(node: str) -> bool:
        if _PURE_PARAMETER.search(node) and NodeId.parse(node) in functions:
            return True
        return _PURE_CLASS.sub(r"::\1", node) in nodes - {node}

    return [candidate for candidate in candidates if not is_twin(candidate.node)]


def within(candidates: Sequence[Candidate], seconds: float) -> list[Candidate]:
    """The first, and of the others, in their order, those whose calls together fit into the time."""
    kept = list(candidates[:1])
    for candidate in candidates[1:]:
        if sum(one.seconds for one in kept) + candidate.seconds <= seconds:
            kept.append(candidate)
    return kept


def choose(candidates: Iterable[Candidate], limit: int) -> list[Candidate]:
    """The best `limit` candidates, best first.

    First, for each changed function, the test that spends the largest share of its time
    there. Then those that spend the most in any of them, of these the ones that execute
    most changed lines not yet executed by earlier picks, then most changed lines; then of a
    test function and a file picked least; then those that can be timed well.
    """
    left = sorted(candidates, key=lambda candidate: candidate.node)
    best: dict[str, Candidate] = {}
    for candidate in left:
        for function, share in candidate.shares.items():
            if function not in best or share > best[function].shares[function]:
                best[function] = candidate
    order = sorted(best, key=lambda function: (-best[function].shares[function], function))
    chosen = list({best[one].node: best[one] for one in order}.values())[:limit]
    left = [candidate for candidate in left if candidate not in chosen]
    while left and len(chosen) < limit:
        covered = frozenset().union(*(candidate.lines for candidate in chosen))
        places = [NodeId.parse(candidate.node) for candidate in chosen]
        picked = Counter([*places, *(place.path for place in places)])
        left.sort(key=lambda candidate: _cost(candidate, covered, picked))
        chosen.append(left.pop(0))
    return chosen


def choose_dense(candidates: Iterable[Candidate], limit: int) -> list[Candidate]:
    """Half of them as `choose` does, half those that execute most changed lines per second."""
    candidates = list(candidates)
    chosen = choose(candidates, limit // 2)
    dense = sorted(candidates, key=lambda one: (-len(one.lines) / max(one.seconds, TOO_SHORT_SECONDS), one.node))
    return chosen + [one for one in dense if one not in chosen][: limit - len(chosen)]


def _cost(
    candidate: Candidate, covered: frozenset[tuple[str, str, int]], picked: Mapping[object, int]
) -> tuple[int, bool, int, int, int, int, bool, float]:
    lines, seconds = candidate.lines, candidate.seconds
    place = NodeId.parse(candidate.node)
    return (
        candidate.rank_of_share,
        seconds < TOO_SHORT_SECONDS,
        -len(lines - covered),
        -len(lines),
        picked.get(place, 0),
        picked.get(place.path, 0),
        not SHORT_SECONDS <= seconds <= LONG_SECONDS,
        -seconds,
    )


def best(candidates: Sequence[Candidate], limit: int) -> list[Candidate]:
    """The workloads to keep: few of those that hardly run the changed functions, because measuring takes minutes.

    Slow ones among them are left out where others can gain more.
    """
    chosen = choose(without_slow(candidates, LONG_SECONDS), limit)
    if not any(one.shares for one in candidates):
        return within(chosen, MOST_SECONDS)
    if much := [one for one in chosen if one.may_gain_much]:
        little = within([one for one in chosen if one not in much and one.seconds <= LITTLE_SECONDS], LITTLE_SECONDS)
        chosen = [one for one in chosen if one in much or one in little]
    chosen = within(chosen, MOST_SECONDS)
    return [one for one in chosen if one.may_gain] + [one for one in chosen if not one.may_gain][:UNLIKELY]
