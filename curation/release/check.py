"""The gate of a release: a table of checks, each with what it found wrong."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pydantic import Field

from perfquarry.curation.formats import gso_row, sweperf_row, unit_tests
from perfquarry.curation.private import addresses_in, secrets_in
from perfquarry.curation.release import folder as files
from perfquarry.curation.release import folder_checks, sources, task_folders
from perfquarry.curation.release.image_checks import ImageReader, NotRun, Trees, leaks_in, missing_in
from perfquarry.curation.release.leaks import changed_text, fix_in
from perfquarry.curation.release.manifest import Manifest
from perfquarry.curation.release.selection import as_task
from perfquarry.curation.release.templates import cell
from perfquarry.data.errors import GitFailed, InputError
from perfquarry.data.records import FolderStatus, Record, ReleasedFolder, ReleasedTask, Withdrawn
from perfquarry.harness.git import MissingObjects, git
from perfquarry.harness.registry import MissingImage

SHOWN = 20
"""Most problems that are told of one check."""
_RECIPE = ("python", "requirements", "install_commands", "source_roots", "environment_id")


Outcome = Literal["ok", "failed", "not run"]


class Check(Record):
    """One line of the gate."""

    name: str
    what: str
    outcome: Outcome
    problems: list[str] = Field(default_factory=list)
    why: str = ""
    """Why it was not run."""


class GoldRun(Record):
    """A task that was made and run from the release alone, with the expert's patch and with none."""

    task_id: str
    gold: bool
    """With the patch, all tests pass and a workload is accepted by the rule that made the task."""
    gold_detail: str
    null: bool
    """Without any patch, no workload is accepted."""
    null_detail: str
    speedup: float | None = None
    """Harmonic mean over the workloads accepted here."""
    low: float | None = None
    high: float | None = None
    accepted: int = 0
    """Workloads accepted here, of those of the task."""
    workloads: int = 0
    seconds: float = 0.0
    sha256: str = ""
    """Of the task's folder, which this is about; empty where it has none."""

    @property
    def status(self) -> FolderStatus:
        """What it makes of the task's folder."""
        return "verified" if self.gold and self.null else "needs_repair"


class GoldRunner(Protocol):
    """Makes a task from the release alone and runs it."""

    def run_gold(self, task: ReleasedTask) -> GoldRun:
        """The outcome; a task that cannot be made here fails.

        Raises:
            InfrastructureError: the machine's own fault.
        """


@dataclass(frozen=True)
class _Opened:
    """A release whose manifest can be read; the rest may be damaged."""

    folder: Path

    @cached_property
    def manifest(self) -> Manifest:
        return Manifest.read(self.folder)

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        found = {}
        for name, schema in files.CONFIGURATIONS.items():
            if name != "default" and not files.parquet_of(self.folder, name).parent.exists():
                found[name] = schema.empty_table()
                continue
            try:
                found[name] = pq.read_table(files.plain(files.parquet_of(self.folder, name)), partitioning=None)
            except (OSError, pa.ArrowException) as error:
                raise InputError(f"data/{name} cannot be read: {error}") from error
        return found

    @cached_property
    def tasks(self) -> list[ReleasedTask]:
        return files.read_tasks(self.folder)

    @cached_property
    def folders(self) -> list[ReleasedFolder]:
        """Of all tasks.

        Raises:
            NotRun: the release has none.
        """
        rows = files.read(self.folder, ReleasedFolder, "tasks")
        if not rows and not (self.folder / task_folders.FOLDER).exists():
            raise NotRun("the release has no task folders: it was made without --images-to")
        return rows


def check(
    folder: Path,
    runner: GoldRunner | None,
    progress: Callable[[GoldRun], None] = lambda run: None,
    *,
    images: bool = True,
) -> tuple[list[Check], list[GoldRun]]:
    """All checks, in order; the running ones only when no other failed and a runner is given.

    Args:
        folder: of the release.
        runner: None leaves the running out.
        progress: called with each task that was run.
        images: False leaves out what is read from the images' registry.

    Raises:
        InputError: the folder is no release.
        InfrastructureError: the machine's own fault while tasks were run.
    """
    opened = _Opened(folder)
    _ = opened.manifest
    checks = [_done(name, what, opened, problems) for name, (what, problems) in _STATIC.items()]
    if images:
        with ImageReader() as reader:
            found = {name: partial(problems, reader=reader) for name, (_, problems) in _IMAGES.items()}
            checks += [_done(name, _IMAGES[name][0], opened, problems) for name, problems in found.items()]
    else:
        checks += [_not_run(name, what, "not asked for (--no-images)") for name, (what, _) in _IMAGES.items()]
    runs: list[GoldRun] = []
    why = "not asked for (--no-run)" if runner is None else "the files are not in order"
    if runner is None or any(one.outcome == "failed" for one in checks):
        return checks + [_not_run(name, what, why) for name, what in _RUNNING.items()], []
    hashes = dict(task_folders.statuses_of(folder).keys())
    for task in opened.tasks:
        runs.append(runner.run_gold(task).model_copy(update={"sha256": hashes.get(task.task_id, "")}))
        progress(runs[-1])
    gold = [f"{run.task_id}: {run.gold_detail}" for run in runs if not run.gold]
    null = [f"{run.task_id}: {run.null_detail}" for run in runs if not run.null]
    for name, problems in (("gold passes", gold), ("null patch fails", null)):
        checks.append(_outcome(name, _RUNNING[name], problems))
    return checks, runs


