"""The stages as the flows see them: what is still to do, and how a batch of it is done.

A stage reads one table and adds rows to the next; what it still has to do is what the
next table does not have yet. Nothing else marks progress.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, TypeVar

import pyarrow.compute as pc

from perfquarry.curation import again, counting, rows_of_run
from perfquarry.curation.deciding import decided, kept_workloads
from perfquarry.curation.executable import nothing_to_execute
from perfquarry.curation.in_force import accepted_tasks, extra_sources, renewed
from perfquarry.curation.layouts import with_own_roles
from perfquarry.curation.screening import stage as screening
from perfquarry.curation.sessions import measure, shows_gain
from perfquarry.data.display import current, waiting_for_core
from perfquarry.data.git import git_of
from perfquarry.data.own_rows import append_in_parts
from perfquarry.data.records import (
    Attempt,
    Build,
    Change,
    Count,
    Evidence,
    Finding,
    Problem,
    Reason,
    Renewal,
    Row,
    Task,
    Timing,
    Verdict,
    Workload,
    content_id,
)  # fmt: skip
from perfquarry.flows.run import OthersWait, Run, TimeIsOver
from perfquarry.flows.sources import sources_of
from perfquarry.harness.leases.tidying import tidy
from perfquarry.harness.measuring.machine import core_is_awaited, measurement_lock
from perfquarry.harness.measuring.unfinished import Unfinished
from perfquarry.harness.probing.known_reports import KnownReports
from perfquarry.miners.history import crawl
from perfquarry.miners.judge import spec_of
from perfquarry.miners.judge.verdicts import verdict_with_functions, verdicts
from perfquarry.miners.judge.words import rank
from perfquarry.miners.pulls.joined import Joined
from perfquarry.miners.revisions import RevisionRange, select
from perfquarry.miners.submodules import fetch_submodules
from perfquarry.testgen.again import try_again
from perfquarry.testgen.apis import with_apis
from perfquarry.testgen.case import Case
from perfquarry.testgen.sources import WorkloadSource, ask_further, gather
from perfquarry.testgen.unit_tests import any_passes

R = TypeVar("R", bound=Row)
JUDGE_ROWS, JUDGE_PARTS = 5000, 16
"""A worker judges so many changes at a time, or that part of those to be judged, if it is more."""

_TRIED_IN_COPIES = 12
"""Failing tests of a change that are run once in a copy of the base."""
_log = logging.getLogger("perfquarry.flows")
ASIDE_SECONDS = 60.0
"""A change is timed at least so long before it is set aside for others that wait for its core."""
_STEP = 50
"""Rows between two movements of a bar that counts rows."""
LEAST_READ = 200
"""Commits that a run with little time reads, and judges, all the same."""

Batch = tuple[str, ...]


@dataclass(frozen=True)
class Stage:
    """One stage of the line."""

    name: str
    todo: Callable[[Run], list[Batch]]
    work: Callable[[Run, Batch], None]
    alone: bool = False
    """Never two batches at once."""
    of_changes: bool = False
    """Its batches are single changes, which walk on to the next stage one by one."""
    decides: bool = False
    """It looks at all changes together, and is quick: it is done anew whenever some were timed."""
    needs_core: bool = False
    """It times: each of its batches takes a core for itself."""
    counts_rows: bool = False
    """Its batches are large: it moves the bar itself, a step a row, and looks anew at what is done when it begins."""
    begin: Callable[[Run], object] | None = None
    """Called once a run, before it is asked what is to do."""
    summary: Callable[[Run], str] | None = None
    """What is said of it in the end; None: its line of the funnel."""
    writes: tuple[type[Row], ...] = ()
    """Its tables."""
    keys: Literal["change", "task", ""] = ""
    """What a key of its batches names, for logs and spans; empty: nothing that a reader would look for."""

    @property
    def single(self) -> bool:
        """Whether each of its batches is one change or task, which can be ended: the next run begins it again."""
        return bool(self.keys) and not self.counts_rows

    def workers(self, run: Run) -> int:
        """How many batches run at once."""
        return 1 if self.alone else run.options.jobs


def _counted(rows: Iterable[R]) -> Iterator[R]:
    for number, row in enumerate(rows, 1):
        yield row
        if number % _STEP == 0:
            current().advance(_STEP)


def _in_time(run: Run, rows: Iterator[R], shares: int) -> Iterator[R]:
    """Those of the rows that the run has time for (`Run.may_read`), but `LEAST_READ` at least."""
    run.may_read(shares)  # from now on
    for number, row in enumerate(rows, 1):
        yield row
        if number >= LEAST_READ and not run.may_read(shares):
            return


# mine


def _asked(run: Run) -> RevisionRange:
    """The commits that the options name and that have no row yet."""
    options = run.options
    known = frozenset(run.column("mine", "head_sha"))
    return RevisionRange(known, options.since, options.until, options.changes or None, run.repository.branch or None)


def _mine(run: Run, _: Batch) -> None:
    settings, timed = run.options.settings, run.options.seconds is not None
    crawled = crawl(
        run.clone,
        run.stamp("mine"),
        settings.mine,
        **vars(_asked(run)),
        places=run.places,
        rank=rank if timed else None,
    )
    with closing(crawled):
        joined = Joined(run, run.clone, run.repository, settings.pulls, settings.mine, run.places)
        append_in_parts(run, joined.rows(_counted(_in_time(run, crawled, 1))))
    joined.keep()
    if timed and (left := unread(run)):
        current().announce("later", f"{left} commits are for the next run; those that speak of speed were read first")


def unread(run: Run) -> int:
    """How many commits a run that had too little time left to the next one."""
    return len(select(git_of(run.clone), _asked(run)))


# judge


def _judge_todo(run: Run) -> list[Batch]:
    keys = run.store.missing(
        Change,
        Verdict,
        run.name,
        source=run.where("mine"),
        target=run.where("judge"),
    )
    if spec_of(run.options.settings.judge):  # answers cost money
        wanted = run.asked_for()
        keys = [key for key in keys if key in wanted]
        return [tuple(keys)] if keys else []
    size = max(JUDGE_ROWS, len(keys) // JUDGE_PARTS)
    return [tuple(keys[start : start + size]) for start in range(0, len(keys), size)]


def _judge(run: Run, keys: Batch) -> None:
    wanted = frozenset(keys) - run.column("judge")  # a batch may be tried again
    with run.judging() as judge:
        found = verdicts(run, judge, wanted)
        # answers that cost money are not left unread
        timed = found if spec_of(run.options.settings.judge) else _in_time(run, found, 2)
        append_in_parts(run, _counted(timed))
    run.judged()


# build, generate, measure: one change a batch, most probable first


def _one_by_one(run: Run, ready: set[str], done: set[str]) -> list[Batch]:
    return [(change,) for change in run.in_scope() if change in ready and change not in done]


def _build_todo(run: Run) -> list[Batch]:
    return _one_by_one(run, run.kept("judge"), run.column("build") - again.waiting(run, "build", run.begun))


def _build(run: Run, keys: Batch) -> None:
    for key in keys:
        change = run.change(key)
        current().note(change.title)
        if verdict := nothing_to_execute(run, run.clone, run.repository, change):
            run.store.append([verdict])
            continue
        for problem in fetch_submodules(run.source, run.clone, (change.base_sha, change.head_sha)):
            _log.warning("%s", problem)
        built = run.builder.build(change)
        run.store.append(built.attempts)  # first: only the builds say that the change is done
        run.store.append(again.builds(run, key, built.rows))
        tidy(run.home, run.options.settings.resources.disk)


def _generate_todo(run: Run) -> list[Batch]:
    done = rows_of_run.done(run, "generate") - again.waiting(run, "generate", run.begun)
    return _one_by_one(run, run.kept("build"), done)


def case_of(run: Run, change_id: str) -> Case:
    """A built change as the sources of workloads get it; while it is referred to, its builds are not evicted."""
    builds = run.rows_of(Build, "build", change_id)
    base, head = run.builder.reopen(builds)
    settings, stamp = run.options.settings.generate, run.stamp("generate")
    change = with_own_roles(run.clone, run.repository, run.change(change_id))
    verdict = verdict_with_functions(run, run.clone, change)
    prober = replace(run.runtime.prober, known=_known_reports(run, change_id))
    return Case(change, verdict, base, head, prober, settings, stamp, run.tools(builds))


def _known_reports(run: Run, change_id: str) -> KnownReports:
    return KnownReports(run.home.searches / _work_of(run, "generate", change_id))


def _work_of(run: Run, stage: Literal["generate", "measure"], change_id: str, *more: object) -> str:
    """A name for a stage's work on a change with all that it depends on as it is now."""
    built = sorted((one.build_id, one.created_at.isoformat()) for one in run.rows_of(Build, "build", change_id))
    return content_id(
        run.scope(stage), change_id, built, str(renewed(run.store, run.name, stage).get(change_id)), *more
    )


