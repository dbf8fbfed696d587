"""Scripts tried on both sides of a change: which are usable workloads, and why the others are not.

Each script has processes of its own. Three of the base and three of the head call it several times
under other hash seeds; the first of the base stores its result, all others compare theirs with it,
by the script's own functions. One process a side traces lines, one of the base profiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from perfquarry.data.records import Hit, Reason, Side, Workload, node_of, workload_id_of
from perfquarry.harness.contracts import Files, Limits, ProbeItem, ProbeMode, ProbeReport, ProbeRequest
from perfquarry.testgen.caching import dear_starts, first_call
from perfquarry.testgen.case import Case
from perfquarry.testgen.runs import missing_item
from perfquarry.testgen.scripts import Script, faults_of
from perfquarry.testgen.targets import targets_of
from perfquarry.testgen.traced import SIDES, lines_of

LATER_CALLS = 2
"""Timed calls of a process after the first and one that warms up."""
LOOKS = 3
"""Times that first calls are looked at, each in as many further processes, where noise may hide a cache."""
SLACK = 10
"""Times that a traced or profiled call may take longer than others."""
SETUP_INSIDE = """

_experiment = experiment


def experiment(data):
    return _experiment(setup())
"""
"""Appended to a script, it makes `setup` a part of what is traced."""
_BROKEN = {"store": "store_result", "run_test": "run_test"}
_MISSING = ("ModuleNotFoundError:", "ImportError:")
_ALWAYS = (Reason.CHECKS_NOTHING, Reason.TOO_LONG)
"""Reasons that one run alone has shown: that others pass makes no script undetermined."""
_SYNTAX = ("SyntaxError:", "IndentationError:", "TabError:")


@dataclass(frozen=True)
class Trial:
    """What became of a script."""

    script: Script
    reason: Reason | None
    """None: it is usable."""
    detail: str = ""
    hits: list[Hit] = field(default_factory=list)
    seconds: float | None = None
    """One warm call of `experiment` on the base."""
    calls: list[str] = field(default_factory=list)
    """Realistic targets, as for unit tests."""

    @property
    def lines(self) -> frozenset[tuple[str, str, int]]:
        """Changed lines it executes."""
        return lines_of(self.hits)


def try_scripts(case: Case, scripts: Sequence[Script]) -> list[Trial]:
    """One trial a script, in their order. May be called from several threads.

    Raises:
        SandboxUnavailable: the sandbox itself could not start.
    """
    if not case.changes_code:
        return [Trial(script, Reason.MISSES_CHANGE, case.why_unchanged) for script in scripts]
    packages = package_names(case.base.source_roots)
    with ThreadPoolExecutor(max_workers=case.jobs) as pool:
        return list(pool.map(lambda script: _Attempt(case, script).trial(packages), scripts))


def rows_of(case: Case, trials: Sequence[Trial]) -> list[Workload]:
    """Rows of the trials: the usable ones first, in their order; equal scripts once."""
    rows: dict[str, Workload] = {}
    for trial in sorted(trials, key=lambda one: one.reason is not None):
        code = trial.script.code.encode("utf-8", "replace").decode()
        row = case.row(
            trial.script.source,
            code,
            reason=trial.reason,
            detail=trial.detail or trial.script.note,
            hits=trial.hits,
            seconds=trial.seconds,
            calls=trial.calls,
        )
        rows.setdefault(row.workload_id, row)
    return list(rows.values())


def package_names(roots: Sequence[Path]) -> frozenset[str]:
    """Import names of the modules and packages in folders of sources."""
    found = {path.stem for root in roots for path in root.glob("*.py")}
    found |= {path.parent.name for root in roots for path in root.glob("*/*.py")}
    return frozenset(name for name in found if name.isidentifier())


class _Rejected(Exception):
    """A script is no workload."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


