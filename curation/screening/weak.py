"""Workloads that say little: too short, alone in their gain, or with results and times of chance."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from perfquarry.curation.screening.found import FoundProblem
from perfquarry.curation.settings import ScreenSettings
from perfquarry.data import syntax
from perfquarry.data.records import Evidence, Reason, Severity, Task

_CHANCE = {
    "time": ("sleep", "time", "perf_counter", "monotonic", "now", "utcnow", "today", "time_ns"),
    "random": ("random", "randint", "randrange", "choice", "choices", "shuffle", "sample", "uniform", "gauss",
               "urandom", "uuid1", "uuid4", "token_hex", "rand", "randn", "standard_normal", "permutation"),
    "network": ("socket", "create_connection", "urlopen", "fetch", "HTTPConnection", "http_client"),
    "threads": ("Thread", "ThreadPoolExecutor", "Process", "Pool", "fork"),
}  # fmt: skip
_SEED = re.compile(r"\bseed\s*\(|\b(?:Random|RandomState|default_rng|Generator)\s*\(\s*\S")
_DISAGREE = 1.05
"""Ratio of the nearest ends of two sessions' intervals from which they disagree."""
_REASONS = ("workload_failed", "workload_timeout")


def weak(task: Task, evidence: Sequence[Evidence], settings: ScreenSettings) -> Iterator[FoundProblem]:
    """Calls too short to be timed by a solver, a gain that few workloads show or others pay for, noise's figures."""
    yield from _short(task, settings)
    yield from _hidden_by_noise(task, evidence)
    yield from _slower_elsewhere(task, evidence)
    measured = len({row.workload_id for row in evidence}) or len(task.workloads)
    gains = sorted(((max(math.log(one.speedup), 0.0), one) for one in task.workloads), key=lambda pair: -pair[0])
    if len(task.workloads) == 1:
        best = task.workloads[0]
        text = f"the gain comes from one workload only, of {measured} measured: {best.node} ({best.speedup:.2f}×)"
        severity: Severity = "warning" if measured > 1 else "info"
        yield FoundProblem("single-workload", text, best.node, severity, {"measured": measured})
    elif gains and (total := sum(gain for gain, _ in gains)):
        share, best = gains[0][0] / total, gains[0][1]
        if share >= settings.dominant_share:
            others = ", ".join(f"{one.speedup:.2f}×" for _, one in gains[1:6])
            text = f"{best.node} has {share:.0%} of the log gain ({best.speedup:.2f}×; the others {others})"
            yield FoundProblem("uneven-gain", text, best.node, "info", {"share": round(share, 3), "measured": measured})


def _short(task: Task, settings: ScreenSettings) -> Iterator[FoundProblem]:
    short = {one.node: one.base_seconds for one in task.workloads if one.base_seconds < settings.short_seconds}
    if short:
        everything = len(short) == len(task.workloads)
        times = ", ".join(f"{seconds * 1e6:.3g} µs" for seconds in sorted(short.values())[:6])
        text = (
            f"{len(short)} of {len(task.workloads)} workloads are calls of less than "
            f"{settings.short_seconds * 1e6:g} µs at the base: {times}"
        )
        yield FoundProblem("too-short", text, "", "warning" if everything else "info", {"base_seconds": short})


def _hidden_by_noise(task: Task, evidence: Sequence[Evidence]) -> Iterator[FoundProblem]:
    hidden = [row for row in evidence if row.reason in (Reason.UNDECIDED, Reason.UNSTABLE)]
    if hidden:
        measured = len({row.workload_id for row in evidence})
        text = (
            f"noise hid what {len(hidden)} of {measured} workloads show, so that the speedup of {task.speedup:.2f}× is "
            f"that of the others; the next run measures those that are undecided once more"
        )
        yield FoundProblem("noise", text, "", "warning", {"workloads": [row.workload_id for row in hidden]})


def _slower_elsewhere(task: Task, evidence: Sequence[Evidence]) -> Iterator[FoundProblem]:
    slower = {row.workload_id: row.sessions[-1] for row in evidence if row.reason == Reason.SLOWER and row.sessions}
    if slower:
        measured = len({row.workload_id for row in evidence})
        overall = f"; over all {task.timed_workloads} timed {task.overall_speedup:.2f}×" if task.overall_speedup else ""
        worst = min(one.speedup for one in slower.values())
        text = (
            f"{len(slower)} of {measured} workloads measured got slower, the worst {worst:.2f}×{overall}: the change "
            f"pays for its gain elsewhere"
        )
        yield FoundProblem("slower-elsewhere", text, "", "warning", {"workloads": sorted(slower)})


def nondeterministic(task: Task, evidence: Sequence[Evidence], tests: Mapping[str, str]) -> Iterator[FoundProblem]:
    """Workloads whose text draws on chance, that failed while timed, or whose two sessions disagree."""
    accepted = {one.workload_id: one.node for one in task.workloads}
    for row in evidence:
        name = accepted.get(row.workload_id)
        if name and len(row.sessions) > 1:
            first, last = row.sessions[0], row.sessions[-1]
            if max(first.low / last.high, last.low / first.high) > _DISAGREE:
                text = (
                    f"the two sessions disagree: {first.speedup:.2f}× [{first.low:.2f}, {first.high:.2f}] and then "
                    f"{last.speedup:.2f}× [{last.low:.2f}, {last.high:.2f}]"
                )
                yield FoundProblem("sessions-disagree", text, name, "info")
        elif not name and row.reason in _REASONS:
            text = f"a workload of the change failed while it was timed ({row.reason}): {row.detail}"
            yield FoundProblem("non-determinism", text, row.workload_id, "info")
    for one in task.workloads:
        words = chance_in(tests.get(one.code, "") if one.source == "unit-test" else one.code)
        if one.source != "unit-test":
            words.pop("time", None)  # the contract's run_test reads the clock
        if words:
            called = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in words.items())
            yield FoundProblem("non-determinism", f"its text calls {called}", one.node, "info", {"calls": words})


def chance_in(source: str) -> dict[str, list[str]]:
    """Names that a Python text calls whose outcome or duration is a matter of chance, by kind; seeds excuse numbers."""
    try:
        tree = syntax.parse(source)
    except (SyntaxError, ValueError):
        return {}
    called = {
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    }
    found = {kind: sorted(called.intersection(names)) for kind, names in _CHANCE.items()}
    if _SEED.search(source):
        found.pop("random")
    return {kind: names for kind, names in found.items() if names}
