"""Which accepted tasks are released, in which words, and why the others are not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from perfquarry.curation.counts import change_count, label_of
from perfquarry.curation.private import addresses_in, secrets_in, without_addresses
from perfquarry.curation.problems import texts_for_solvers
from perfquarry.curation.release.leaks import changed_text, fix_in
from perfquarry.curation.release.manifest import LeftOut
from perfquarry.data.errors import InputError
from perfquarry.data.records import (
    Build,
    Count,
    Finding,
    Intent,
    IntentClass,
    Problem,
    ReleasedRecipe,
    ReleasedTask,
    Task,
    change_id_of,
)
from perfquarry.data.records.inputs import public_address, validation_message
from perfquarry.data.records.release import ReleasedCount
from perfquarry.data.records.task import TaskWorkload

if TYPE_CHECKING:
    import pandas as pd

ACCEPTED = "accept"
_NO_OPINION = ("note", "undo")


@dataclass(frozen=True)
class ReleaseCandidate:
    """An accepted task with what else the tables know of it."""

    task: Task
    base: Build | None
    """The kept build of its base."""
    tree: str
    """Git id of the base's tree."""
    build_version: str = ""
    """Version that builds of the base get when they ask git."""
    tests: Sequence[str] = ()
    """Kept unit tests of the change, whether they became workloads of the task or not."""
    findings: Sequence[Finding] = ()
    problems: Sequence[Problem] = ()
    counts: Sequence[Count] = ()
    """Instruction counts of the change's workloads, the newest of each."""
    intent: Intent | None = None
    """Whether its gain was meant, and who said so."""
    licence: str = ""
    """SPDX identifier as the files at the base commit name it; empty: they do not."""
    licence_file: str = ""
    """The file that names it, in the base's tree; empty: there is none."""


@dataclass
class Selection:
    """Tasks to release, and those left out. `rows` and `tasks` belong together, place by place."""

    rows: list[ReleasedTask] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    """The same as records of the pipeline, with the released words: what GSO's and SWE-Perf's rows are made of."""
    left_out: list[LeftOut] = field(default_factory=list)

    def without(self, why: Mapping[str, str]) -> Selection:
        """The same but for some tasks, which are left out for the reason given."""
        kept = [place for place, row in enumerate(self.rows) if row.task_id not in why]
        gone = [LeftOut(task_id=row.task_id, why=why[row.task_id]) for row in self.rows if row.task_id in why]
        return Selection([self.rows[one] for one in kept], [self.tasks[one] for one in kept], self.left_out + gone)


def select(candidates: Iterable[ReleaseCandidate], reviews: Mapping[str, bool], failed: Mapping[str, str]) -> Selection:
    """Leaves out what curators rejected, what screening blocks and no curator accepted, and what must not be public.

    Args:
        candidates: accepted tasks.
        reviews: by task_id whether curators accepted it (`read_reviews`); tasks without an entry are not reviewed.
        failed: by task_id what an earlier gate found when it ran them (`curation.release.check.read_failed`), or
            measuring them again (`curation.revalidation.no_longer_held`).
    """
    selection = Selection()
    for candidate in sorted(candidates, key=lambda one: one.task.task_id):
        review = reviews.get(candidate.task.task_id)
        task = _in_public_words(candidate)
        why = _why_not(candidate, task, review) or failed.get(task.task_id, "")
        try:
            row = None if why else _row(candidate, task, reviewed=review is not None)
        except ValidationError as error:
            row, why = None, f"nobody could read it: {validation_message(error)}"
        if row is None:
            selection.left_out.append(LeftOut(task_id=task.task_id, why=why))
        else:
            selection.tasks.append(task)
            selection.rows.append(row)
    return selection


