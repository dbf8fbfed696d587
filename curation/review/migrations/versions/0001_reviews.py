"""Candidates, the audit log, what follows from it, runs. The log can only be added to."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _text(name: str, length: int, **options: object) -> sa.Column[str]:
    return sa.Column(name, sa.String(length), **{"nullable": False, **options})  # type: ignore[arg-type]


def upgrade() -> None:
    """Makes the tables and the triggers."""
    op.create_table(
        "candidates",
        _text("task_id", 200, primary_key=True),
        _text("repo", 200, index=True),
        _text("change_id", 40),
        _text("config_hash", 40),
        _text("fingerprint", 40),
        _text("status", 20),
        _text("reason", 60, nullable=True),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("pull_number", sa.Integer),
        sa.Column("speedup", sa.Float),
        sa.Column("low", sa.Float),
        sa.Column("high", sa.Float),
        sa.Column("workloads", sa.Integer, nullable=False),
        _text("merged_at", 32),
        sa.Column("blocking", sa.Integer, nullable=False),
        sa.Column("warnings", sa.Integer, nullable=False),
        sa.Column("search", sa.Text, nullable=False),
        sa.Column("by_speedup", sa.Float, nullable=False, index=True),
        sa.Column("by_date", sa.Float, nullable=False, index=True),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        _text("uid", 32, unique=True),
        _text("task_id", 200),
        _text("fingerprint", 40),
        _text("reviewer", 80),
        _text("action", 20),
        _text("reason", 40, nullable=True),
        sa.Column("note", sa.Text, nullable=False),
        _text("undoes", 32, nullable=True),
        _text("at", 32),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_task", "events", ["task_id", "at"])
    op.create_index("ix_events_reviewer", "events", ["reviewer", "at"])
    op.create_table(
        "heads",
        _text("task_id", 200, primary_key=True),
        sa.Column("version", sa.Integer, nullable=False),
        _text("outcome", 20, index=True),
    )
    op.create_table(
        "opinions",
        _text("task_id", 200, primary_key=True),
        _text("reviewer", 80, primary_key=True),
        _text("uid", 32),
        _text("action", 20),
        _text("reason", 40, nullable=True),
        _text("fingerprint", 40),
        _text("at", 32),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        _text("task_id", 200, index=True),
        _text("action", 20),
        _text("reviewer", 80),
        _text("place", 300),
        _text("state", 20),
        sa.Column("text", sa.Text, nullable=False),
        _text("began_at", 32),
        _text("ended_at", 32, nullable=True),
        sqlite_autoincrement=True,
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE FUNCTION events_are_final() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'the log of reviews can only be added to'; END $$"
        )
        op.execute(
            "CREATE TRIGGER events_are_final BEFORE UPDATE OR DELETE OR TRUNCATE ON events "
            "EXECUTE FUNCTION events_are_final()"
        )
    else:
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER events_no_{verb.lower()} BEFORE {verb} ON events "
                "BEGIN SELECT RAISE(ABORT, 'the log of reviews can only be added to'); END"
            )
