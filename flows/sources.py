"""The sources of workloads that `--workloads` knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from perfquarry.curation.screening.subjects import demands_of
from perfquarry.data.errors import InputError
from perfquarry.flows.run import Run
from perfquarry.testgen.asv import AsvSource
from perfquarry.testgen.replay.source import ReplaySource
from perfquarry.testgen.sources import WorkloadSource
from perfquarry.testgen.unit_tests import UnitTests

SOURCES: dict[str, Callable[[Run], WorkloadSource]] = {
    "unit-test": lambda run: UnitTests(),
    "asv": lambda run: AsvSource(),
    "replay": lambda run: ReplaySource(),
    "generated": lambda run: replace(run.generated, wishes={one.change_id: one.wishes for one in demands_of(run)}),
}
"""By name, in the order in which they are asked: how each is made for a run."""


def check_sources(names: Iterable[str]) -> None:
    """Raises where a name is none of a source.

    Raises:
        InputError: it names those that are known.
    """
    unknown = [name for name in names if name not in SOURCES]
    if unknown:
        raise InputError(f"unknown source of workloads {unknown[0]!r}: known are {', '.join(SOURCES)}")


def sources_of(run: Run, extra: Iterable[str] = ()) -> tuple[list[WorkloadSource], list[WorkloadSource]]:
    """The sources that the run's settings name, with others that a change was sent back for, and the further ones.

    Raises:
        InputError: one of them is unknown.
    """
    generate = run.options.settings.generate
    names = {*generate.sources, *extra}
    check_sources([*names, *generate.further])
    first = [make(run) for name, make in SOURCES.items() if name in names]
    return first, [SOURCES[name](run) for name in generate.further]
