"""The table store on S3 under kills, compactions, races and faults."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from pyarrow import fs

from perfquarry.data.errors import InfrastructureError, InputError, StoreError
from perfquarry.data.records import Row
from perfquarry.data.schema import arrow_schema
from perfquarry.data.store import TableStore
from perfquarry.data.store.parts import PartHead, Partition, part_name
from perfquarry.data.store.places import place_of
from tests.real_servers import BUCKET, free_port

ROOT = Path(__file__).resolve().parents[2]


class Thing(Row):
    TABLE: ClassVar[str] = "things"
    KEY: ClassVar[tuple[str, ...]] = ("thing_id",)

    thing_id: str
    payload: str = ""


def thing(number: int, payload: str = "") -> Thing:
    return Thing(repo="demo", stage_version="1", config_hash="aa", thing_id=f"t{number}", payload=payload)


def ids(store: TableStore) -> list[str]:
    return [row.thing_id for row in store.records(Thing, "demo")]


@pytest.fixture
def uri(s3: None) -> str:
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@pytest.fixture
def store(uri: str) -> TableStore:
    return TableStore(uri)


def keys(uri: str) -> list[str]:
    filesystem, folder = place_of(uri)
    found = filesystem.get_file_info(fs.FileSelector(folder, recursive=True))
    return [info.base_name for info in found if info.type == fs.FileType.File]


WRITER = """
import sys
sys.path[:0] = [{root!r}, {here!r}]
from perfquarry.data.store import TableStore
from test_store_s3 import Thing, thing

store, number = TableStore(sys.argv[1]), int(sys.argv[2])
print("up", flush=True)
while True:
    store.append([thing(number + one, "x" * 2000) for one in range(3)])
    print(number, flush=True)
    number += 3
    if number % 5 == 0:
        store.compact(Thing, "demo")
"""


def writer(uri: str, start: int) -> subprocess.Popen[str]:
    """A process that appends three rows at a time and compacts now and then, for ever."""
    code = WRITER.format(root=str(ROOT), here=str(Path(__file__).parent))
    process = subprocess.Popen([sys.executable, "-c", code, uri, str(start)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "up\n"
    return process


def killed(process: subprocess.Popen[str]) -> list[int]:
    """Kills it; the numbers it said it had appended."""
    os.kill(process.pid, signal.SIGKILL)
    return [int(line) for line in process.communicate()[0].split()]


@pytest.mark.slow
def test_killed_writers_leave_every_row_once_and_no_half_part(uri: str) -> None:
    """Pairs of processes that append and compact at once are killed at random moments."""
    chance, known = random.Random(20261121), set[str]()
    for run in range(2):
        pair = [writer(uri, (2 * run + one) * 10_000_000) for one in range(2)]
        time.sleep(chance.uniform(0.7, 1.5))
        known.update(f"t{number + one}" for process in pair for number in killed(process) for one in range(3))
        found = ids(TableStore(uri))
        assert len(found) == len(set(found)) and known <= set(found)
        assert len(found) % 3 == 0  # a part is there whole or not at all
        known.update(found)
    assert len(known) > 12
    store = TableStore(uri)
    store.compact(Thing, "demo")
    assert set(ids(store)) == known
    assert [name.startswith("part-") for name in keys(uri)] == [True]


def test_a_reader_goes_on_when_parts_are_removed_while_it_reads_them(uri: str, store: TableStore) -> None:
    """On S3 an opened part can be gone before its bytes are read."""
    store.append([thing(number, os.urandom(30_000).hex()) for number in range(800)])  # several row groups
    store.append([thing(800)])
    reader = store.records(Thing, "demo")
    found = [next(reader).thing_id for _ in range(3)]
    assert TableStore(uri).compact(Thing, "demo") == 2
    found += [row.thing_id for row in reader]
    assert found == [f"t{number}" for number in range(801)]


@pytest.mark.slow
def test_compactions_appends_and_reads_at_once(uri: str) -> None:
    def work(thread: int) -> None:
        store = TableStore(uri)
        for number in range(4):
            store.append([thing(thread * 100 + number)])
            if number % 2:
                store.compact(Thing, "demo")
            found = ids(store)
            assert len(found) == len(set(found)) and f"t{thread * 100 + number}" in found

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    assert sorted(ids(TableStore(uri))) == sorted(
        f"t{thread * 100 + number}" for thread in range(3) for number in range(4)
    )


def test_what_breaks_off_while_it_is_made_never_appears(uri: str) -> None:
    filesystem, folder = place_of(uri)
    partition = Partition(filesystem, f"{folder}/things/repo=demo")
    schema = arrow_schema(Thing)

    def broken() -> Iterator[pa.RecordBatch]:
        yield from schema.empty_table().to_batches()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        partition.write(broken(), schema, PartHead(part_name(), "things", 1))
    assert TableStore(uri).repositories(Thing) == []


def test_a_damaged_part_is_named(uri: str, store: TableStore) -> None:
    store.append([thing(1)])
    filesystem, folder = place_of(uri)
    path = f"{folder}/things/repo=demo/{keys(uri)[0]}"
    with filesystem.open_output_stream(path) as stream:
        stream.write(b"PAR1 is not enough")
    with pytest.raises(StoreError, match=path):
        ids(TableStore(uri))


def test_a_missing_bucket_and_a_silent_server_are_faults_to_be_tried_again(s3: None, monkeypatch: Any) -> None:
    with pytest.raises(StoreError, match="no-such-bucket") as missing:
        TableStore("s3://no-such-bucket/x").append([thing(1)])
    assert isinstance(missing.value, InfrastructureError)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    with pytest.raises(InfrastructureError, match="cannot list"):
        ids(TableStore(f"s3://{BUCKET}/x"))


@pytest.mark.parametrize("address", ["s3://key:secret@bucket/x", "s3://", "nothing://x"])
def test_bad_addresses_are_refused_without_showing_keys(address: str) -> None:
    with pytest.raises(InputError) as caught:
        TableStore(address)
    assert "secret" not in str(caught.value)