def read_runs(path: Path) -> list[GoldRun]:
    """The runs of what `release check --json` printed.

    Raises:
        InputError: the file cannot be read, or is none of these.
    """
    try:
        return [GoldRun.model_validate(run) for run in json.loads(path.read_bytes())["runs"]]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path} is no output of `perfquarry release check --json`: {error}") from error


def read_failed(path: Path, task_ids: Iterable[str] = ()) -> dict[str, str]:
    """By task_id why it did not pass, from what `release check --json` printed: these tasks are not to be released.

    Args:
        path: of the output.
        task_ids: those to be released; what the gate never ran of them has not passed.

    Raises:
        InputError: the file cannot be read, is none of these, or the gate ran no task.
    """
    runs = read_runs(path)
    if not runs:
        raise InputError(f"{path}: the gate ran no task: mend what it found, and run it without --no-run")
    failed = {
        run.task_id: run.null_detail if run.gold else run.gold_detail for run in runs if not (run.gold and run.null)
    }
    ran = {run.task_id for run in runs}
    failed |= {task_id: "it never ran the task" for task_id in task_ids if task_id not in ran}
    return {task_id: f"the gate: {why}" for task_id, why in failed.items()}


def verdict(checks: Iterable[Check]) -> Outcome:
    """Of all checks: failed when one failed, else not run when one was not run."""
    outcomes = {one.outcome for one in checks}
    return "failed" if "failed" in outcomes else "not run" if "not run" in outcomes else "ok"


def _done(name: str, what: str, opened: _Opened, problems: Callable[[_Opened], Iterator[str]]) -> Check:
    found: list[str] = []
    try:
        found.extend(problems(opened))
    except NotRun as error:
        if not found:
            return _not_run(name, what, str(error))
    except (InputError, MissingImage) as error:
        found.append(str(error))
    except (ValueError, LookupError, TypeError, AttributeError, OSError, GitFailed) as error:  # tampered with
        found.append(f"it cannot be read: {type(error).__name__}: {error}")
    return _outcome(name, what, found)


