"""Makes a release of a selection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from perfquarry.curation.release import folder, plots, sources
from perfquarry.curation.release.card import card, changelog, schema_page
from perfquarry.curation.release.changelog import Changes, compare
from perfquarry.curation.release.manifest import FILE, Manifest, Source
from perfquarry.curation.release.selection import Selection
from perfquarry.data.errors import InputError
from perfquarry.data.records import Machine, ReleasedTiming, Revalidation


def write_release(
    to: Path,
    manifest: Manifest,
    selection: Selection,
    timings: Sequence[ReleasedTiming],
    clones: Mapping[str, Path],
    previous: Path | None = None,
    revalidations: Sequence[Revalidation] = (),
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

    Raises:
        InputError: nothing is to be released, a folder cannot be read or written, a clone lacks a base, or `to` holds
            this very version and no `previous` is given.
    """
    rows = selection.rows
    if not rows:
        why = "; ".join(f"{one.task_id}: {one.why}" for one in selection.left_out[:3])
        raise InputError(f"no task is to be released{f' ({why})' if why else ''}: curate repositories first")
    previous = previous or _replaced(to, manifest.version)
    before = folder.read_every_task(previous) if previous else []
    changes = compare(before, rows, {one.task_id: one.why for one in selection.left_out})
    parts = folder.tables(rows, selection.tasks, timings, revalidations)
    dates = [row.created_at for row in rows]
    machines: dict[str, Machine] = {timing.machine.machine_id: timing.machine for timing in timings}
    manifest = manifest.model_copy(
        update={
            "previous": Manifest.read(previous).version if previous else "",
            "machines": list(machines.values()),
            "rows": {name: table.num_rows for name, table in parts.items()},
            "accepted_by_curators": sum(row.review == "accepted" for row in rows),
            "left_out": selection.left_out,
            "oldest": min(dates),
            "newest": max(dates),
            "sources": [_with_tasks(source, selection) for source in manifest.sources],
        }
    )
    with folder.writing(to) as partial:
        folder.write_tables(partial, parts)
        manifest.write(partial)
        drawn = plots.write_plots(partial, rows, manifest.sources)
        texts = {
            "README.md": card(manifest, rows, list(parts), drawn, revalidations),
            "SCHEMA.md": schema_page({name: folder.CONFIGURATIONS[name] for name in parts}),
            "CHANGELOG.md": changelog(manifest, changes, previous),
        }
        for name, text in texts.items():
            (partial / name).write_text(text, encoding="utf-8")
        for repo, clone in clones.items():
            trees = [row.recipe.tree for row in rows if row.repo == repo]
            if trees:
                sources.pack(clone, trees, sources.pack_of(partial, repo))
    return manifest, changes


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
