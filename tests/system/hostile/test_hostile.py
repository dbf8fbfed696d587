"""Every hostile program ends as a row with its reason, within its limit, and leaves the machine as it was."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import psutil
import pytest

from data.errors import InputError, SandboxUnavailable
from harness.sandbox import choose_sandbox
from tests.system.hostile.host import MEBI, Host, visible_folder
from tests.system.hostile.programs import Program, corpus
from tests.system.hostile.trials import Outcome, Range

pytestmark = pytest.mark.slow

BACKENDS = ("bubblewrap", "docker", "process")
CASES = [
    pytest.param(backend, program, id=f"{backend}-{program.name}")
    for backend in BACKENDS
    for program in corpus()
    if program.runs_on(backend)
]
SETTLE_SECONDS = 10.0
"""How long the kernel may take to give back what killed processes held."""
LATE_SECONDS = 30.0
"""How long after its limit a command may be dead, on a machine that is busy with other work: none ends by itself."""


class Trial:
    """The programs of one backend, run in the background, and the machine before the first of them."""

    def __init__(self, place: Range, submit: Callable[[Program], Future[list[Outcome]]], wanted: list[Program]) -> None:
        self.place = place
        self.before = place.host.facts()
        self.memory = psutil.Process().memory_info().rss
        self.running = {program.name: submit(program) for program in wanted}


@pytest.fixture(scope="session")
def trial(request: pytest.FixtureRequest) -> Iterator[Trial]:
    backend = request.param
    try:
        sandbox = choose_sandbox(backend)
    except (InputError, SandboxUnavailable) as error:
        pytest.skip(f"NOT TESTED on {backend}: {error}")
    chosen: list[Any] = [getattr(item, "callspec", None) for item in request.session.items]
    asked = [one.params for one in chosen if one and one.params.get("trial") == backend]
    wanted = {one["program"].name: one["program"] for one in asked if "program" in one}
    with visible_folder() as folder, Host(folder).baited() as host:
        place = Range(sandbox, host)
        with place.running() as submit:
            yield Trial(place, submit, list(wanted.values()))


@pytest.mark.parametrize(("trial", "program"), CASES, indirect=["trial"])
def test_each_program_ends_as_its_row(trial: Trial, program: Program) -> None:
    for outcome in trial.running[program.name].result():
        assert outcome.as_expected, f"{outcome.stage}: {outcome.reason}\n{outcome.detail}"
        assert outcome.late < LATE_SECONDS
        if program.name == "replaces_clocks" and outcome.stage == "measure":
            assert float(outcome.detail.split()[2]) >= 0.02


@pytest.mark.parametrize("trial", BACKENDS, indirect=True)
def test_the_machine_is_as_it_was(trial: Trial) -> None:
    for running in trial.running.values():
        running.exception()
    until = time.monotonic() + SETTLE_SECONDS
    while (after := trial.place.host.facts()) != trial.before and time.monotonic() < until:
        time.sleep(0.2)
    assert {name: fact for name, fact in after.items() if fact != trial.before[name]} == {}
    assert trial.place.leftovers() == []
    assert psutil.Process().memory_info().rss - trial.memory < 512 * MEBI