def _outcome(name: str, what: str, problems: list[str]) -> Check:
    more = [f"and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
    return Check(name=name, what=what, outcome="failed" if problems else "ok", problems=problems[:SHOWN] + more)


def _not_run(name: str, what: str, why: str) -> Check:
    return Check(name=name, what=what, outcome="not run", why=why)


def _checksums(opened: _Opened) -> Iterator[str]:
    sums = files.read_sums(opened.folder)
    there = [name for name in files.files_of(opened.folder) if name not in files.UNLISTED]
    for name in sorted({*sums, *there}):
        if name not in there:
            yield f"{name} is missing"
        elif name not in sums:
            yield f"{name} is not in {files.SUMS}"
        elif files.digest(opened.folder / name) != sums[name]:
            yield f"{name} is not what was written"


def _schema(opened: _Opened) -> Iterator[str]:
    for name, schema in files.CONFIGURATIONS.items():
        found = opened.tables[name].schema
        fields = list(found)
        # releases from before a column may be null have it, too
        different = [one.name for one in schema if one not in fields and one.with_nullable(False) not in fields]
        extra = [column for column in found.names if column not in schema.names]
        if different or extra or found.names != schema.names:
            yield f"{name}: columns differ: {', '.join(different + extra) or 'their order'}"
    header = _header(opened.folder)
    named = {one["config_name"]: one["data_files"][0]["path"] for one in header.get("configs", [])}
    for name in files.configurations_of(opened.folder):
        if named.get(name) != f"data/{name}/test-*.parquet":
            yield f"README.md: the configuration {name} does not name its file"


def _header(folder: Path) -> dict[str, Any]:
    """YAML header of the card."""
    try:
        text = files.plain(folder / "README.md").read_text(encoding="utf-8")
        header = yaml.safe_load(text.split("---\n")[1])
    except (OSError, IndexError, yaml.YAMLError) as error:
        raise InputError(f"README.md has no YAML header that can be read: {error}") from error
    return header if isinstance(header, dict) else {}


def _rows(opened: _Opened) -> Iterator[str]:
    ids = [task.task_id for task in opened.tasks]
    if len(set(ids)) != len(ids):
        yield "a task_id occurs twice"
    tasks = [as_task(task) for task in opened.tasks]
    yield from _foreign(opened, "gso", [gso_row(task) for task in tasks], apart=("arch",))
    with_tests = [sweperf_row(task) for task in tasks if unit_tests(task)]
    yield from _foreign(opened, "sweperf", with_tests, apart=("duration_changes",))
    for row in opened.tables["sweperf"].to_pylist():
        sessions = json.loads(row["duration_changes"])
        if not sessions or any(set(session) != set(row["efficiency_test"]) for session in sessions):
            yield f"{row['instance_id']}: duration_changes has not the tests of efficiency_test"
    counts = {name: table.num_rows for name, table in opened.tables.items()}
    if counts != opened.manifest.rows:
        yield f"release.json counts {opened.manifest.rows}, there are {counts}"


def _foreign(opened: _Opened, name: str, expected: list[dict[str, Any]], apart: tuple[str, ...]) -> Iterator[str]:
    """Whether a configuration in the format of others says what `default` does, columns `apart` aside."""
    rows = opened.tables[name].to_pylist()
    if [row["instance_id"] for row in rows] != [row["instance_id"] for row in expected]:
        yield f"{name}: other tasks than default"
        return
    for row, wanted in zip(rows, expected, strict=True):
        different = [key for key in wanted if key not in apart and row.get(key) != wanted[key]]
        yield from (f"{name}: {row['instance_id']}: {key} is not what default says" for key in different)
    file = opened.folder / "jsonl" / f"{name}.jsonl"
    if [json.loads(line) for line in file.read_bytes().split(b"\n") if line] != rows:
        yield f"jsonl/{name}.jsonl differs from the Parquet"


def _figures(opened: _Opened) -> Iterator[str]:
    timed = (
        opened.tables["timings"].select(["workload_id", "session", "side"]).group_by(["workload_id", "session", "side"])
    )
    sides: dict[tuple[str, int], set[str]] = defaultdict(set)
    for row in timed.aggregate([]).to_pylist():
        sides[row["workload_id"], row["session"]].add(row["side"])
    whole = {session for session, seen in sides.items() if seen == {"base", "head"}}
    confirmed = {workload for workload, number in whole if number % 2 and (workload, number + 1) in whole}
    for task in opened.tasks:
        if not (task.low <= task.speedup <= task.high and task.speedup > 1 and task.delta > 0):
            yield f"{task.task_id}: its speedup is not above 1 within its interval"
        for one in task.workloads:
            if one.workload_id not in confirmed:
                yield f"{task.task_id}: the timings of {one.node} are not all there"
        if not task.workloads:
            yield f"{task.task_id}: it has no workload"


def _leaks(opened: _Opened) -> Iterator[str]:
    for task in opened.tasks:
        yield from (f"{task.task_id}: {what}" for what in _told(task))
    for name, text in _texts(opened):
        yield from (f"{name}: seems to hold a secret ({one.kind})" for one in secrets_in(text))
    for name, table in opened.tables.items():
        yield from (f"{name}.{one}: plans are never released" for one in table.column_names if "plan" in one)


def _told(task: ReleasedTask) -> Iterator[str]:
    """What the texts of a task tell that they must not."""
    told = {name: getattr(task, f"problem_{name}") for name in ("gso", "oracle", "realistic")}
    for name, text in told.items():
        for what in fix_in(text, task.patch, task.message, task.oracle_targets + task.realistic_targets):
            yield f"the problem text '{name}' tells the fix: {what}"
    public = [*told.values(), task.title, task.message, changed_text(task.patch + task.test_patch), *task.warnings]
    yield from (f"e-mail address {address}" for address in addresses_in("\n".join(public)))


def _texts(opened: _Opened) -> Iterator[tuple[str, str]]:
    """All text of a release with its place; `sources/` is what upstream publishes."""
    for name in files.files_of(opened.folder):
        if name.endswith((".md", ".json", ".jsonl", ".svg", ".toml")):
            yield name, (opened.folder / name).read_text(encoding="utf-8")
    for name, table in opened.tables.items():
        for column in table.column_names:
            yield f"{name}.{column}", "\n".join(dict.fromkeys(_strings(table[column].to_pylist())))


def _strings(value: Any) -> Iterator[str]:
    """All text within a value; numbers hold no secret."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)
    elif isinstance(value, dict):
        yield from _strings(list(value.values()))


def _recipes(opened: _Opened) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as scratch:
        clones: dict[str, Path] = {}
        for task in opened.tasks:
            yield from (
                f"{task.task_id}: the recipe lacks {name}" for name in _RECIPE if not getattr(task.recipe, name)
            )
            clone = clones.setdefault(task.repo, Path(scratch, f"{task.repo}.git"))
            sources.unpack(sources.pack_of(opened.folder, task.repo), clone)
            try:
                git(clone, "ls-tree", "-r", task.recipe.tree)
                git(clone, "rev-list", "--objects", task.recipe.tree)
            except (MissingObjects, GitFailed):
                yield f"{task.task_id}: sources/{task.repo}.pack lacks files of its base"
                continue
            if sources.patched(clone, task.recipe.tree, task.patch) in (None, task.recipe.tree):
                yield f"{task.task_id}: its patch does not apply to its base, or changes nothing"


def _licences(opened: _Opened) -> Iterator[str]:
    card = files.plain(opened.folder / "README.md").read_text(encoding="utf-8")
    for task in opened.tasks:
        if not task.licence:
            yield f"{task.task_id}: no licence"
        elif task.licence_url and task.base_commit not in task.licence_url:
            yield f"{task.task_id}: its licence_url is not of the base commit"
        elif f"| {cell(task.codebase)} | {cell(task.licence)} |" not in card:
            yield f"{task.task_id}: its licence is not in the card's table"


def _withdrawn(opened: _Opened) -> Iterator[str]:
    rows = files.read(opened.folder, Withdrawn, "withdrawn")
    out = task_folders.in_force(rows)
    yield from (f"{task.task_id}: {out[task.task_id]}" for task in opened.tasks if task.task_id in out)
    for page in ("README.md", "CHANGELOG.md"):
        text = files.plain(opened.folder / page).read_text(encoding="utf-8")
        yield from (
            f"{page} does not tell why {row.task_id} was {row.action}" for row in rows if cell(row.reason) not in text
        )


def _folders_listed(opened: _Opened) -> Iterator[str]:
    yield from folder_checks.listed(opened.folder, opened.folders)


def _folders_told(opened: _Opened) -> Iterator[str]:
    yield from folder_checks.told(opened.folder, opened.folders, {task.task_id: task for task in opened.tasks})


def _images(opened: _Opened, reader: ImageReader) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as scratch:
        tasks = {task.task_id: task for task in opened.tasks}
        for row in opened.folders:
            trees = Trees.of(opened.folder, tasks[row.task_id], Path(scratch))
            yield from (f"{row.task_id}: {what}" for what in islice(missing_in(reader.contents(row.image), trees), 3))
    found = sum(reader.sizes.values())
    told = task_folders.TaskManifest.read(opened.folder).image_bytes
    if found != told:
        yield f"the images hold {found:,} bytes, manifest.json says {told:,}"


def _nothing_later(opened: _Opened, reader: ImageReader) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as scratch:
        tasks = {task.task_id: task for task in opened.tasks}
        for row in opened.folders:
            task = tasks[row.task_id]
            trees = Trees.of(opened.folder, task, Path(scratch))
            try:
                found = reader.contents(row.image)
            except MissingImage as error:
                raise NotRun(f"the images are not whole: {error}") from error
            yield from (f"{row.task_id}: {what}" for what in leaks_in(found, trees, task.version))


_STATIC: dict[str, tuple[str, Callable[[_Opened], Iterator[str]]]] = {
    "checksums": ("every file is what was written", _checksums),
    "schema": ("every configuration has its columns, and the card names its file", _schema),
    "rows": ("configurations hold the same tasks and say the same of them", _rows),
    "figures": ("every workload has its timings; speedups are within their intervals", _figures),
    "no leak": ("no secret, no e-mail address, no plan, no fix in a problem's text", _leaks),
    "recipes": ("every base is there with its recipe, and takes the expert's patch", _recipes),
    "licences": ("every task has its licence as at the base commit, and the card lists it", _licences),
    "withdrawn": ("what was taken back stays out, and card and changelog tell why", _withdrawn),
    "task folders": ("every folder is what manifest.json says, without links", _folders_listed),
    "task contents": ("every folder says what `default` says: image, patch, workloads, licence", _folders_told),
}
_IMAGES: dict[str, tuple[str, Callable[..., Iterator[str]]]] = {
    "images": ("every image is in its registry under its digest, and holds the base", _images),
    "nothing later": (
        "no image holds the expert's files, a later release, later objects of git, or caches",
        _nothing_later,
    ),
}
_RUNNING = {
    "gold passes": "with the expert's patch the tests pass, and the gain is significant again",
    "null patch fails": "without a patch no workload gains",
}
