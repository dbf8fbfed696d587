"""The ways round the triggers of the log: REPLACE on SQLite, a session that switches triggers off on Postgres."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Adds the triggers that are missing."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE events ENABLE ALWAYS TRIGGER events_are_final")
        return
    # REPLACE deletes the row in its way without firing the trigger of deletions
    op.execute(
        "CREATE TRIGGER events_no_replace BEFORE INSERT ON events "
        "WHEN EXISTS (SELECT 1 FROM events WHERE id = NEW.id OR uid = NEW.uid) "
        "BEGIN SELECT RAISE(ABORT, 'the log of reviews can only be added to'); END"
    )
    # before an insertion, -1 stands for an id that is not given: no row may have it
    op.execute(
        "CREATE TRIGGER events_count_from_one AFTER INSERT ON events WHEN NEW.id < 1 "
        "BEGIN SELECT RAISE(ABORT, 'the log of reviews can only be added to'); END"
    )