def _generate(run: Run, keys: Batch) -> None:
    for key in keys:
        case = case_of(run, key)
        current().note(case.change.title)
        sources, further = sources_of(run, extra_sources(run.store, run.name, key))
        known, wished_by = again.workloads(run, key), again.WISHED_BY
        if known:
            rows = try_again(case, known, [*sources, *further])
        elif again.seeks_further(run, key) and (known := run.rows_of(Workload, "generate", key)):
            rows, wished_by = ask_further(case, known, further), again.GAINLESS
        else:
            rows = _gathered(run, case, sources, further)
        found = with_apis(case, rows)
        run.store.append([*(again.wishes(run, key, known, found, wished_by) if known else []), *found])
        if case.prober.known:
            case.prober.known.remove()
        del case
        tidy(run.home, run.options.settings.resources.disk)


def _gathered(
    run: Run, case: Case, sources: Sequence[WorkloadSource], further: Sequence[WorkloadSource]
) -> list[Workload]:
    """Rows of all sources; where more tests fail because they write into their tree than are kept, or all fail and
    one of them passes in a copy, those with copies for each process, if these give more. Where the tests of the
    change before needed copies, only these are tried.

    Where they give workloads, the builds say so from then on: all that runs the change later reads it there. A change
    that alters behaviour is not looked at twice.
    """
    own, kept = case.with_own_trees(), 0
    if not own or not _copies_were_needed(run):
        rows = gather(case, sources, further)
        reasons = Counter(row.reason for row in rows)
        kept = reasons[None]
        if not own or Reason.FAILS_ON_HEAD in reasons:
            return rows
        failing = [] if kept else [row.code for row in rows if row.code and row.reason == Reason.FAILS_ON_BASE]
        if reasons[Reason.NEEDS_TREE] <= kept and not any_passes(own, failing[:_TRIED_IN_COPIES]):
            return rows
    found = gather(own, sources, further)
    more = sum(row.reason is None for row in found) > kept
    if more:
        changed = {"writable_tree": True, "created_at": datetime.now(UTC)}
        builds = run.rows_of(Build, "build", case.change.change_id)
        run.store.append([row.model_copy(update=changed) for row in builds])
    return found if more or not kept else rows


