"""The gate of a release: a table of checks, each with what it found wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

from pydantic import Field
from rich.console import RenderableType
from rich.text import Text

from perfquarry.curation.release import image_checks, table_checks, task_folders
from perfquarry.curation.release.opened import NotRun, Opened
from perfquarry.data.errors import GitFailed, InputError
from perfquarry.data.figures import with_interval
from perfquarry.data.output import Listing, Report
from perfquarry.data.records import FolderStatus, Record, ReleasedTask
from perfquarry.harness.images.registry import MissingImage

SHOWN = 20
"""Most problems that are listed for one check."""
_CODES = {"ok": 0, "failed": 1, "not run": 3}
"""Exit codes of the command."""


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


def check(
    folder: Path,
    runner: GoldRunner | None,
    progress: Callable[[GoldRun], None] = lambda run: None,
    *,
    images: bool = True,
) -> tuple[list[Check], list[GoldRun]]:
    """All checks, in order; the running ones only when no other failed and a runner is given.

    Without a runner no task is run; without `images` nothing is read from the images' registry. `progress` is called
    with each task that was run.

    Raises:
        InputError: the folder is no release.
        InfrastructureError: the machine's own fault while tasks were run.
    """
    opened = Opened(folder)
    _ = opened.manifest
    checks = [_done(name, what, opened, problems) for name, (what, problems) in _STATIC.items()]
    if images:
        with image_checks.ImageReader() as reader:
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

    What the gate never ran of `task_ids`, those to be released, has not passed.

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


def _done(name: str, what: str, opened: Opened, problems: Callable[[Opened], Iterator[str]]) -> Check:
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


_STATIC: dict[str, tuple[str, Callable[[Opened], Iterator[str]]]] = {
    "checksums": ("every file is what was written", table_checks.checksums),
    "schema": ("every configuration has its columns, and the card names its file", table_checks.schema),
    "rows": ("configurations hold the same tasks and say the same of them", table_checks.rows),
    "figures": ("every workload has its timings; speedups are within their intervals", table_checks.figures),
    "no leak": ("no secret, no e-mail address, no plan, no fix in a problem's text", table_checks.leaks),
    "recipes": ("every base is there with its recipe, and takes the expert's patch", table_checks.recipes),
    "licences": ("every task has its licence as at the base commit, and the card lists it", table_checks.licences),
    "withdrawn": ("what was taken back stays out, and card and changelog say why", table_checks.withdrawn),
    "task folders": ("every folder is what manifest.json says, without links", table_checks.listed),
    "task contents": ("every folder says what `default` says: image, patch, workloads, licence", table_checks.folders),
}
_IMAGES: dict[str, tuple[str, Callable[..., Iterator[str]]]] = {
    "images": ("every image is in its registry under its digest, and holds the base", image_checks.whole),
    "nothing later": (
        "no image holds the expert's files, a later release, later objects of git, or caches",
        image_checks.nothing_later,
    ),
}
_RUNNING = {
    "gold passes": "with the expert's patch the tests pass, and the gain is significant again",
    "null patch fails": "without a patch no workload gains",
}


_COLOUR: dict[Outcome, str] = {"ok": "green", "failed": "red", "not run": "yellow"}


def report(
    folder: Path, checks: Sequence[Check], runs: Sequence[GoldRun], statuses: Mapping[str, FolderStatus]
) -> Report:
    """All checks, how many tasks pass with their patch and fail without, and what was noted."""
    outcome = verdict(checks)
    facts = {"folder": str(folder), "outcome": outcome, "checks": checks, "runs": runs, "statuses": statuses}
    return Report(facts, _shown(folder, checks, runs, statuses), _CODES[outcome])


def _shown(
    folder: Path, checks: Sequence[Check], runs: Sequence[GoldRun], statuses: Mapping[str, FolderStatus]
) -> Iterator[RenderableType]:
    table = Listing(("check", "", "what"))
    for one in checks:
        colour = _COLOUR[one.outcome]
        wrong = "".join(f"\n{text}" for text in [*one.problems, one.why] if text)
        table.add(one.name, Text(one.outcome, colour), Text.assemble(one.what, (wrong, colour)))
    yield table
    if runs:
        gold, null = sum(run.gold for run in runs), sum(run.null for run in runs)
        yield f"gold passes {gold} of {len(runs)}, null patch fails {null} of {len(runs)}"
    if statuses:
        counts = Counter(statuses.values())
        yield f"noted in {folder}: {', '.join(f'{count} {name}' for name, count in counts.items())}"


def gold_line(run: GoldRun) -> Text:
    """How a task passed with its patch and without."""
    gold = (f"gold {with_interval(run.speedup, run.low, run.high)}", "green")
    if not run.gold:
        gold = (f"gold fails: {run.gold_detail}", "red")
    null = ("null fails", "") if run.null else (f"null: {run.null_detail}", "red")
    counts = f"{run.accepted} of {run.workloads} workloads, {run.seconds:.0f} s"
    return Text.assemble(f"{run.task_id}: ", gold, ", ", null, f" ({counts})")
