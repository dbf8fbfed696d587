"""Makes a release of a selection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from pydantic import Field

from perfquarry.curation.release import folder, sources, task_folders
from perfquarry.curation.release.card import card, changelog, schema_page
from perfquarry.curation.release.changelog import Changes, compare
from perfquarry.curation.release.check import GoldRun
from perfquarry.curation.release.manifest import FILE, LeftOut, Manifest, Source
from perfquarry.curation.release.plots import release_plots
from perfquarry.curation.release.selection import Selection
from perfquarry.data.errors import InputError
from perfquarry.data.records import (
    FolderStatus,
    Machine,
    Record,
    ReleasedFolder,
    ReleasedTiming,
    Revalidation,
    Withdrawn,
)
from perfquarry.data.schema import to_table


class MadeFolders(Record):
    """Task folders that were written."""

    names: dict[str, tuple[str, str]] = Field(default_factory=dict)
    """By task_id 'org/task_id' and the image, by digest."""
    left_out: list[LeftOut] = Field(default_factory=list)
    """Tasks without a folder, and why."""
    image_bytes: int = 0
    """Of all images together, each blob counted once."""


class FolderMaker(Protocol):
    """Makes task folders, and publishes the images they name."""

    def make(self, to: Path, selection: Selection) -> MadeFolders:
        """Writes a folder for each task of the selection into `to`.

        Raises:
            InfrastructureError: the engine or the registry failed.
        """


class Asked(Record):
    """What somebody asks for when a version is made."""

    withdrawn: dict[str, str] = Field(default_factory=dict)
    """Reasons by task_id: these are taken back."""
    replaced: dict[str, str] = Field(default_factory=dict)
    """Reasons by task_id: these come again, otherwise made."""
    statuses: dict[tuple[str, str], FolderStatus] = Field(default_factory=dict)
    """What the gate saw, by task_id and hash of the folder."""


NOTHING_ASKED = Asked()


def write_release(
    to: Path,
    manifest: Manifest,
    selection: Selection,
    timings: Sequence[ReleasedTiming],
    clones: Mapping[str, Path],
    previous: Path | None = None,
    revalidations: Sequence[Revalidation] = (),
    folders: FolderMaker | None = None,
    asked: Asked = NOTHING_ASKED,
) -> tuple[Manifest, Changes]:
    """Writes the folder of a release, whole or not at all.

    Args:
        to: the folder; an older release there is replaced.
        manifest: facts of the release; rows, dates, machines, counts and the previous version are filled in here.
        selection: what is released.
        timings: of the selection's tasks.
        clones: by repository, where the bases' trees are.
        previous: the folder of the release before, for the changelog; None: the version that `to` holds.
        revalidations: tasks measured again here or elsewhere, those that are no longer released among them.
        folders: makes the task folders; None: the release has none.
        asked: what is taken back or replaced, and what was seen of task folders.

    Raises:
        InputError: nothing is to be released, a folder cannot be read or written, a base is missing in its clone, or
            `to` holds this very version and no `previous` is given.
    """
    previous = previous or _replaced(to, manifest.version)
    withdrawn = task_folders.withdrawals(asked.withdrawn, asked.replaced, previous, manifest.version)
    selection = selection.without(task_folders.in_force(withdrawn))
    rows = selection.rows
    if not rows:
        why = "; ".join(f"{one.task_id}: {one.why}" for one in selection.left_out[:3])
        raise InputError(f"no task is to be released{f' ({why})' if why else ''}: curate repositories first")
    before = folder.read_every_task(previous) if previous else []
    changes = compare(before, rows, {one.task_id: one.why for one in selection.left_out})
    released = {row.task_id for row in rows}
    timings = [timing for timing in timings if timing.task_id in released]
    dates = [row.created_at for row in rows]
    machines: dict[str, Machine] = {timing.machine.machine_id: timing.machine for timing in timings}
    with folder.writing(to) as partial:
        made = folders.make(partial / task_folders.FOLDER, selection) if folders else MadeFolders()
        statuses = {**task_folders.statuses_of(previous), **asked.statuses}
        described = [
            task_folders.row_of(row, partial / task_folders.FOLDER / row.task_id, *made.names[row.task_id], statuses)
            for row in rows
            if row.task_id in made.names
        ]
        parts = folder.tables(rows, selection.tasks, timings, revalidations, described, withdrawn)
        manifest = manifest.model_copy(
            update={
                "previous": Manifest.read(previous).version if previous else "",
                "machines": list(machines.values()),
                "rows": {name: table.num_rows for name, table in parts.items()},
                "accepted_by_curators": sum(row.review == "accepted" for row in rows),
                "left_out": selection.left_out,
                "without_folder": made.left_out,
                "image_bytes": made.image_bytes,
                "oldest": min(dates),
                "newest": max(dates),
                "sources": [_with_tasks(source, selection) for source in manifest.sources],
            }
        )
        folder.write_tables(partial, parts)
        texts = {
            "SCHEMA.md": schema_page(folder.CONFIGURATIONS),
            "CHANGELOG.md": changelog(manifest, changes, previous, withdrawn),
        }
        texts |= {f"plots/{one.name}.svg": one.svg for one in release_plots(rows, manifest.sources)}
        (partial / "plots").mkdir()
        for name, text in texts.items():
            (partial / name).write_text(text, encoding="utf-8")
        for repo, clone in clones.items():
            trees = [row.recipe.tree for row in rows if row.repo == repo]
            if trees:
                sources.pack(clone, trees, sources.pack_of(partial, repo))
        describe(partial, manifest)
    return manifest, changes


def describe(place: Path, manifest: Manifest) -> None:
    """Writes what says what is in a release: `release.json`, `manifest.json` and the card, from its tables."""
    rows, described = folder.read_every_task(place), folder.read(place, ReleasedFolder, "tasks")
    manifest.write(place)
    if manifest.image_bytes:
        task_folders.manifest_of(manifest.name, manifest.version, described, manifest.image_bytes).write(place)
    again = folder.read(place, Revalidation, "revalidations")
    withdrawn = folder.read(place, Withdrawn, "withdrawn")
    drawn = sorted(path.stem for path in (place / "plots").glob("*.svg"))
    text = card(manifest, rows, folder.configurations_of(place), drawn, again, described, withdrawn)
    (place / "README.md").write_text(text, encoding="utf-8")


def record(place: Path, runs: Sequence[GoldRun]) -> dict[str, FolderStatus]:
    """Notes in a release what the gate saw of its task folders; the status of each, by task_id.

    What was seen of a folder with another hash counts as not seen.

    Raises:
        InputError: the folder is no release, or has no task folders.
    """
    seen = {(run.task_id, run.sha256): run.status for run in runs}
    rows = folder.read(place, ReleasedFolder, "tasks")
    if not rows:
        raise InputError(f"{place} has no task folders whose status could be noted")
    rows = [row.model_copy(update={"status": seen.get((row.task_id, row.sha256), row.status)}) for row in rows]
    folder.write_table(place, "tasks", to_table(rows, ReleasedFolder))
    describe(place, Manifest.read(place))
    folder.write_sums(place)
    return {row.task_id: row.status for row in rows}


def _replaced(to: Path, version: str) -> Path | None:
    """The folder itself where it holds the version before."""
    if not (to / FILE).is_file():
        return None
    there = Manifest.read(to)
    if there.version == version and there.previous:
        raise InputError(f"{to} holds {version} already: name the folder of {there.previous} with --previous")
    return to if there.version != version else None


def _with_tasks(source: Source, selection: Selection) -> Source:
    tasks = sum(row.repo == source.repo for row in selection.rows)
    return source.model_copy(update={"tasks": tasks})