def _copies_were_needed(run: Run) -> bool:
    """Whether the change that was the last to be given workloads has them of tests that write into their tree."""
    columns, kept = ["change_id", "created_at"], pc.field("status") == "kept"
    found = run.store.scan(Workload, run.name, columns=columns, where=kept, **run.where("generate"))
    if not found.num_rows:
        return False
    newest = found["change_id"][pc.index(found["created_at"], pc.max(found["created_at"])).as_py()].as_py()
    return any(row.writable_tree for row in run.rows_of(Build, "build", newest))


def further_wishes(run: Run) -> list[Renewal]:
    """Where unit tests alone show no gain: what a run that was given time asks the further sources about."""
    if run.options.seconds is None:
        return []
    return again.further_wishes(run, run.options.settings.generate.further, run.in_scope)


def wish_further(run: Run) -> int:
    """Writes these wishes down; how many there are."""
    wishes = further_wishes(run)
    run.store.append(wishes)
    return len(wishes)


def _measure_todo(run: Run) -> list[Batch]:
    done = rows_of_run.done(run, "measure") - set(rows_of_run.undecided(run, run.begun))
    return _one_by_one(run, run.kept("generate"), done)


def _unfinished(run: Run, change_id: str, workloads: Sequence[Workload], first_session: int) -> Unfinished:
    """What was measured of a change by a run that did not come to its end, with all that it depends on as it is now."""
    ids = [one.workload_id for one in workloads]
    name = _work_of(run, "measure", change_id, first_session, ids, run.runtime.machine.model_dump(mode="json"))
    return Unfinished(run.home.unfinished / f"{name}.jsonl")


