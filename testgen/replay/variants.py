"""Which replays of verified calls are worth a trial: as recorded, on one receiver, and scaled up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from perfquarry.data.records import Side
from perfquarry.harness.contracts import Limits, ProbeItem, ProbeRequest
from perfquarry.harness.probing.recording import Recorded
from perfquarry.testgen.caching import first_call
from perfquarry.testgen.case import Case
from perfquarry.testgen.replay.expressions import AXES, WAYS, Axis, Unwritable
from perfquarry.testgen.replay.texts import Replay
from perfquarry.testgen.runs import missing_item

SURVEY_CALLS = 2
SURVEY_TIMEOUT = 1.0
"""Seconds after which one surveyed script is given up."""
SURVEY_SEED = 2
MAX_PROCESSES = 4
"""Processes for the same scripts, of which one may end each."""
SCALED_CALLS = 3
"""Calls of one function of which scaled ones are tried."""
SHARED_ROUNDS = 200
SETUP_SECONDS = 0.3
"""Seconds that the setup of a script should take at most."""
DEAR = 4
"""Times that first calls must be dearer at the head than at the base to show a cache."""
LEAST = 1e-7
"""Seconds that anything takes at least."""
PART = 0.6
"""Share of the largest text that calls as recorded may fill."""


def run_scripts(case: Case, side: Side, texts: dict[str, str], calls: int) -> dict[str, ProbeItem]:
    """Runs scripts in one process, in further ones past those that end it.

    Args:
        calls: timed calls of each; 0 for a mere check.
    """
    items: dict[str, ProbeItem] = {}
    for _ in range(MAX_PROCESSES):
        waiting = {name: text for name, text in texts.items() if name not in items}
        if not waiting:
            break
        request = ProbeRequest(
            mode="time" if calls else "check",
            scripts=waiting,
            warmups=1,
            calls=dict.fromkeys(waiting, calls) if calls else {},
            test_timeout=SURVEY_TIMEOUT,
            max_seconds=case.settings.timeout,
        )
        limits = Limits(wall_seconds=case.settings.timeout, memory_bytes=case.settings.memory_bytes)
        report = case.prober.run(case.sides[side], request, limits=limits, hash_seed=SURVEY_SEED)
        items.update((item.node, item) for item in report.items)
        if report.outcome == "timeout":
            return {name: missing_item(name, report) for name in texts} | items
        if not report.items:
            break
    return items


class Survey:
    """Rough times of replays on both sides, one process a side."""

    def __init__(self, case: Case, replays: Iterable[Replay]) -> None:
        self._settings = case.settings.replay
        self._shortest = case.settings.scripts.min_seconds
        replays = list(replays)
        texts = {one.name: one.script() for one in replays}
        self._items = {side: run_scripts(case, side, texts, SURVEY_CALLS) for side in case.sides}
        singles = [one for one in replays if one.rounds == 1 and self.seconds(one)]
        names = {name for one in singles for name in one.functions}
        self._caching = {name for name in names if self._caches([one for one in singles if name in one.functions])}

    def seconds(self, replay: Replay, side: Side = "base") -> float | None:
        """The quickest call on a side; None where it failed on any, or is too long on the base."""
        found = {one: self._items[one].get(replay.name) for one in self._items}
        if not all(item is not None and item.outcome == "passed" and item.samples for item in found.values()):
            return None
        times = {one: min(item.samples) for one, item in found.items() if item is not None}
        base = self._items["base"][replay.name]
        least = min(times["base"], base.call_seconds or times["base"])  # without what it waited for a processor
        return times[side] if least <= self._settings.call_seconds else None

    def gain(self, replay: Replay) -> float:
        """Base over head; 0 where it is not known."""
        base, head = self.seconds(replay), self.seconds(replay, "head")
        return base / max(head, 1e-9) if base is not None and head is not None else 0.0

    def is_cached(self, replay: Replay) -> bool:
        """Whether the head keeps results of its functions between calls: then further rounds time look-ups."""
        return not self._caching.isdisjoint(replay.functions)

    def _caches(self, replays: Sequence[Replay]) -> bool:
        """Whether first calls are much dearer than later ones with equal arguments, and that at the head only."""
        dear = {
            side: median(first_call(items[one.name]) / max(min(items[one.name].samples), LEAST) for one in replays)
            for side, items in self._items.items()
        }
        return dear["head"] > DEAR * dear["base"]

    def setup_seconds(self, replay: Replay) -> float:
        """Of one round on the base."""
        item = self._items["base"].get(replay.name)
        return item.setup_seconds / replay.rounds if item else 0.0

    def in_rounds(self, replay: Replay, like: Replay) -> Replay:
        """The replay with as many rounds as fill the wanted time, judged by one that was surveyed."""
        share = len(replay.calls) / len(like.calls)
        if self.is_cached(replay):
            return replace(replay, rounds=1)
        rounds = min(
            self._settings.wanted_seconds / (self._once(like) * share),
            self._settings.max_calls / len(replay.calls),
            SETUP_SECONDS / max(self.setup_seconds(like) * share, LEAST),
        )
        return replace(replay, rounds=max(1, math.ceil(rounds)))

    def is_timeable(self, replay: Replay, like: Replay) -> bool:
        """Whether its rounds last long enough; of cached calls the trial shows it."""
        if self.is_cached(replay):
            return not replay.shared
        share = len(replay.calls) / len(like.calls)
        return self._once(like) * share * replay.rounds > self._shortest

    def _once(self, replay: Replay) -> float:
        """Seconds of one round on the base."""
        return max((self.seconds(replay) or 0.0) / replay.rounds, LEAST)


def choose(case: Case, groups: Sequence[Sequence[Replay]]) -> list[Replay]:
    """Replays worth a trial: calls as recorded, of each function in turn, then those of them that seem to gain most.

    Args:
        groups: verified single calls by function, the most informative function first.
    """
    limit = case.settings.replay.max_scripts
    functions = [_Function(case, group) for group in groups if group]
    survey = Survey(case, [one for function in functions for one in function.all()])
    plain = [one for function in functions for one in function.plain(survey)][: max(1, limit // 2)]
    tried = {name for one in plain for name in one.functions}
    enlarged = [pair for function in functions for pair in function.enlarged(survey)]
    best = [one for _, one in sorted(enlarged, key=lambda pair: -pair[0]) if tried.issuperset(one.functions)]
    return (plain + best)[:limit]


class _Function:
    """The replays of one function's calls."""

    def __init__(self, case: Case, group: Sequence[Replay]) -> None:
        self._factors = case.settings.replay.factors
        first = {
            id(one.calls[0]): one for one in reversed(group)
        }  # each call in the first way in which it was verified
        last = {id(one.calls[0]): one for one in group}
        limit = int(PART * case.settings.scripts.code_bytes)
        by_way = [[one for one in group if one.way == way and first[id(one.calls[0])] is one] for way in WAYS]
        self._plain = [Replay(calls, some[0].way) for some in by_way if (calls := _fitting(some, limit))]
        methods = [one for one in first.values() if one.calls[0].kind == "method"]
        self._shared = [replace(one, shared=True, rounds=SHARED_ROUNDS) for one in methods[:SCALED_CALLS]]
        made = sorted(first.values(), key=_size, reverse=True)[:SCALED_CALLS]
        short = sorted(last.values(), key=_size, reverse=True)[:SCALED_CALLS]
        seen: set[tuple[str, int]] = set()
        self._scaled = {
            (axis, times): _scaled(made if axis == "calls" else short, axis, times, seen)
            for axis in AXES
            for times in self._factors
        }

    def all(self) -> list[Replay]:
        """What is surveyed."""
        return [*self._plain, *self._shared, *(one for some in self._scaled.values() for one in some)]

    def plain(self, survey: Survey) -> list[Replay]:
        """The calls as recorded, each once a round."""
        found = [(survey.in_rounds(one, one), one) for one in self._plain if survey.seconds(one) is not None]
        return [one for one, like in found if survey.is_timeable(one, like)]

    def enlarged(self, survey: Survey) -> list[tuple[float, Replay]]:
        """The best call on one instance, and of each way to enlarge arguments the factor that gains most."""
        shared = [(survey.gain(one), survey.in_rounds(one, one), one) for one in self._shared if survey.seconds(one)]
        timeable = [(gain, one) for gain, one, like in shared if survey.is_timeable(one, like)]
        ways = [timeable]
        for axis in AXES:
            pairs = [self._together(survey, axis, times) for times in self._factors]
            ways.append([pair for pair in pairs if pair])
        return [max(pairs, key=lambda pair: pair[0]) for pairs in ways if pairs]

    def _together(self, survey: Survey, axis: Axis, times: int) -> tuple[float, Replay] | None:
        """The calls that can be scaled so, as one replay, and their middle gain."""
        usable = [one for one in self._scaled[axis, times] if survey.seconds(one) is not None]
        usable = [one for one in usable if one.way == usable[0].way]
        if not usable:
            return None
        longest = max(usable, key=lambda one: survey.seconds(one) or 0.0)
        together = replace(usable[0], calls=tuple(call for one in usable for call in one.calls))
        together = survey.in_rounds(together, longest)
        if not survey.is_timeable(together, longest):
            return None
        return median(survey.gain(one) for one in usable), together


def _scaled(singles: Sequence[Replay], axis: Axis, times: int, seen: set[tuple[str, int]]) -> list[Replay]:
    """Single calls scaled, without those that cannot be and those that another axis writes alike."""
    found = []
    for one in singles:
        scaled = replace(one, axis=axis, times=times)
        try:
            scaled.script()
        except Unwritable:
            continue
        if (scaled.written(), times) not in seen:
            seen.add((scaled.written(), times))
            found.append(scaled)
    return found


def _fitting(singles: Sequence[Replay], limit: int) -> tuple[Recorded, ...]:
    """Calls whose text is within a limit, those that execute most changed lines first."""
    found: list[Recorded] = []
    for one in sorted(singles, key=lambda one: -len(one.calls[0].hits)):
        size = len(one.written())
        if size <= limit:
            limit -= size
            found += one.calls
    return tuple(found)


def _size(single: Replay) -> tuple[int, int]:
    return len(single.calls[0].hits), len(single.written())
