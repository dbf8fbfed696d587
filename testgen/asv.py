"""Benchmarks of the repository's own asv suite as workloads, without any model.

Those that can reach what changed are found by the graph of calls, else by the words of their names, and
then by running them (`testgen.trials`). Each becomes a script that holds the modules of the suite
it needs, so both sides run the same benchmark, also where the base has none. What a benchmark
returns seldom says whether its work was right: the check of equivalence is weak, and the rows say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from math import ceil, prod
from string import Template
from typing import Final

from perfquarry.data.records import Reason, Side, Source, Workload
from perfquarry.testgen.apis import reaching
from perfquarry.testgen.asv_suites import Benchmark, Suite, suite_of
from perfquarry.testgen.calls.graph import CallGraph
from perfquarry.testgen.calls.modules import Node
from perfquarry.testgen.case import Case
from perfquarry.testgen.scripts import Script
from perfquarry.testgen.traced import SIDES
from perfquarry.testgen.trials import Trial, rows_of, try_scripts

SOURCE: Final = "asv"
MAX_REJECTED = 50
MOST_CALLS = 100_000
"""Calls of a benchmark in one sample."""
_LONGER = 3
"""Times that what is too short is tried with more calls: the first ones are slower than the others."""
_CONSIDERED = 500
"""Combinations of parameters among which is chosen."""
_HELPERS = 3
"""Functions of the suite between a benchmark and what it measures."""
_FRACTIONS = (1.0, 0.0, 0.5)
"""Places in the product of parameters whose number is not known."""
_WORD = re.compile(r"[a-z]{3,}|[A-Z][a-z]{2,}|[A-Z]{3,}")
_DULL = frozenset({"time", "test", "array", "core", "base", "bench", "init", "module", "self", "src"})

_RUNNER = {
    "asv_runner": ("asv_runner/__init__.py", ""),
    "asv_runner.benchmarks": ("asv_runner/benchmarks/__init__.py", ""),
    "asv_runner.benchmarks.mark": (
        "asv_runner/benchmarks/mark.py",
        "class SkipNotImplemented(NotImplementedError):\n    pass\n",
    ),
}
"""What suites import of asv, which is not in the environments: the exception with which a benchmark skips itself."""

Combination = tuple[int, ...] | float
"""Index of each parameter's value; or a place in their product, from 0 to 1, where their number is not known."""


@dataclass(frozen=True)
class AsvBenchmark:
    """A benchmark of one side's suite."""

    suite: Suite
    benchmark: Benchmark
    distance: int | None
    """Calls between it and a touched function; None where the graph shows no way."""
    likeness: int
    """Words its name shares with what changed."""

    def script(self, combination: Combination, number: int) -> Script:
        """A script for some parameters, with so many calls a sample."""
        one = self.benchmark
        modules = self.suite.needed_by(one.module)
        if any("asv_runner" in text for _, text in modules.values()):
            modules = _RUNNER | modules
        chosen = list(combination) if isinstance(combination, tuple) else combination
        parameters = "none" if chosen == [] else f"{chosen}" if isinstance(chosen, list) else f"at {chosen} of all"
        template = Template(
            (resources.files("perfquarry.testgen") / "templates" / "asv.txt").read_text(encoding="utf-8")
        )
        code = template.substitute(
            name=one.id,
            parameters=parameters,
            place=f"{one.module!r}, {one.owner!r}, {one.name!r}",
            combination=repr(chosen),
            number=number,
            suite=_literal(modules),
        )
        calls = "1 call" if number == 1 else f"{number} calls"
        way = "chosen by its name" if self.distance is None else f"{self.distance} calls from the change"
        note = (
            f"asv benchmark {one.id}, parameters {parameters}, {calls} a sample, {way}; "
            "equivalence is weak: of what it returns only JSON is compared"
        )
        return Script(code, SOURCE, note)


class AsvSource:
    """The source `asv`; a change of a repository without a suite has no row of it."""

    name: Source = SOURCE

    def workloads(self, case: Case) -> list[Workload]:
        """Rows of the benchmarks tried: kept ones first, those that execute most of the change before others.

        Raises:
            SandboxUnavailable: the sandbox itself could not start.
        """
        settings = case.settings.asv
        planned = [
            (candidate, combination)
            for candidate in _chosen(_candidates(case), settings.benchmarks)
            for combination in combinations(candidate.benchmark.lengths, settings.combinations)
        ]
        if not planned:
            return []
        trials = _tried(case, planned)
        kept = _best([trial for trial in trials if trial.reason is None], settings.workloads)
        return rows_of(case, [*kept, *[trial for trial in trials if trial.reason is not None][:MAX_REJECTED]])


