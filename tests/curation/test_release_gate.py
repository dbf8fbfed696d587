"""What the gate reads of a release, and what a later release takes from its output."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from release_parts import failed

from perfquarry.curation.release import folder as files
from perfquarry.curation.release.check import read_failed
from perfquarry.data.errors import InputError


@pytest.mark.parametrize(
    ("column", "text", "problem"),
    [
        ("version", "AKIA" + "ABCDEFGH" * 2, "default.version: seems to hold a secret (AWS key)"),
        ("version", 'token = "a1b2c3d4e5f6g7h8"', "default.version: seems to hold a secret (assigned secret)"),
        ("test_patch", "+me@somewhere.org", "owner__sample-0123456789: e-mail address me@somewhere.org"),
    ],
)
def test_texts_are_searched_to_their_end_as_they_are(copy: Path, column: str, text: str, problem: str) -> None:
    file = files.parquet_of(copy, "default")
    table = pq.read_table(file, partitioning=None)
    value = [["+a line\n" * 400_000 + text]]
    pq.write_table(table.set_column(table.column_names.index(column), table.schema.field(column), value), file)
    assert problem in failed(copy)["no leak"]


def test_a_column_that_is_never_null_fits_one_that_may_be(copy: Path) -> None:
    file = files.parquet_of(copy, "default")
    table = pq.read_table(file, partitioning=None)
    place = table.column_names.index("overall_speedup")
    stricter = table.schema.set(place, table.schema.field(place).with_nullable(False))
    pq.write_table(table.cast(stricter), file)
    assert failed(copy) == {"checksums": ["data/default/test-00000-of-00001.parquet is not what was written"]}


def test_what_the_gate_never_ran_has_not_passed(tmp_path: Path) -> None:
    said = tmp_path / "checked.json"
    said.write_text(json.dumps({"ok": True, "runs": []}))
    with pytest.raises(InputError, match="without --no-run"):
        read_failed(said)
    run = {"task_id": "a", "gold": True, "gold_detail": "", "null": True, "null_detail": ""}
    said.write_text(json.dumps({"ok": True, "runs": [run]}))
    assert read_failed(said, ["a", "b"]) == {"b": "the gate: it never ran the task"}