def _measure(run: Run, keys: Batch) -> None:
    """Measures a change, or goes on with it.

    Raises:
        TimeIsOver: the time of the run was over before a core was free, or before a gain was seen.
        OthersWait: it was set aside.
    """
    (change_id,) = keys
    settings, change = run.options.settings, run.change(change_id)
    base, head = run.builder.reopen(run.rows_of(Build, "build", change_id))
    left = rows_of_run.undecided(run, run.begun).get(change_id)
    first_session = left.next_session if left else 1
    workloads = [one for one in kept_workloads(run, change_id) if not left or one.workload_id in left.workload_ids]
    unfinished = _unfinished(run, change_id, workloads, first_session)

    def wait(waited: float) -> None:
        if run.is_over:
            raise TimeIsOver
        waiting_for_core(waited)

    def advance(done: int, planned: int) -> None:
        current().note(f"pair {done} of at most {planned}: {change.title}")

    with measurement_lock(on_wait=wait) as core:
        until = time.monotonic() + ASIDE_SECONDS

        def keep(pair: Sequence[Timing]) -> None:
            unfinished.add(pair)
            open_still = any(
                row.session % rows_of_run.ROUND and row.block + 1 >= settings.measure.pairs for row in pair
            )
            waited_for = time.monotonic() > until and (run.others_wait.is_set() or core_is_awaited())
            may_stop = run.time_is_over or (open_still and waited_for)
            if may_stop and not shows_gain(unfinished.rows(), settings.select):
                raise TimeIsOver if run.time_is_over else OthersWait

        timings = measure(
            change_id,
            workloads,
            base,
            head,
            run.runtime.prober,
            run.runtime.machine,
            settings.measure,
            settings.select,
            run.stamp("measure"),
            core=core,
            first_session=first_session,
            so_far=unfinished.rows(),
            pair_seconds=math.inf if left else settings.measure.pair_seconds,
            keep=keep,
            progress=advance,
        )
    if not run.claims.holds(run.scope("measure"), change_id):  # this machine slept, and another measures the change
        _log.warning("the claim of %s was lost while it was measured: its timings are dropped", change_id)
        return
    run.store.append(timings)
    unfinished.remove()


# select: all timings of the repository together, because q-values need the whole family


def _select_todo(run: Run) -> list[Batch]:
    changes = sorted(run.column("measure"))
    if not changes:
        return []
    family = rows_of_run.family(run, changes)
    written = run.store.scan(Task, run.name, columns=["config_hash"])
    return [] if family in set(written["config_hash"].to_pylist()) else [(family,)]


def _select(run: Run, keys: Batch) -> None:
    evidence, tasks = decided(run, run.clone, run.repository, run.options.settings.select, keys[0])
    run.store.append(evidence)
    run.store.append(tasks)


# screen, count: of accepted tasks


def _screen(run: Run, _: Batch) -> None:
    screening.screen(run, run.clone, run.options.settings.screen)


def _count(run: Run, names: Batch) -> None:
    """A task takes minutes beside other work: none is begun when the time is over, and the next run goes on.

    Raises:
        TimeIsOver: it is.
    """
    if run.time_is_over:
        raise TimeIsOver
    for task in accepted_tasks(run.store, run.name):
        if task.task_id in names:
            counting.count(run, task, run.builder, run.runtime, run.options.settings.count)


STAGES: tuple[Stage, ...] = (
    Stage("mine", lambda run: [("history",)], _mine, alone=True, counts_rows=True, writes=(Change,)),
    Stage("judge", _judge_todo, _judge, alone=True, counts_rows=True, writes=(Verdict,), keys="change"),
    Stage("build", _build_todo, _build, of_changes=True, writes=(Attempt, Build), keys="change"),
    Stage(
        "generate",
        _generate_todo,
        _generate,
        of_changes=True,
        begin=wish_further,
        writes=(Verdict, Workload),
        keys="change",
    ),
    Stage(
        "measure",
        _measure_todo,
        _measure,
        of_changes=True,
        needs_core=True,
        begin=lambda run: run.store.append(again.late_wishes(run, run.in_scope, run.begun)),
        writes=(Timing,),
        keys="change",
    ),
    Stage("select", _select_todo, _select, alone=True, decides=True, writes=(Evidence, Task)),
    Stage(
        "screen",
        screening.todo,
        _screen,
        alone=True,
        decides=True,
        summary=screening.summary,
        writes=(Finding, Problem),
    ),
    Stage("count", counting.todo, _count, alone=True, summary=counting.summary, writes=(Count,), keys="task"),
)
"""In the order in which data walks through them."""
BY_NAME = {stage.name: stage for stage in STAGES}
