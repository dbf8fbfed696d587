"""The sources of workloads that `--workloads` knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from data.errors import InputError
from flows.run import Run
from testgen.asv import AsvSource
from testgen.sources import WorkloadSource
from testgen.unit_tests import UnitTests

SOURCES: dict[str, Callable[[Run], WorkloadSource]] = {
    "unit-test": lambda run: UnitTests(),
    "asv": lambda run: AsvSource(),
    "generated": lambda run: run.generated,
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


def sources_of(run: Run) -> list[WorkloadSource]:
    """The sources that the run's settings name.

    Raises:
        InputError: one of them is unknown.
    """
    names = run.options.settings.generate.sources
    check_sources(names)
    return [make(run) for name, make in SOURCES.items() if name in names]
