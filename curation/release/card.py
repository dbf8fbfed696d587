"""The texts of a release: dataset card, columns, changelog."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, get_args

import pyarrow as pa
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from perfquarry.curation.release.changelog import Changes, why_changed
from perfquarry.curation.release.manifest import Manifest, Source
from perfquarry.curation.release.task_folders import HASH
from perfquarry.data.records import FolderStatus, ReleasedFolder, ReleasedTask, Revalidation, Withdrawn

TITLE = "# Changelog\n"
_TEMPLATES = Path(__file__).parents[1] / "templates"


def card(
    manifest: Manifest,
    rows: Sequence[ReleasedTask],
    configurations: Sequence[str],
    plots: Sequence[str],
    revalidations: Sequence[Revalidation] = (),
    folders: Sequence[ReleasedFolder] = (),
    withdrawn: Sequence[Withdrawn] = (),
) -> str:
    """The dataset card; its YAML header names the configurations."""
    released = {row.task_id for row in rows}
    return _render(
        "release_card.md.jinja",
        manifest=manifest,
        rows=rows,
        configurations=configurations,
        plots=plots,
        licences=_licences(rows),
        folders=folders,
        statuses={status: sum(row.status == status for row in folders) for status in get_args(FolderStatus)},
        hash=HASH,
        withdrawn=withdrawn,
        statistics=[
            statistics_of(source, [row for row in rows if row.repo == source.repo]) for source in manifest.sources
        ],
        measured_again=measured_again(revalidations, released),
        counted_once=counted_once(revalidations, released),
        lines_median=f"{median(row.lines_changed for row in rows):g}" if rows else "–",
        size_category="n<1K" if len(rows) < 1000 else "1K<n<10K",
    )


def _licences(rows: Sequence[ReleasedTask]) -> list[dict[str, Any]]:
    """A line for each repository and licence; the text is that of its newest task."""
    groups: dict[tuple[str, str], list[ReleasedTask]] = defaultdict(list)
    for row in rows:
        groups[row.codebase, row.licence].append(row)
    return [
        {
            "codebase": codebase,
            "licence": licence,
            "tasks": len(group),
            "url": max(group, key=lambda row: row.created_at).licence_url,
        }
        for (codebase, licence), group in sorted(groups.items())
    ]


def measured_again(revalidations: Sequence[Revalidation], released: Collection[str]) -> list[dict[str, Any]]:
    """Of each revalidation, oldest first: when and where, how many tasks, and how many held; of released ones, too.

    Tasks that were taken out since then stay in the count: without them the others would look better than they are.
    """
    runs: dict[str, list[Revalidation]] = defaultdict(list)
    for row in revalidations:
        runs[row.run_id].append(row)
    found = [
        {
            "at": min(row.created_at for row in run),
            "machine": run[0].machine,
            "tasks": len(run),
            "held": sum(row.status == "kept" for row in run),
            "released": sum(row.task_id in released for row in run),
            "released_held": sum(row.status == "kept" and row.task_id in released for row in run),
            "load": median(row.foreign_load for row in run),
            "not_held": sorted(f"{row.task_id} ({row.reason})" for row in run if row.status != "kept"),
        }
        for run in runs.values()
    ]
    return sorted(found, key=lambda one: one["at"])


def counted_once(revalidations: Sequence[Revalidation], released: Collection[str]) -> dict[str, int]:
    """Each task that was measured again, by its first row: later ones may be there because the first failed."""
    first: dict[str, Revalidation] = {}
    for row in sorted(revalidations, key=lambda row: row.created_at):
        first.setdefault(row.task_id, row)
    return {
        "tasks": len(first),
        "held": sum(row.status == "kept" for row in first.values()),
        "partly": sum(any(one.held for one in row.workloads) for row in first.values()),
        "released": sum(task_id in released for task_id in first),
    }


def statistics_of(source: Source, rows: Sequence[ReleasedTask]) -> dict[str, Any]:
    """Figures of a repository's tasks, as texts."""
    speedups = [row.speedup for row in rows]
    found = ([one.count_label for one in row.workloads if one.count_label] for row in rows)
    labels = [one for one in found if one]
    return {
        "codebase": source.codebase,
        "licence": source.licence,
        "tasks": len(rows),
        "median": f"{median(speedups):.2f}×" if rows else "–",
        "range": f"{min(speedups):.2f}× to {max(speedups):.2f}×" if rows else "–",
        "delta": f"{median(row.delta for row in rows):.2f}" if rows else "–",
        "counted": _share(len(labels), len(rows)),
        "agree": _share(sum(all(label == "agree" for label in one) for one in labels), len(labels)),
        "workloads": sum(len(row.workloads) for row in rows),
        "tests": sum(len(row.tests) for row in rows),
    }


def _share(some: int, every: int) -> str:
    """'75 % (6 of 8)'."""
    return f"{100 * some / every:.0f} % ({some} of {every})" if every else "–"


def schema_page(configurations: Mapping[str, pa.Schema]) -> str:
    """Every column of every configuration, those within structures too ('workloads[].speedup')."""
    return _render(
        "release_schema.md.jinja",
        configurations={name: _columns(schema) for name, schema in configurations.items()},
    )


def _columns(fields: pa.Schema | pa.StructType, prefix: str = "") -> list[dict[str, Any]]:
    columns: list[dict[str, Any]] = []
    for field in fields:
        what = (field.metadata or {}).get(b"description", b"").decode()
        many = pa.types.is_list(field.type)
        kind = field.type.value_type if many else field.type
        struct = pa.types.is_struct(kind)
        name = f"{prefix}{field.name}{'[]' if many and struct else ''}"
        text = "struct" if struct else str(kind).replace("[us, tz=UTC]", ", UTC")
        columns.append(
            {"name": name, "type": f"list of {text}" if many else text, "nullable": field.nullable, "what": what}
        )
        if struct:
            columns += _columns(kind, f"{name}.")
    return columns


def changelog(manifest: Manifest, changes: Changes, previous: Path | None, withdrawn: Sequence[Withdrawn] = ()) -> str:
    """The entry of this version above those of the previous release."""
    now = [row for row in withdrawn if row.version == manifest.version]
    reasons = {
        action: {row.task_id: row.reason for row in now if row.action == action} for action in ("withdrawn", "replaced")
    }
    taken = reasons["withdrawn"]
    sections = {
        "Withdrawn": [f"{task_id}: {why}" for task_id, why in taken.items()],
        "Replaced": [f"{task_id}: {why}" for task_id, why in reasons["replaced"].items()],
        "Added": changes.added,
        "Removed": [f"{task_id}: {why}" for task_id, why in changes.removed.items() if task_id not in taken],
        "Changed": [f"{task_id}: {why_changed(columns)}" for task_id, columns in changes.changed.items()],
    }
    entry = _render("release_changelog.md.jinja", manifest=manifest, changes=changes, sections=sections)
    earlier = (previous / "CHANGELOG.md").read_text(encoding="utf-8").removeprefix(TITLE) if previous else ""
    return f"{TITLE}\n{entry}{earlier}"


def _render(name: str, **values: Any) -> str:
    """A template filled in; `cell` keeps text in one line and cell of a table."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=False,  # noqa: S701 - Markdown, whose cells are escaped by `cell`
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["cell"] = cell
    return environment.get_template(name).render(values)


def cell(text: object) -> str:
    """Text from a repository as one cell of a Markdown table: one line, neither HTML nor markup of ours."""
    plain = " ".join(str(text).split()).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{sign}" if sign in r"\`*_[]|!" else sign for sign in plain)
