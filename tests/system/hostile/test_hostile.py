"""Every hostile program ends as a row with its reason, within its limit, and leaves the machine as it was."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import pytest

from perfquarry.data.errors import InputError, SandboxUnavailable
from perfquarry.harness.contracts import Isolation
from perfquarry.harness.sandbox import choose_sandbox
from perfquarry.harness.sandbox.bubblewrap import BubblewrapSandbox
from perfquarry.harness.sandbox.docker import DockerSandbox
from perfquarry.harness.sandbox.process import ProcessSandbox
from tests.system.hostile.host import Host, visible_folder
from tests.system.hostile.programs import Program, corpus
from tests.system.hostile.trials import Outcome, Range

pytestmark = pytest.mark.timeout(1200)  # the first test of a backend makes the environment, and machines are busy

BACKENDS = {
    "bubblewrap": BubblewrapSandbox.isolation,
    "docker": DockerSandbox.isolation,
    "process": ProcessSandbox.isolation,
}
ALWAYS = frozenset({
    "connects", "forges_a_link", "ignores_signals", "reads_environments", "setup_looks_around", "writes_to_the_host",
})  # fmt: skip
"""Run in bubblewrap by `make test`; the others are slow, or load the machine while other tests take times."""
LATE_SECONDS = 30.0
"""How long after its limit a command may be dead, on a machine that is busy with other work: none ends by itself."""


def _marks(backend: str, always: bool) -> list[pytest.MarkDecorator]:
    return [] if always and backend == "bubblewrap" else [pytest.mark.slow]


CASES = [
    pytest.param(backend, program, id=f"{backend}-{program.name}", marks=_marks(backend, program.name in ALWAYS))
    for backend, isolation in BACKENDS.items()
    for program in corpus()
    if program.runs_in(isolation)
]


@dataclass(frozen=True)
class Trial:
    """The programs of one backend, run in the background."""

    place: Range
    running: dict[str, Future[list[Outcome]]]


@pytest.fixture(scope="module")  # no longer: the bait is this whole process's HOME, keys and temporary folder
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
            yield Trial(place, {name: submit(program) for name, program in wanted.items()})


@pytest.mark.parametrize(("trial", "program"), CASES, indirect=["trial"], scope="module")  # or each program has its own
def test_each_program_ends_as_its_row(trial: Trial, program: Program) -> None:
    for outcome in trial.running[program.name].result():
        assert outcome.as_expected, f"{outcome.stage}: {outcome.reason}\n{outcome.detail}"
        assert outcome.late < LATE_SECONDS
        if program.name == "replaces_clocks" and outcome.stage == "measure":
            assert float(outcome.detail.split()[2]) >= 0.02


@pytest.mark.parametrize("trial", [pytest.param(one, marks=_marks(one, True)) for one in BACKENDS], indirect=True)
def test_the_machine_is_as_it_was(trial: Trial) -> None:
    for running in trial.running.values():
        running.exception()
    assert trial.place.changes() == {}


def test_without_each_wall_only_harmless_programs_run() -> None:
    """A new sandbox is tried with the corpus (docs/extend/sandbox.md), on somebody's machine."""
    harmless = [one.name for one in corpus() if one.runs_in(Isolation(False, False, False, False))]
    for wall in ("network", "files", "processes", "crash"):
        isolation = Isolation(**{name: name != wall for name in ("network", "files", "processes", "crash")})
        assert [one.name for one in corpus() if one.runs_in(isolation)] == harmless
    assert not {"fork_bomb", "kills_everybody", "fills_private_memory"}.intersection(harmless)
    assert len(harmless) > 40
