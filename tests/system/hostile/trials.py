"""Runs the corpus through the stages' own code and notes as which row each program ends."""

from __future__ import annotations

import subprocess
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from perfquarry.curation.sessions import measure
from perfquarry.curation.settings import SelectSettings
from perfquarry.data.home import Home
from perfquarry.data.records import (
    Change,
    FileChange,
    Row,
    Side,
    Stamp,
    Verdict,
    Workload,
    change_id_of,
    workload_id_of,
)
from perfquarry.data.registry import Repository
from perfquarry.data.store import TableStore
from perfquarry.harness.building.builder import Builder
from perfquarry.harness.contracts import BuiltSide, Command, Completed, Sandbox
from perfquarry.harness.measuring.machine import machine_facts
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.sandbox.engine import connected, owner_labels
from perfquarry.harness.settings import BuildSettings, MeasureSettings
from perfquarry.harness.trees.tree_copies import end_search_for_settings
from perfquarry.testgen.case import Case
from perfquarry.testgen.settings import GenerateSettings
from perfquarry.testgen.unit_tests import UnitTests
from tests.bare_python import make_bare_python
from tests.system.hostile.host import MEBI, Host
from tests.system.hostile.programs import Program

STAMP = Stamp(repo="hostile", stage_version="1", config_hash="0")
DATE = datetime(2024, 2, 10, tzinfo=UTC)
MEMORY = 512 * MEBI
NODE = "test_hostile.py::test_it"
HEAP = {
    "base": "def smallest(items):\n    items = sorted(items)\n    return items[0]\n",
    "head": "def smallest(items):\n    return min(items)\n",
}
PLAIN = "from heap import smallest\n\ndef test_it():\n    smallest([1])\n"
STARTS_PYTHON = PLAIN.replace("smallest([1])", "smallest([1])\n    subprocess.check_call([sys.executable, '-c', ''])")
CONTROL = Program("control", "Does nothing wrong.", "pass\n", {"as": "setup.py", "build": "kept"})
AT_ONCE = 3
SETTLE_SECONDS = 10.0
"""How long the kernel may take to give back what killed processes held."""


@dataclass(frozen=True)
class Outcome:
    """How one program ended in one stage."""

    program: Program
    backend: str
    stage: str
    reason: str
    """Of the first row; 'kept'; or the exception that got out of the stage."""
    seconds: float
    late: float = 0.0
    """Seconds by which a command outlasted its limit, at most."""
    detail: str = ""

    @property
    def as_expected(self) -> bool:
        """Whether it ended as the corpus says."""
        return self.reason in self.program.expected[self.stage].split(" or ")


@dataclass(frozen=True)
class Tight:
    """A sandbox with limits that a program meets within a second; it marks what it runs and notes what comes late."""

    inner: Sandbox
    mark: str
    late: list[float] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def run(self, command: Command) -> Completed:
        """Runs it."""
        limits = replace(command.limits, processes=64, file_bytes=32 * MEBI, disk_bytes=64 * MEBI)
        ended = self.inner.run(replace(command, limits=limits, env={**command.env, "MARK": self.mark}))
        self.late.append(ended.wall_seconds - limits.wall_seconds)
        return ended


