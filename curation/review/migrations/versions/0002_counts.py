"""Speedups over all decided workloads, and where clock and instruction counts disagree."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Adds columns to the candidates, which are made anew from the tables at each start."""
    for name in ("overall_speedup", "overall_low", "overall_high"):
        op.add_column("candidates", sa.Column(name, sa.Float))
    op.add_column("candidates", sa.Column("doubts", sa.Integer, nullable=False, server_default="0"))
