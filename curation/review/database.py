"""The database of reviews: SQLite in the home, or Postgres. The only state that changes in place.

`events` is the audit log, and the only truth: rows are added, never changed (triggers see to that).
`heads`, `opinions` follow from it, `candidates` from the tables; both can be made anew. `runs` are
the flows that curators started.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    Engine,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
    inspect,
    make_url,
    text,
)
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from perfquarry.data.errors import InputError, StoreError
from perfquarry.data.home import Home

MIGRATIONS = Path(__file__).with_name("migrations")
NEWEST = max(path.stem.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))
"""Revision of the newest migration: the number at the start of its file's name."""
metadata = MetaData()

candidates = Table(
    "candidates",
    metadata,
    Column("task_id", String(200), primary_key=True),
    Column("repo", String(200), nullable=False, index=True),
    Column("change_id", String(40), nullable=False),
    Column("config_hash", String(40), nullable=False),
    Column("fingerprint", String(40), nullable=False),
    Column("status", String(20), nullable=False),
    Column("reason", String(60)),
    Column("title", Text, nullable=False),
    Column("pull_number", Integer),
    *(Column(f"{of}{name}", Float) for of in ("", "overall_") for name in ("speedup", "low", "high")),
    Column("merged_at", String(32), nullable=False),
    *(Column(name, Integer, nullable=False) for name in ("workloads", "blocking", "warnings", "doubts")),
    Column("search", Text, nullable=False),
    Column("by_speedup", Float, nullable=False, index=True),
    Column("by_date", Float, nullable=False, index=True),
)

events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("uid", String(32), nullable=False, unique=True),
    Column("task_id", String(200), nullable=False),
    Column("fingerprint", String(40), nullable=False),
    Column("reviewer", String(80), nullable=False),
    Column("action", String(20), nullable=False),
    Column("reason", String(40)),
    Column("note", Text, nullable=False),
    Column("intent", String(20)),
    Column("undoes", String(32)),
    Column("at", String(32), nullable=False),
    Index("ix_events_task", "task_id", "at"),
    Index("ix_events_reviewer", "reviewer", "at"),
    sqlite_autoincrement=True,
)

heads = Table(
    "heads",
    metadata,
    Column("task_id", String(200), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("outcome", String(20), nullable=False, index=True),
)

opinions = Table(
    "opinions",
    metadata,
    Column("task_id", String(200), primary_key=True),
    Column("reviewer", String(80), primary_key=True),
    Column("uid", String(32), nullable=False),
    Column("action", String(20), nullable=False),
    Column("reason", String(40)),
    Column("fingerprint", String(40), nullable=False),
    Column("at", String(32), nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("task_id", String(200), nullable=False, index=True),
    Column("action", String(20), nullable=False),
    Column("reviewer", String(80), nullable=False),
    Column("place", String(300), nullable=False),
    Column("state", String(20), nullable=False),
    Column("text", Text, nullable=False),
    Column("began_at", String(32), nullable=False),
    Column("ended_at", String(32)),
    sqlite_autoincrement=True,
)


def open_database(url: str) -> Engine:
    """Connects to a database and brings its tables up to date.

    The URL is `sqlite:///FILE` or `postgresql://…`.

    Raises:
        InputError: the URL names no database of these two kinds.
        StoreError: the database cannot be reached or migrated.
    """
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise InputError("PERFQUARRY_DATABASE is no SQLAlchemy URL: postgresql://USER@HOST/NAME, for one") from error
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise InputError(f"reviews are kept in SQLite or Postgres, not in {parsed.get_backend_name()}")
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    engine = create_engine(parsed, pool_pre_ping=True)
    if parsed.get_backend_name() == "sqlite":
        if parsed.database:
            Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
        event.listen(engine, "connect", _tune)
    try:
        migrate(engine)
    except SQLAlchemyError as error:
        engine.dispose()
        shown = parsed.render_as_string(hide_password=True)
        raise StoreError(f"the database of reviews {shown} cannot be opened: {error}") from error
    return engine


def migrate(engine: Engine) -> None:
    """Applies the migrations that the database does not have yet."""
    if _revision(engine) == NEWEST:
        return
    from alembic import command  # a third of the time in which `perfquarry tasks` answers
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _revision(engine: Engine) -> str:
    """Of the migration that was applied last; empty where none was."""
    with engine.connect() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return ""
        return connection.scalar(text("select version_num from alembic_version")) or ""


def _tune(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA busy_timeout=10000")
    cursor.close()


def database_of(home: Home) -> Engine:
    """`PERFQUARRY_DATABASE`, or SQLite in the home."""
    file = home.root / "review" / "reviews.db"
    return open_database(os.environ.get("PERFQUARRY_DATABASE") or f"sqlite:///{file}")
