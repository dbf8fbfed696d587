"""Success rate of builds: the share of a history's commits that can be built and whose chosen tests run.

    python -m benchmarks.builds tornado=CLONE sympy=CLONE … [--commits N] [--home DIR] [--minutes M] [--again]

Commits that touch a source file of the package are drawn with a seed, one from each of N equal stretches
of time. A commit counts when the build stage makes both sides runnable (`harness.building.builder.Builder`) and its
chosen tests run: `testgen.unit_tests` finds a test that executes the change and passes at the base.
What that test does at the head does not matter: the change is its author's, the environment is ours.

Where no test executes the change, or only tests that the change itself modifies, nothing is chosen; then
the test files nearest to the changed modules run at the base, and one test must pass. They show that the
environment runs tests of this commit, which is what the figure is about. Tests that execute the change
and fail at the base count against us, whatever the nearest files do.

Rows lie in the table `build_trials` of the home: a killed benchmark goes on where it was. Writes the
section `Builds of NAME` of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import logging
import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import ClassVar

from pydantic import Field
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

from benchmarks.builds_report import print_details, section, write_failures
from benchmarks.report import replace_section
from perfquarry.data.errors import InfrastructureError
from perfquarry.data.home import Home
from perfquarry.data.own_rows import VERSIONS
from perfquarry.data.records import Change, Reason, Row, Verdict, content_id
from perfquarry.data.registry import Repository
from perfquarry.flows.options import Options
from perfquarry.flows.run import Run
from perfquarry.harness.contracts import BuiltSide, Limits, ProbeRequest
from perfquarry.harness.leases.tidying import tidy
from perfquarry.harness.measuring.machine import cores_of_process
from perfquarry.miners.functions import touched
from perfquarry.miners.history import crawl
from perfquarry.testgen.candidates import NEEDS
from perfquarry.testgen.case import Case
from perfquarry.testgen.pytest_config import is_test_name, python_files
from perfquarry.testgen.reach import module_files
from perfquarry.testgen.settings import GenerateSettings
from perfquarry.testgen.traced import candidate_files
from perfquarry.testgen.unit_tests import UnitTests

SEED = 20261121
PLANS = {"numpy": (10, 2019, 2024)}
"""Commits, first and last year where they differ from `PLAN`: numpy's builds take minutes."""
PLAN = (40, 2014, 2026)
TESTS = GenerateSettings(repeats=1, max_test_files=6, max_workloads=3, timeout=240.0)
NEAREST_FILES = 3
_NOTHING_CHOSEN = (Reason.NO_TESTS, Reason.NO_TEST_EXECUTES_CHANGE, Reason.TEST_CHANGED, *NEEDS)
_PASSES_AT_BASE = (Reason.FAILS_ON_HEAD, Reason.FLAKY)

_log = logging.getLogger("perfquarry.benchmarks")


class Trial(Row):
    """One commit that was tried; kept when it built and its tests ran."""

    TABLE: ClassVar[str] = "build_trials"
    KEY: ClassVar[tuple[str, ...]] = ("head_sha",)

    head_sha: str
    merged_at: datetime
    title: str
    python: str = ""
    built: bool
    test: str = Field(default="", description="A test that passed at the base.")
    seconds: float = Field(description="Wall time of builds and tests, other commits being tried at the same time.")
    log: str = Field(default="", description="End of what the build or the tests said.")


def in_package(change: Change, repository: Repository) -> bool:
    """Whether the change touches a source file of the package."""
    tops = {
        (PurePosixPath(folder) / package.replace(".", "/")).as_posix()
        for folder in repository.source_dirs or ["."]
        for package in repository.packages
    }
    paths = [file.path for file in change.files if file.role == "source"]
    return any(not tops or path.startswith(tuple(f"{top}/" for top in tops)) or path[:-3] in tops for path in paths)


