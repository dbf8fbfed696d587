"""A release as a static site: an index with filters, a page per task, a page of the dataset (docs/release-page.md).

index.html          all tasks; a plain table without JavaScript
dataset.html        figures and plots of the whole dataset
tasks/TASK_ID.html  one task
SHA256SUMS          of all pages; the same release makes the same bytes

Pages are made of the tables alone: no file of a release, which may be a stranger's, is copied into them.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from perfquarry.curation.release import folder as files
from perfquarry.curation.release.manifest import FILE
from perfquarry.curation.release.site_data import PageSource, read_source
from perfquarry.curation.release.site_dataset import dataset_page, index_page
from perfquarry.curation.release.site_task import task_page
from perfquarry.curation.review.rendering import SITE, pages, style
from perfquarry.data.errors import InputError
from perfquarry.data.records import Record

MARK = '<meta name="generator" content="perfquarry release page">'
"""Stands at the beginning of each page."""
_HEAD = 4096


class Site(Record):
    """What was written."""

    folder: str
    tasks: int
    pages: int
    bytes: int


def write_site(
    release: Path,
    to: Path | None = None,
    report: Path | None = None,
    progress: Callable[[int, int], None] = lambda done, pages: None,
) -> Site:
    """Writes the site of a release, whole or not at all; an older one in its place is replaced.

    Args:
        release: the folder of the release.
        to: folder of the site; None: the release's with '-page' at its end.
        report: of an evaluation of this release (`perfquarry evaluate --to`), shown on the tasks' pages.
        progress: called after each page with the number of pages done and of all.

    Raises:
        InputError: the release or the report cannot be read, they do not belong together, or `to` holds something else.
    """
    place = to or release.resolve().with_name(f"{release.resolve().name}-page")
    source = read_source(release, report)
    _refuse_others(release, place)
    done = size = 0
    with files.writing(place) as partial:
        (partial / "tasks").mkdir()
        for name, text in _pages(source):
            data = text.encode()
            (partial / name).write_bytes(data)
            done, size = done + 1, size + len(data)
            progress(done, len(source.tasks) + 2)
    return Site(folder=str(place), tasks=len(source.tasks), pages=done, bytes=size)


def _pages(source: PageSource) -> Iterator[tuple[str, str]]:
    yield "index.html", _render("index", "", source, index_page(source))
    yield "dataset.html", _render("dataset", "", source, dataset_page(source))
    for number, task in enumerate(source.tasks):
        yield f"tasks/{task.task_id}.html", _render("task", "../", source, task_page(source, number))


def _render(name: str, root: str, source: PageSource, context: dict[str, Any]) -> str:
    script = _script()
    policy = {
        "default-src": "'none'",
        "style-src": _allowed(style()),
        "script-src": _allowed(script),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return (
        pages()
        .get_template(f"site/{name}.html.jinja")
        .render(
            here=name,
            root=root,
            manifest=source.manifest,
            csp="; ".join(f"{kind} {what}" for kind, what in policy.items()),
            style=style(),
            script=Markup(script),  # noqa: S704 - a file of ours
            **context,
        )
    )


def _allowed(text: str) -> str:
    """What a policy says to allow one inline text, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _script() -> str:
    return (SITE / "site.js").read_text(encoding="utf-8")


def _refuse_others(release: Path, to: Path) -> None:
    """A site takes the place of a site, or of nothing, outside of the release: its checksums name all its files."""
    ours, theirs = to.resolve(), release.resolve()
    if ours == theirs or theirs in ours.parents or ours in theirs.parents:
        raise InputError(f"{to} is within the release or around it: name a folder beside it with --to")
    if not to.exists() or (to.is_dir() and not any(to.iterdir())):
        return
    index = to / "index.html"
    if (to / FILE).exists() or not (to / files.SUMS).is_file() or not index.is_file():
        raise InputError(f"{to} is there and is no page of a release: name another folder with --to")
    with index.open(encoding="utf-8", errors="replace") as opened:
        if MARK not in opened.read(_HEAD):
            raise InputError(f"{to} is there and is no page of a release: name another folder with --to")
