"""The table store: every table is a folder of immutable Parquet parts. Start reading in `table_store`."""

from data.store.conform import MIGRATIONS, Migration
from data.store.table_store import TableStore

__all__ = ["MIGRATIONS", "Migration", "TableStore"]