def read_reviews(path: Path) -> dict[str, bool]:
    """By task_id whether curators accepted it, of a Parquet file with `task_id`, `reviewer`, `decision` and `at`.

    Of each reviewer the newest decision counts. Any other than 'accept' ('reject', 'more-tests') keeps the task out.
    Where the file is a log with `uid` and `undoes`, what was undone counts no more.

    Raises:
        InputError: the file cannot be read, or a column is missing.
    """
    rows = _standing(path)
    newest = rows[~rows["decision"].isin(_NO_OPINION)].drop_duplicates(["task_id", "reviewer"], keep="last")
    accepted = newest["decision"].eq(ACCEPTED).groupby(newest["task_id"]).all()
    return {str(task_id): bool(every) for task_id, every in accepted.items()}


def read_intents(path: Path) -> dict[str, tuple[IntentClass, str]]:
    """By task_id the class that the newest acceptance in a file of reviews sets, and its reviewer (`read_reviews`)."""
    rows = _standing(path)
    if "intent" not in rows:
        return {}
    said = rows[rows["intent"].isin(get_args(IntentClass)) & rows["decision"].eq(ACCEPTED)]
    columns = ("task_id", "intent", "reviewer")
    return {task: (intent, who) for task, intent, who in zip(*(said[name].tolist() for name in columns), strict=True)}


def _standing(path: Path) -> pd.DataFrame:
    """Rows of a file of reviews, oldest first, without those that were undone."""
    try:
        table = pq.read_table(path, partitioning=None)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot read reviews from {path}: {error}") from error
    wanted = ("task_id", "reviewer", "decision", "at")
    if missing := [name for name in wanted if name not in table.column_names]:
        raise InputError(f"{path} is no file of reviews: these columns are missing: {', '.join(missing)}")
    rows: pd.DataFrame = table.sort_by("at").to_pandas()
    return rows[~rows["uid"].isin(rows["undoes"].dropna())] if {"uid", "undoes"} <= set(rows) else rows


def kept_from_solvers(task: Task, findings: Iterable[Finding], problems: Iterable[Problem], review: bool | None) -> str:
    """Why curators or screening keep a task from solvers; empty where nothing does."""
    blocking = [finding for finding in findings if finding.severity == "blocking"]
    if review is False:
        return "rejected by a curator"
    if blocking and not review:
        return f"screening: {'; '.join(f'{one.check}: {one.evidence}' for one in blocking)}"
    texts = texts_for_solvers(task, problems)
    if rejected := [setting for setting in ("oracle", "realistic") if texts.get(setting) == ""]:
        return f"its problem texts reveal the fix (each of setting {' and '.join(rejected)})"
    return ""


def _why_not(candidate: ReleaseCandidate, task: Task, review: bool | None) -> str:
    if why := kept_from_solvers(task, candidate.findings, candidate.problems, review):
        return why
    if candidate.base is None:
        return "its build is no longer in the tables: nobody could run it"
    if not task.licence:
        return "no licence was found in the repository"
    public = [task.patch, task.test_patch, task.message, *(workload.code for workload in task.workloads)]
    if secrets := [one.kind for text in public for one in secrets_in(text)]:
        return f"its texts seem to hold a secret ({secrets[0]})"
    if addresses_in(changed_text(task.patch + task.test_patch)):
        return "its patch adds or removes an e-mail address"
    released = texts_for_solvers(task, candidate.problems).values()
    texts = "\n".join([task.problem_oracle, task.problem_realistic, *released])
    if found := fix_in(texts, task.patch, task.message, task.oracle_targets + task.realistic_targets):
        return f"its problem texts reveal the fix ({found[0]})"
    return ""


def _in_public_words(candidate: ReleaseCandidate) -> Task:
    task = candidate.task
    texts = texts_for_solvers(task, candidate.problems)
    return task.model_copy(
        update={
            "url": public_address(task.url),
            "licence": candidate.licence or task.licence,
            "title": without_addresses(task.title),
            "message": without_addresses(task.message),
            "problem_oracle": texts.get("oracle", task.problem_oracle),
            "problem_realistic": texts.get("realistic", task.problem_realistic),
        }
    )


