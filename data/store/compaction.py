"""Makes one part of many. Nothing is locked: the new part's list of what it replaces is the switch."""

from __future__ import annotations

from perfquarry.data.errors import SchemaTooNew
from perfquarry.data.records import Row
from perfquarry.data.schema import arrow_schema
from perfquarry.data.store import conform, reading
from perfquarry.data.store.parts import Part, PartHead, Partition, part_name
from perfquarry.data.store.select import Query


def compact(partition: Partition, model: type[Row]) -> int:
    """Replaces all parts by one, streaming; the number of parts replaced.

    A kill before the new part appears leaves everything as it was; after that, parts that
    are replaced but still there are ignored by readers and removed by the next compaction.

    Raises:
        SchemaTooNew: a newer program wrote a part, or it has columns this program would lose.
        StoreError: a part is damaged.
    """
    partition.clean()
    try:
        names = partition.names()
        live = partition.live()
        for part in live:
            conform.check(model, part)
            _refuse_unknown_columns(part, model)
        kept = [part.name for part in live]
        if len(live) > 1 or any(part.version < model.SCHEMA_VERSION for part in live):
            kept = [_rewrite(partition, model, live[-1].name, frozenset(names))]
    except FileNotFoundError:  # another compaction was faster
        return 0
    replaced = set(names).difference(kept)
    partition.remove(replaced)
    return len(replaced)


def _rewrite(partition: Partition, model: type[Row], newest: str, replaces: frozenset[str]) -> str:
    # Named just after the newest part it replaces: rows appended meanwhile stay the newer ones.
    head = PartHead(part_name(after=newest), model.TABLE, model.SCHEMA_VERSION, replaces)
    batches = reading.batches(partition, Query(model), list(model.model_fields))
    return partition.write(batches, arrow_schema(model), head)


def _refuse_unknown_columns(part: Part, model: type[Row]) -> None:
    unknown = set(part.schema.names).difference(model.model_fields)
    if unknown and part.version == model.SCHEMA_VERSION:
        raise SchemaTooNew(
            f"{part.path} has columns this perfquarry does not know ({', '.join(sorted(unknown))}): compacting "
            "it would lose them. Update perfquarry."
        )
