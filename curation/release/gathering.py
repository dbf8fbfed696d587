"""`perfquarry release`: what the tables hold → a release."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version as installed_version
from pathlib import Path

import pyarrow.compute as pc

from perfquarry.curation.counts import counts_of
from perfquarry.curation.in_force import (
    accepted_tasks,
    decisions_in_force,
    funnel_in_force,
    made_of,
    newest_findings_of,
    renewed,
    without_replaced,
)
from perfquarry.curation.intents import intents_of, with_curators
from perfquarry.curation.names import repository_of
from perfquarry.curation.release.changelog import Changes
from perfquarry.curation.release.check import read_failed, read_runs
from perfquarry.curation.release.harbor_folders import ImagesAsked, PublishedFolders
from perfquarry.curation.release.manifest import Family, Manifest, Source
from perfquarry.curation.release.selection import ReleaseCandidate, read_intents, read_reviews, select
from perfquarry.curation.release.sources import tree_of
from perfquarry.curation.release.writing import Asked, write_release
from perfquarry.curation.revalidation import no_longer_held
from perfquarry.curation.review.database import database_of
from perfquarry.curation.review.decisions import Decisions
from perfquarry.data.errors import InputError, UnknownRepository
from perfquarry.data.home import Home
from perfquarry.data.records import (
    Build,
    Change,
    Evidence,
    IntentClass,
    Problem,
    ReleasedTiming,
    Revalidation,
    Task,
    Timing,
    Workload,
)
from perfquarry.data.records.inputs import public_address
from perfquarry.data.store import TableStore
from perfquarry.harness.trees.checkouts import Checkouts
from perfquarry.miners.patches import licence_file_at


def release(
    homes: Sequence[Home],
    repos: Sequence[str],
    version: str,
    name: str,
    to: Path,
    reviews: Path | None,
    checked: Path | None,
    previous: Path | None,
    images: ImagesAsked | None = None,
    withdrawn: Mapping[str, str] | None = None,
    replaced: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> tuple[Manifest, Changes]:
    """Makes a release of the accepted tasks of repositories, each of the first home that holds it.

    Args:
        homes: those that hold the repositories.
        repos: names of repositories.
        version: of the dataset.
        name: of the dataset.
        to: the folder.
        reviews: curators' decisions.
        checked: what `release check --json` printed of an earlier one.
        previous: folder of the version before.
        images: where images go; None: the release has no task folders.
        withdrawn: reasons by task_id, for tasks that are taken back.
        replaced: reasons by task_id, for tasks that come again, otherwise made.
        say: receives in words which images were sent, and which decisions are not used.

    Raises:
        InputError: a repository has no accepted task or no clone, or a file cannot be read or written.
    """
    decisions = read_reviews(reviews) if reviews else {}
    classes = read_intents(reviews) if reviews else {}
    places = dict(_place(homes, repo) for repo in repos)
    candidates: list[ReleaseCandidate] = []
    sources: list[Source] = []
    for repo, home in places.items():
        store = TableStore(home.tables)
        accepted = accepted_tasks(store, repo)
        candidates += _candidates(home, repo, accepted, classes)
        sources.append(_source(store, repo, accepted))
        if waiting := sources[-1].funnel.pending:
            say(f"{repo}: {waiting} changes were not tried yet: perfquarry curate {repo} goes on with them")
    again = [row for home in homes for repo in places for row in TableStore(home.tables).records(Revalidation, repo)]
    if not reviews and (unused := sum(len(_decided(home, candidates)) for home in set(places.values()))):
        say(
            f"{unused} task(s) have decisions of curators that this release does not use: "
            "perfquarry review --export FILE, then --reviews FILE"
        )
    failed = no_longer_held(again, [one.task for one in candidates])
    failed |= read_failed(checked, [one.task.task_id for one in candidates]) if checked else {}
    selection = select(candidates, decisions, failed)
    timings = [row for repo, home in places.items() for row in _timings(TableStore(home.tables), repo, selection.tasks)]
    manifest = Manifest(
        name=name,
        version=version,
        made_at=datetime.now(UTC),
        made_by=f"perfquarry {installed_version('perfquarry')}",
        sources=sources,
        machines=[],
        rows={},
        accepted_by_curators=0,
        left_out=[],
        oldest=None,
        newest=None,
    )
    clones = {repo: _clone(home, repo) for repo, home in places.items()}
    folders = PublishedFolders(places, images, say) if images else None
    seen = {(run.task_id, run.sha256): run.status for run in read_runs(checked)} if checked else {}
    asked = Asked(withdrawn=dict(withdrawn or {}), replaced=dict(replaced or {}), statuses=seen)
    return write_release(to, manifest, selection, timings, clones, previous, again, folders, asked)


def _decided(home: Home, candidates: Sequence[ReleaseCandidate]) -> set[str]:
    """Ids of the candidates that somebody accepted or rejected on the review page of a home."""
    if not (home.root / "review").is_dir() and "PERFQUARRY_DATABASE" not in os.environ:
        return set()
    engine = database_of(home)
    try:
        decisions = Decisions(engine)
        standing = decisions.standing()
        decided = {one.task_id for one in decisions.log() if one.uid in standing}
    finally:
        engine.dispose()
    return decided.intersection(one.task.task_id for one in candidates)


def _place(homes: Sequence[Home], repo: str) -> tuple[str, Home]:
    for home in homes:
        with suppress(UnknownRepository):
            name = repository_of(home, repo).name
            if accepted_tasks(TableStore(home.tables), name):
                return name, home
    where = ", ".join(str(home.root) for home in homes)
    raise InputError(f"no accepted task of {repo} in {where}: run `perfquarry curate {repo}` first")


def _clone(home: Home, repo: str) -> Path:
    clone = home.clone(repo)
    if not clone.is_dir():
        raise InputError(f"the clone of {repo} is not in {home.root}: run `perfquarry mine {repo}` first")
    return clone


def _candidates(
    home: Home, repo: str, tasks: Sequence[Task], classes: Mapping[str, tuple[IntentClass, str]]
) -> Iterator[ReleaseCandidate]:
    store, clone = TableStore(home.tables), _clone(home, repo)
    builds = {row.change_id: row for row in made_of(store, Build, repo, tasks) if row.side == "base"}
    workloads = made_of(store, Workload, repo, tasks)
    findings = newest_findings_of(store, repo, tasks)
    problems = list(store.records(Problem, repo, where=pc.field("task_id").isin([task.task_id for task in tasks])))
    counts = counts_of(store, repo).values()
    intents = with_curators(intents_of(store, repo, tasks), classes)
    checkouts = Checkouts(home, clone, repo)
    for task in tasks:
        base = builds.get(task.change_id)
        licence, licence_file = licence_file_at(clone, task.base_sha)
        yield ReleaseCandidate(
            task=task,
            base=base if base and base.status == "kept" else None,
            tree=tree_of(clone, task.base_sha),
            build_version=checkouts.version(task.base_sha),
            tests=sorted(
                row.code
                for row in workloads
                if row.change_id == task.change_id and row.status == "kept" and not row.is_script
            ),
            findings=[row for row in findings if row.task_id == task.task_id],
            problems=[row for row in problems if row.task_id == task.task_id],
            counts=[row for row in counts if row.change_id == task.change_id],
            intent=intents.get(task.task_id),
            licence=licence,
            licence_file=licence_file,
        )


def _source(store: TableStore, repo: str, accepted: Sequence[Task]) -> Source:
    first, decisions = accepted[0], decisions_in_force(store, repo)
    dates = store.scan(Change, repo, columns=["merged_at"])["merged_at"]
    return Source(
        repo=repo,
        codebase=first.codebase,
        url=public_address(first.url),
        licence=first.licence,
        tasks=len(accepted),
        mined_until=pc.max(dates).as_py(),
        funnel=funnel_in_force(store, repo),
        family=Family.of(list(store.records(Evidence, repo)), decisions),
    )


def _timings(store: TableStore, repo: str, tasks: Sequence[Task]) -> Iterator[ReleasedTiming]:
    """Of the released workloads, on the machine whose figures are published."""
    mine = [task for task in tasks if task.repo == repo]
    owners = {workload.workload_id: task for task in mine for workload in task.workloads}
    for timing in without_replaced(made_of(store, Timing, repo, mine), renewed(store, repo, "measure")):
        owner = owners.get(timing.workload_id)
        if owner and timing.machine.machine_id == owner.machine_id:
            same = set(ReleasedTiming.model_fields) & set(Timing.model_fields)
            facts = {name: getattr(timing, name) for name in same}
            yield ReleasedTiming.model_validate({"task_id": owner.task_id, **facts})