def _row(candidate: ReleaseCandidate, task: Task, *, reviewed: bool) -> ReleasedTask:
    base = candidate.base
    assert base is not None
    warnings = [one for one in candidate.findings if one.severity == "warning"]
    same = set(ReleasedTask.model_fields) & set(Task.model_fields)
    texts, intent = texts_for_solvers(task, candidate.problems), candidate.intent
    return ReleasedTask.model_validate(
        {
            **{name: getattr(task, name) for name in same},
            "workloads": _labelled(task, candidate.counts),
            "instructions_ratio": _instructions(candidate.counts),
            "base_commit": task.base_sha,
            "licence_url": _address_of(task, candidate.licence_file),
            "head_commit": task.head_sha,
            "created_at": task.created_at_commit,
            "problem_gso": texts.get("gso", ""),
            "problem_fuzzy": texts.get("fuzzy", ""),
            "tests": list(candidate.tests),
            "recipe": ReleasedRecipe(
                tree=candidate.tree,
                python=base.python,
                requirements=base.requirements,
                system_packages=base.system_packages,
                setup_commands=task.setup_commands,
                install_commands=task.install_commands,
                build_version=candidate.build_version,
                source_roots=base.source_roots,
                writable_tree=base.writable_tree,
                environment_id=base.environment_id,
                image_digest=task.image_digest,
            ),
            **(
                {"intent": intent.intent, "intent_by": intent.author, "intent_evidence": _public(intent)}
                if intent
                else {}
            ),
            "review": "accepted" if reviewed else "unreviewed",
            "warnings": [f"{one.check}: {one.evidence}" for one in warnings],
        }
    )


def _public(intent: Intent) -> list[str]:
    return [without_addresses(line) for line in intent.evidence]


def _address_of(task: Task, file: str) -> str:
    """Where a file of the base can be read; empty where its repository is of no known host, or there is none."""
    place = re.fullmatch(r"https://(github\.com|gitlab\.com|codeberg\.org)/(.+?)(?:\.git)?/?", task.url)
    if not (file and place):
        return ""
    between = {"github.com": "blob", "gitlab.com": "-/blob", "codeberg.org": "src/commit"}[place[1]]
    return f"https://{place[1]}/{place[2]}/{between}/{task.base_sha}/{quote(file)}"


def _labelled(task: Task, counts: Sequence[Count]) -> list[dict[str, Any]]:
    by_workload = {count.workload_id: count for count in counts}
    return [one.model_dump() | _counted(by_workload.get(one.workload_id)) for one in task.workloads]


def _counted(count: Count | None) -> dict[str, Any]:
    if count is None or count.ratio is None:
        return {}
    released = {name: getattr(count, name) for name in ReleasedCount.model_fields}
    return {"count_label": label_of(count, faster=True), "count": released}


def _instructions(counts: Sequence[Count]) -> float | None:
    """Of base over head; None where nothing was counted, 1 where the change touches no workload."""
    whole = change_count(counts)
    return whole.ratio or (1.0 if whole.counted else None)


def as_task(row: ReleasedTask) -> Task:
    """A released task as a record of the pipeline; block values and what only the pipeline knows are not in it."""
    same = set(ReleasedTask.model_fields) & set(Task.model_fields)
    return Task.model_validate(
        {
            **{name: getattr(row, name) for name in same},
            "workloads": [one.model_dump(include=set(TaskWorkload.model_fields)) for one in row.workloads],
            "stage_version": "release",
            "config_hash": "release",
            "change_id": change_id_of(row.repo, row.base_commit, row.head_commit),
            "base_sha": row.base_commit,
            "head_sha": row.head_commit,
            "created_at": row.created_at,
            "created_at_commit": row.created_at,
            "python": row.recipe.python,
            "requirements": row.recipe.requirements,
            "setup_commands": row.recipe.setup_commands,
            "install_commands": row.recipe.install_commands,
            "writable_tree": row.recipe.writable_tree,
            "image_digest": row.recipe.image_digest,
        }
    )