class _Attempt:
    """One script on its way; what is known of it so far."""

    def __init__(self, case: Case, script: Script) -> None:
        self._case, self._trace, self._script = case, case.trace, script
        self._settings = case.settings.scripts
        code = script.code
        self._name = node_of(script.source, code, workload_id_of(case.change.change_id, script.source, code))
        self._runs: dict[Side, list[ProbeItem]] = {"base": [], "head": []}
        self._reference: dict[str, Files] = {}
        self._hits: list[Hit] = []
        self._again: list[Hit] = []
        self._calls: list[str] = []

    def trial(self, packages: frozenset[str]) -> Trial:
        """What became of it."""
        reason, detail = None, ""
        try:
            self._look(packages)
            self._first_run()
            self._trace_lines()
            self._repeat()
            self._refuse_cached()
            item, _ = self._run("base", "profile", 1)
            self._calls = targets_of(item, self._script.code.encode(), ("experiment",), self._case.base.tree)
        except _Rejected as rejected:
            reason, detail = rejected.reason, rejected.detail
        return Trial(self._script, reason, detail, self._hits, self._seconds, self._calls)

    @property
    def _seconds(self) -> float | None:
        samples = [sample for item in self._runs["base"] for sample in item.samples]
        return median(samples) if samples else None

    def _look(self, packages: frozenset[str]) -> None:
        private_allowed = self._script.source != "generated"
        fault = faults_of(
            self._script.code, packages, private_allowed=private_allowed, code_bytes=self._settings.code_bytes
        )
        if fault:
            raise _Rejected(fault.reason, fault.detail)

    def _first_run(self) -> None:
        """The base alone: whether it works at all, and how long it takes.

        What is too long is judged by the least seconds of its calls without those for which it had no processor:
        others on the machine make no script too long.
        """
        item, report = self._run("base", "time", 1, store=True)
        if item.outcome != "passed":
            raise _Rejected(*_failure(item, "base"))
        self._runs["base"].append(item)
        self._reference = report.results
        low, high = self._settings.min_seconds, self._settings.max_seconds
        call = min(item.samples)
        least = min(call, item.call_seconds or call)
        setup = ("setup", item.setup_seconds, self._settings.max_setup_seconds)
        for what, seconds, most in (("a call of experiment", least, high), setup):
            if seconds > most:
                raise _Rejected(Reason.TOO_LONG, f"{what} takes {seconds:.3g} s at the base, more than {most:g} s")
        if call < low:
            raise _Rejected(Reason.TOO_SHORT, f"a call takes {call:.3g} s at the base, under {low:g} s")

    def _trace_lines(self) -> None:
        """Changed lines that the calls execute.

        Nothing is known of native code. Where such code changed, too, a script that misses the Python lines, often the
        twin for where nothing can be compiled, is one that may execute it.
        """
        late = None
        for side in SIDES if self._trace else ():
            item, _ = self._run(side, "coverage", 1)
            late = _failure(item, side) if item.outcome == "timeout" else late
            first, again = (self._trace.hits(side, lines) for lines in (item.lines, item.again))
            self._hits += first
            if item.outcome == "passed" and first and not again:
                raise _Rejected(Reason.CACHED, f"at the {side}, only the first call executes changed lines")
            self._again += again if item.outcome == "passed" else first
        if self._trace and not self._hits and not late and self._script.source == "generated":
            self._hits = self._again = self._hits_of_setup()
        if self._trace and not self._hits and (late or not self._case.changes_native):
            if late:
                raise _Rejected(*late)
            files = sorted({target.path for side in SIDES for target in self._trace.of(side)})
            raise _Rejected(Reason.MISSES_CHANGE, f"of {', '.join(files)}")

    def _hits_of_setup(self) -> list[Hit]:
        """Changed lines that `setup` executes.

        Where a package makes code (attrs its methods, jinja its templates), what is timed is code that the changed
        lines have written, in no file that could be traced. Whether it is faster is for the timings to say.
        """
        code = self._script.code + SETUP_INSIDE
        runs = {side: self._run(side, "coverage", 1, code=code)[0] for side in SIDES}
        return [hit for side, item in runs.items() for hit in self._trace.hits(side, item.lines)]

    def _repeat(self) -> None:
        """Fresh processes under other hash seeds: the base must agree with itself, and the head with the base."""
        seeds = range(1, self._case.settings.repeats + 1)
        for seed in seeds[1:]:
            item, _ = self._run("base", "time", seed, compare=True)
            if item.outcome != "passed":
                reason, detail = _failure(item, "base")
                found = reason if reason in _ALWAYS else Reason.NOT_DETERMINISTIC
                raise _Rejected(found, f"run {seed}: {detail}")
            self._runs["base"].append(item)
        self._runs["head"] = [self._run("head", "time", seed, compare=True)[0] for seed in seeds]
        failed = [item for item in self._runs["head"] if item.outcome != "passed"]
        if failed:
            failed.sort(key=lambda item: item.outcome == "timeout")  # what others than a time limit say comes first
            reason, detail = _failure(failed[0], "head")
            always = len(failed) == len(seeds) or reason in _ALWAYS
            raise _Rejected(reason if always else Reason.NOT_DETERMINISTIC, detail)

    def _refuse_cached(self) -> None:
        """No result kept between calls; where noise may hide one, further processes look again."""
        repeats = self._case.settings.repeats
        for seed in range(repeats + 1, LOOKS * repeats + 1, repeats):
            if self._dear_sides() or not self._dear_sides(excused=False):
                break
            for side in SIDES:
                more = [self._run(side, "time", one, compare=True)[0] for one in range(seed, seed + repeats)]
                self._runs[side] += [item for item in more if item.outcome == "passed"]
        for side in self._dear_sides():
            first = min(map(first_call, self._runs[side]))
            later = min(sample for item in self._runs[side] for sample in item.samples)
            raise _Rejected(
                Reason.CACHED,
                f"at the {side}, the first call takes {first:.3g} s and later ones {later:.3g} s, which is not so on "
                f"the other side; {self._lost(side)} changed lines are executed by the first call only",
            )

    def _dear_sides(self, *, excused: bool = True) -> list[Side]:
        """Sides whose later calls do less than the first, as far as their lines are known."""
        dear = dear_starts(self._runs, self._settings.cached_share, excused=excused)
        return [side for side in dear if self._lost(side) or not self._hits]

    def _lost(self, side: Side) -> int:
        """Changed lines of a side that the first call alone executes."""
        return sum(one == side for one, _, _ in lines_of(self._hits) - lines_of(self._again))

    def _run(
        self,
        side: Side,
        mode: ProbeMode,
        seed: int,
        *,
        store: bool = False,
        compare: bool = False,
        code: str | None = None,
    ) -> tuple[ProbeItem, ProbeReport]:
        case, settings = self._case, self._case.settings
        request = ProbeRequest(
            mode=mode,
            scripts={self._name: code or self._script.code},
            store=store,
            references=self._reference if compare else {},
            result_bytes=self._settings.result_bytes,
            include=[target.path for target in self._trace.of(side)],
            warmups=1,
            calls={self._name: LATER_CALLS},
            max_seconds=settings.test_timeout,
            test_timeout=settings.test_timeout * (1 if mode == "time" else SLACK),
            extra_paths=[str(case.tools[side])] if side in case.tools else [],
        )
        limits = Limits(wall_seconds=settings.timeout, memory_bytes=settings.memory_bytes)
        report = case.prober.run(case.sides[side], request, limits=limits, hash_seed=seed)
        found = next((item for item in report.items if item.node == self._name), None)
        return found or missing_item(self._name, report), report


def _failure(item: ProbeItem, side: Side) -> tuple[Reason, str]:
    """Why a script that failed on a side is no workload."""
    ending = item.message.rpartition("\n")[2]
    where = f" in {item.phase}" if item.phase else ""
    detail = f"{item.outcome}{where} at the {side}: {item.message}"
    if item.outcome == "timeout":
        return Reason.TOO_LONG, detail  # `data.records.is_late` knows it by the first word
    if item.phase == "doubt":
        return Reason.CHECKS_NOTHING, item.message
    if side == "head":
        return Reason.DIFFERS if item.phase == "compare" else Reason.SCRIPT_FAILS_ON_HEAD, detail
    if item.phase in _BROKEN:
        return Reason.CONTRACT_BROKEN, detail
    if ending.startswith(_MISSING):
        return Reason.MODULE_MISSING, detail
    if item.phase == "load" and ending.startswith(_SYNTAX):
        return Reason.UNPARSABLE, f"not with the base's interpreter: {item.message}"
    return Reason.SCRIPT_FAILS_ON_BASE, detail