def combinations(lengths: Sequence[int] | None, limit: int) -> list[Combination]:
    """Of the combinations of parameters the last (sizes ascend), then those with most values not yet among them.

    Args:
        lengths: number of values of each parameter; None where it is not known.
        limit: most combinations returned.
    """
    if lengths is None:
        return list(_FRACTIONS[:limit])
    step = max(1, prod(lengths) // _CONSIDERED)
    left = [_combination(number, lengths) for number in range(0, prod(lengths), step)]
    chosen: list[Combination] = [tuple(length - 1 for length in lengths)]
    seen = set(enumerate(length - 1 for length in lengths))
    while len(chosen) < limit:
        best = max(left, key=lambda one: len(set(enumerate(one)) - seen), default=())
        if not set(enumerate(best)) - seen:
            break
        chosen.append(best)
        seen |= set(enumerate(best))
    return chosen[:limit]


def _combination(number: int, lengths: Sequence[int]) -> tuple[int, ...]:
    """The combination of that number in the order of `itertools.product`, whose way there is too long."""
    places: list[int] = []
    for length in reversed(lengths):
        number, place = divmod(number, length)
        places.append(place)
    return tuple(reversed(places))


def _candidates(case: Case) -> Iterator[AsvBenchmark]:
    """Benchmarks of the base's suite, and those only the head's has, that may reach the change."""
    suites = [suite for side in SIDES if (suite := suite_of(case.sides[side].tree)) is not None]
    if not suites:
        return
    words = _words(case)
    known: set[str] = set()
    graphs = [reaching(case, side) for side in _asked_sides(case)]
    for suite in suites:
        distances = [_distances(suite, *graph) for graph in graphs]
        for benchmark in suite.benchmarks():
            if benchmark.id in known:
                continue
            known.add(benchmark.id)
            place = Node(benchmark.path, benchmark.defined)
            found = [one[place] for one in distances if place in one]
            likeness = len(words & _split(benchmark.id))
            if found or likeness:
                yield AsvBenchmark(suite, benchmark, min(found, default=None), likeness)


def _asked_sides(case: Case) -> list[Side]:
    """The sides whose functions name all that is touched: the base, and the head where functions are new."""
    return list(SIDES) if any(one.change == "added" for one in case.verdict.functions) else ["base"]


def _distances(suite: Suite, graph: CallGraph, reached: Mapping[Node, int]) -> dict[Node, int]:
    """How far definitions of the suite are from what changed, through helpers of the suite, too."""
    uses = graph.uses_of(suite.facts)
    found: dict[Node, int] = {}
    for _ in range(_HELPERS):
        for node, targets in uses.items():
            ways = [
                length + way for one, length in targets.items() if (way := reached.get(one, found.get(one))) is not None
            ]
            if ways:
                found[node] = min(ways)
    return found


def _words(case: Case) -> set[str]:
    touched = [one.name for one in case.verdict.functions]
    return set().union(*map(_split, touched)) - _DULL if touched else set()


def _split(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}


def _chosen(candidates: Iterable[AsvBenchmark], limit: int) -> list[AsvBenchmark]:
    """The nearest ones, those of a class and a module tried least first among equals; by name only where few reach."""
    left = list(candidates)
    chosen: list[AsvBenchmark] = []
    while left and len(chosen) < limit:
        owners = [(one.benchmark.module, one.benchmark.owner) for one in chosen]
        best = min(left, key=lambda one: _cost(one, owners))
        left.remove(best)
        chosen.append(best)
    return chosen


def _cost(one: AsvBenchmark, owners: Sequence[tuple[str, str]]) -> tuple[bool, int, int, str]:
    calls = (one.distance or 0) + owners.count((one.benchmark.module, one.benchmark.owner))
    return one.distance is None, calls, -one.likeness, one.benchmark.id


def _tried(case: Case, planned: Sequence[tuple[AsvBenchmark, Combination]]) -> list[Trial]:
    """A trial of each benchmark, with so many calls a sample as make it long enough."""
    numbers = [candidate.benchmark.number or 1 for candidate, _ in planned]
    trials = try_scripts(
        case, [one.script(values, number) for (one, values), number in zip(planned, numbers, strict=True)]
    )
    for _ in range(_LONGER):
        more: dict[int, int] = {}
        for at, ((candidate, _), trial) in enumerate(zip(planned, trials, strict=True)):
            free = trial.reason == Reason.TOO_SHORT and not candidate.benchmark.number
            if free and trial.seconds and numbers[at] < MOST_CALLS:
                wanted = ceil(case.settings.asv.sample_seconds / trial.seconds)
                more[at] = numbers[at] = min(MOST_CALLS, numbers[at] * wanted)
        scripts = [planned[at][0].script(planned[at][1], number) for at, number in more.items()]
        for at, trial in zip(more, try_scripts(case, scripts), strict=True):
            trials[at] = trial
    return trials


def _best(trials: Sequence[Trial], limit: int) -> list[Trial]:
    """Those that execute most changed lines not executed by better ones, longer ones first among equals."""
    left = list(trials)
    chosen: list[Trial] = []
    covered: set[tuple[str, str, int]] = set()
    while left and len(chosen) < limit:
        best = max(left, key=lambda trial: (len(trial.lines - covered), trial.seconds or 0.0))
        left.remove(best)
        chosen.append(best)
        covered |= best.lines
    return chosen


def _literal(modules: Mapping[str, tuple[str, str]]) -> str:
    """A dict of the modules as source, a line a line."""
    parts = []
    for name, (path, text) in sorted(modules.items()):
        lines = "\n".join(f"        {line!a}" for line in text.splitlines(keepends=True)) or "        ''"
        parts.append(f"    {name!r}: ({path!a}, (\n{lines}\n    )),\n")
    return "{\n" + "".join(parts) + "}"