def spread(changes: Sequence[Change], count: int, seed: str) -> list[Change]:
    """One change of each of `count` equal stretches of time, and as many others as there are empty stretches.

    They come in random order, so that what a benchmark cut short has tried is a sample, too.
    """
    if not changes:
        return []
    rng = random.Random(seed)
    ordered = sorted(changes, key=lambda change: (change.merged_at, change.head_sha))
    first, width = ordered[0].merged_at, (ordered[-1].merged_at - ordered[0].merged_at) / count
    stretches: dict[int, list[Change]] = {}
    for change in ordered:
        place = int((change.merged_at - first) / (width or timedelta(days=1)))
        stretches.setdefault(min(place, count - 1), []).append(change)
    chosen = [rng.choice(stretch) for stretch in stretches.values()]
    taken = {change.head_sha for change in chosen}
    rest = [change for change in ordered if change.head_sha not in taken]
    chosen += rng.sample(rest, min(count - len(chosen), len(rest)))
    return rng.sample(chosen, len(chosen))


def sample(run: Run, commits: int | None) -> list[Change]:
    """The commits to try, drawn once a home: they stay the same while the history grows."""
    count, since, until = PLANS.get(run.name, PLAN)
    count = commits or count
    stamp = run.stamp("mine").model_copy(update={"config_hash": content_id("sample", SEED, count, since, until)})
    if known := list(run.store.records(Change, run.name, config_hash=stamp.config_hash)):
        return known
    history = crawl(
        run.clone,
        stamp,
        run.options.settings.mine,
        since=datetime(since, 1, 1, tzinfo=UTC),
        until=datetime(until + 1, 1, 1, tzinfo=UTC) - timedelta(seconds=1),
        branch=run.repository.branch or None,
    )
    eligible = [change for change in history if change.status == "kept" and in_package(change, run.repository)]
    chosen = spread(eligible, count, f"{SEED}/{run.name}")
    run.store.append(chosen)
    return chosen


def attempt(run: Run, change: Change) -> Trial:
    """Builds one commit and runs its tests.

    Raises:
        InfrastructureError: ours failed; nothing is known of the commit.
    """
    began = time.monotonic()
    built = run.builder.build(change)
    reason, test = built.rows[0].reason, ""
    log = next((row.log for row in built.rows if not row.log.endswith("cannot be made")), "")  # of the side that failed
    if built.base and built.head:
        verdict = Verdict(
            **run.stamp("judge").fields(),
            change_id=change.change_id,
            judge="benchmark",
            is_performance="unsure",
            probability=0.5,
            functions=touched(run.clone, change),
        )
        tools = run.tools(built.rows)
        case = Case(change, verdict, built.base, built.head, run.runtime.prober, TESTS, run.stamp("generate"), tools)
        rows = UnitTests().workloads(case)
        passing = [row.code for row in rows if row.status == "kept" or row.reason in _PASSES_AT_BASE]
        test = next(filter(None, passing), "")  # the summary of a change without workloads has no code
        reason, log = rows[0].reason, rows[0].detail
        if not test and reason in _NOTHING_CHOSEN:
            test, reason, log = nearest_test(run, change, built.base, built.head)
    return Trial(
        **trial_stamp(run),
        status="kept" if test else "rejected",
        reason=None if test else reason,
        head_sha=change.head_sha,
        merged_at=change.merged_at,
        title=change.title,
        python=built.rows[0].python,
        built=built.base is not None,
        test=test,
        seconds=time.monotonic() - began,
        log="" if test else log[-4096:],
    )