class Range:
    """Where the programs of one backend are run.

    Args:
        sandbox: the backend.
        host: the machine, watched; everything is made in its `range`.
    """

    def __init__(self, sandbox: Sandbox, host: Host) -> None:
        self.host = host
        self._folder = folder = host.range
        self._sandbox = sandbox
        self._python = make_bare_python(folder / "bare", "coverage", "yappi")
        self._store = TableStore(folder / "tables")
        self._home = Home(folder / "home")
        end_search_for_settings(folder / "trees")
        # makes the environment that all builds share
        control = self._build(CONTROL, self._tight(), BuildSettings(timeout=280.0))
        assert control == ("kept", ""), control
        self._before = self._facts()
        self._memory = psutil.Process().memory_info().rss

    @contextmanager
    def running(self) -> Iterator[Callable[[Program], Future[list[Outcome]]]]:
        """Runs programs, some at the same time: most of them wait for their limit."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            yield lambda program: pool.submit(self.run, program)

    def run(self, program: Program) -> list[Outcome]:
        """Runs a program in every stage it is meant for; without isolation in the last of them alone."""
        stages = {"build": self._build, "generate": self._generate, "measure": self._measure}
        chosen = list(program.expected)[-1 if self._sandbox.name == "process" else 0 :]
        return [self._outcome(program, stage, stages[stage]) for stage in chosen]

    def changes(self) -> dict[str, object]:
        """What has changed on the machine since this was made; all programs must have ended."""
        until = time.monotonic() + SETTLE_SECONDS
        while (after := self._facts()) != self._before and time.monotonic() < until:
            time.sleep(0.2)
        found = {name: fact for name, fact in after.items() if fact != self._before[name]}
        grown = psutil.Process().memory_info().rss - self._memory
        return found | ({"our memory": grown} if grown > MEMORY else {})

    def _facts(self) -> dict[str, object]:
        """Of the machine, with what the stages' private folders hold, and containers."""
        files = [str(path) for path in (self._folder / "probes").glob("*/*")]
        containers = own_containers() if self._sandbox.name == "docker" else []
        return {**self.host.facts(), "private folders": files, "containers": containers}

    def _tight(self) -> Tight:
        return Tight(self._sandbox, self.host.mark)

    def _outcome(self, program: Program, stage: str, run: Callable[[Program, Tight], tuple[str, str]]) -> Outcome:
        began, sandbox = time.monotonic(), self._tight()
        try:
            reason, detail = run(program, sandbox)
        except Exception as error:  # noqa: BLE001  # that none gets out is what is tested
            reason, detail = f"{type(error).__name__} raised", traceback.format_exc()
        late = max(sandbox.late, default=0.0)
        return Outcome(program, sandbox.name, stage, reason, time.monotonic() - began, late, detail)

    def _generate(self, program: Program, sandbox: Tight) -> tuple[str, str]:
        settings = GenerateSettings(
            timeout=program.seconds, test_timeout=float(program.facts.get("call", 90.0)), repeats=1, memory_bytes=MEMORY
        )
        change = _change("base", "head")
        verdict = Verdict(
            **STAMP.fields(), change_id=change.change_id, judge="heuristic", is_performance="yes", probability=0.9
        )
        prober = self._prober(program, "generate", sandbox)
        case = Case(change, verdict, *self._sides(program, "generate"), prober, settings, STAMP, tools={})
        rows = UnitTests().workloads(case)
        return self._first(rows), "\n".join(row.detail for row in rows)

    def _measure(self, program: Program, sandbox: Tight) -> tuple[str, str]:
        change_id = f"change-{program.name}"
        settings = MeasureSettings(
            aa_every=6, warmups=1, most_turns=5, turn_seconds=0.001, fresh_seconds=0.001,
            max_process_seconds=program.seconds, call_seconds=program.seconds, memory_bytes=MEMORY,
        ).model_copy(update={"pairs": 2, "max_pairs": 2})  # fmt: skip  # few: nothing is decided by them
        identity = workload_id_of(change_id, "unit-test", NODE)
        workload = Workload(**STAMP.fields(), workload_id=identity, change_id=change_id, source="unit-test", code=NODE)
        sides, prober = self._sides(program, "measure"), self._prober(program, "measure", sandbox)
        machine = machine_facts(sandbox.name)
        rows = measure(change_id, [workload], *sides, prober, machine, settings, SelectSettings(), STAMP, core=None)
        shortest = min((sample for row in rows for sample in row.samples), default=0.0)
        return self._first([row for row in rows if row.reason] or rows), f"shortest sample {shortest:.6f} s"

    def _build(self, program: Program, sandbox: Tight, settings: BuildSettings | None = None) -> tuple[str, str]:
        clone = self._folder / "clones" / program.name
        clone.mkdir(parents=True)
        setup = program.text if program.place == "setup.py" else ""
        package = program.text if program.place == "package" else ""
        shas = []
        for number in range(2):
            texts = {
                "setup.py": setup,
                "targets.py": self.host.targets,
                "lib/__init__.py": package + f"\none = {number}\n",
            }
            for name, text in texts.items():
                (clone / name).parent.mkdir(exist_ok=True)
                (clone / name).write_text(text)
            shas.append(_commit(clone))
        settings = settings or BuildSettings(timeout=program.seconds, memory_bytes=MEMORY)
        repository = Repository(
            name=program.name, codebase="lib", packages=["lib"], build=["python setup.py"] if setup else []
        )
        builder = Builder(self._home, clone, repository, sandbox, settings, STAMP)
        rows = builder.build(_change(*shas)).rows
        return self._first(rows), rows[0].log if rows[0].reason else ""

    def _first(self, rows: list[Row]) -> str:
        self._store.append(rows)
        return (rows[0].reason or "kept") if rows else "no row"

    def _prober(self, program: Program, stage: str, sandbox: Tight) -> Prober:
        return Prober(sandbox, self._folder / "probes" / f"{program.name}-{stage}")

    def _sides(self, program: Program, stage: str) -> tuple[BuiltSide, BuiltSide]:
        made = []
        test = STARTS_PYTHON if program.place == "sitecustomize.py" else PLAIN
        for side in _SIDES:
            tree = self._folder / "trees" / f"{program.name}-{stage}" / side
            tree.mkdir(parents=True)
            texts = {"heap.py": HEAP[side], "targets.py": self.host.targets}
            texts |= {"test_hostile.py": "import subprocess, sys\n" + test, program.place: program.text}
            for name, text in texts.items():
                (tree / name).write_text(text)
            made.append(BuiltSide(side, side, tree, self._python, "environment", (tree,)))
        return made[0], made[1]


_SIDES: tuple[Side, Side] = ("base", "head")


def own_containers() -> list[str]:
    """Names of the containers, running or not, that this process started."""
    labels = [f"{name}={value}" for name, value in owner_labels().items()]
    with connected("list containers") as api:
        return [str(one["Names"]) for one in api.containers(all=True, filters={"label": labels})]


def _change(base: str, head: str) -> Change:
    path = "heap.py" if base == "base" else "lib/__init__.py"
    return Change(
        **STAMP.fields(), change_id=change_id_of("hostile", base, head), kind="commit", base_sha=base, head_sha=head,
        authored_at=DATE, merged_at=DATE, title="", message="",
        files=[FileChange(path=path, status="modified", added=1, deleted=1, role="source", language="python")],
    )  # fmt: skip


def _commit(clone: Path) -> str:
    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *arguments]
        return subprocess.run(command, cwd=clone, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "change")
    return git("rev-parse", "HEAD")
