"""The table store: every table is a folder of immutable Parquet parts. Start reading in `table_store`."""

from perfquarry.data.store.conform import MIGRATIONS, Migration
from perfquarry.data.store.table_store import TableStore

__all__ = ["MIGRATIONS", "Migration", "TableStore"]