def nearest_test(run: Run, change: Change, base: BuiltSide, head: BuiltSide) -> tuple[str, Reason | None, str]:
    """A test of the nearest test files that passes at the base, or why there is none with what was said."""
    files = [one.path for one in candidate_files(change, {"base": base, "head": head}, TESTS.max_test_files)]
    if not files:  # no import leads from a test to the change: the nearest by folder
        changed = {part for file in change.files for part in PurePosixPath(file.path).parts}
        named = [path for path in module_files(base.tree) if is_test_name(path, python_files(base.tree))]
        files = sorted(named, key=lambda path: (-len(changed.intersection(PurePosixPath(path).parts)), path))
    files = [path for path in files if (base.tree / path).is_file()][:NEAREST_FILES]
    if not files:
        return "", Reason.NO_TESTS, "no test file at the base"
    request = ProbeRequest(mode="check", arguments=files, test_timeout=TESTS.test_timeout)
    report = run.runtime.prober.run(base, request, limits=Limits(TESTS.timeout, TESTS.memory_bytes))
    passed = next((item.node for item in report.items if item.outcome == "passed"), "")
    if passed:
        return passed, None, ""
    said = [f"{item.node}: {item.outcome}: {item.message}" for item in report.items[:5]]
    said += [f"{path}: {text}" for path, text in report.collect_errors.items()]
    timed_out = report.outcome == "timeout"
    return "", Reason.TEST_TIMEOUT if timed_out else Reason.FAILS_ON_BASE, "\n".join([*said, report.output])


def trial_stamp(run: Run) -> dict[str, str]:
    """Columns of provenance: what a build and its tests depend on, not how many commits were drawn."""
    settings = content_id(run.hashes["build"], TESTS.config_hash())
    return {"repo": run.name, "stage_version": VERSIONS["build"], "config_hash": settings}


def measure(
    run: Run, changes: Sequence[Change], jobs: int, progress: Progress, deadline: float, *, again: bool = False
) -> list[Trial]:
    """Trials of the changes, those of earlier runs included; none is begun after the deadline.

    Args:
        again: what was rejected before is tried again, as after a mend.
    """
    stamp = trial_stamp(run)
    where = {"stage_version": stamp["stage_version"], "config_hash": stamp["config_hash"]}
    wanted = {change.head_sha for change in changes}
    known = [trial for trial in run.store.records(Trial, run.name, **where) if trial.head_sha in wanted]
    known = [trial for trial in known if not again or trial.status == "kept"]
    bar = progress.add_task(run.name, total=len(changes), completed=len(known))
    done = {trial.head_sha for trial in known}

    def one(change: Change) -> Trial | None:
        if time.monotonic() > deadline:
            return None
        try:
            trial = attempt(run, change)
        except InfrastructureError as error:
            _log.error("%s %s was not measured: %s", run.name, change.head_sha[:10], error)
            return None
        run.store.append([trial])
        tidy(run.home, run.options.settings.resources.disk)
        progress.advance(bar)
        return trial

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        found = list(pool.map(one, [change for change in changes if change.head_sha not in done]))
    return known + [trial for trial in found if trial]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and writes the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clones", nargs="+", metavar="NAME=CLONE")
    parser.add_argument("--commits", type=int, help="commits of each repository; default 40 (numpy 10)")
    parser.add_argument("--home", default=str(Home.default().root))
    parser.add_argument("--jobs", type=int, default=cores_of_process())
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no further commit after that time")
    parser.add_argument("--again", action="store_true", help="try what was rejected again, as after a mend")
    parser.add_argument("--details", action="store_true", help="one line a commit on the terminal")
    parser.add_argument("--failures", type=Path, metavar="FILE.md", help="write what failed, with logs")
    asked = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING)
    deadline = time.monotonic() + 60 * asked.minutes
    trials: dict[str, list[Trial]] = {}
    sampled: dict[str, int] = {}
    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn()) as progress:
        for name, _, clone in (pair.partition("=") for pair in asked.clones):
            options = Options(repo=name, source=clone, home=asked.home, jobs=asked.jobs)
            run = Run.open(options.model_dump_json())
            changes = sample(run, asked.commits)
            sampled[run.name] = len(changes)
            trials[run.name] = measure(run, changes, asked.jobs, progress, deadline, again=asked.again)
    for name, found in trials.items():
        body = section(name, found, sampled[name], asked.jobs)
        replace_section(f"Builds of {name}", body)
        print(body)
    if asked.details:
        print_details(trials)
    if asked.failures:
        write_failures(trials, asked.failures)


if __name__ == "__main__":
    main()
