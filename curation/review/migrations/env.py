"""Runs migrations on the connection it is given (`curation.review.database.migrate`)."""

from alembic import context
from sqlalchemy import text

from perfquarry.curation.review.database import metadata

connection = context.config.attributes["connection"]
if connection.dialect.name == "postgresql":  # two programs may start at once
    connection.execute(text("SELECT pg_advisory_xact_lock(702007)"))
context.configure(connection=connection, target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
