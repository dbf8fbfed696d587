"""What a decision says of the purpose of a change and of its behaviour."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Adds the column to the log; earlier events say nothing of it."""
    op.add_column("events", sa.Column("intent", sa.String(20)))
