"""What is said of tasks' intent in the tables: of several authors a model goes before the heuristic."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from perfquarry.data.home import Home
from perfquarry.data.records import Intent, IntentClass, Task
from perfquarry.data.records.intent import HEURISTIC
from perfquarry.data.store import TableStore


def intents_of(store: TableStore, repo: str, tasks: Iterable[Task]) -> dict[str, Intent]:
    """By task_id what is said of it: the newest of a model, else of the heuristic; tasks without a row are left out."""
    names = pa.array([task.task_id for task in tasks], pa.string())
    rows = store.records(Intent, repo, where=pc.field("task_id").isin(names))
    return {row.task_id: row for row in sorted(rows, key=lambda one: (one.author != HEURISTIC, one.created_at))}


def with_curators(found: Mapping[str, Intent], decided: Mapping[str, tuple[IntentClass, str]]) -> dict[str, Intent]:
    """The same with what curators decided in place of it: by task_id the class and who."""
    said = dict(found)
    for name, (intent, reviewer) in decided.items():
        if name in said:
            why = [f"{reviewer} decided so; {said[name].author}: {said[name].intent}", *said[name].evidence]
            said[name] = said[name].model_copy(update={"intent": intent, "author": reviewer, "evidence": why})
    return said


def curated(home: Home) -> dict[str, tuple[IntentClass, str]]:
    """By task_id the class that curators of this home decided, and who; nothing where nobody reviewed yet.

    Raises:
        StoreError: the database of reviews cannot be opened.
    """
    if not os.environ.get("PERFQUARRY_DATABASE") and not _has_classes(home.root / "review" / "reviews.db"):
        return {}
    from perfquarry.curation.review.database import database_of
    from perfquarry.curation.review.decisions import Decisions

    engine = database_of(home)
    try:
        return Decisions(engine).intents()
    finally:
        engine.dispose()


def _has_classes(file: Path) -> bool:
    """Whether a curator set a class. SQLite itself is asked: to import SQLAlchemy takes as long as the rest."""
    if not file.is_file():
        return False
    try:
        with contextlib.closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as database:
            return database.execute("SELECT 1 FROM events WHERE intent IS NOT NULL LIMIT 1").fetchone() is not None
    except sqlite3.Error:
        return True  # whoever opens it says what is wrong
