"""Reading anybody's timings and analysing them."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from simulated_timings import session_rows

from perfquarry.curation.samples import TimedCase, analyse, read_cases
from perfquarry.data.errors import InputError
from perfquarry.data.records import Timing
from perfquarry.data.schema import to_table

VECTORS = Path(__file__).parent / "delta_vectors.json"


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "timings.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_vectors_through_the_file_interface():
    expected = json.loads(VECTORS.read_text())["cases"]
    results = analyse(read_cases(VECTORS), "sweperf")
    assert [r.delta for r in results] == [c["delta_grid"] for c in expected]
    assert [r.base_kept for r in results] == [c["base_kept"] for c in expected]
    assert [r.head_kept for r in results] == [c["head_kept"] for c in expected]


def test_the_full_mode_holds_the_speedup_in_its_interval():
    results = analyse(read_cases(VECTORS), "full")
    for result in results:
        assert result.speedup == pytest.approx(np.median(result.base_kept) / np.median(result.head_kept))
        assert result.low is not None
        assert result.high is not None
        assert result.low <= result.speedup <= result.high
        if result.delta > 0:  # δ is the lower end of a one-sided 90 % interval of the gain
            assert result.low <= 1 / (1 - result.delta) * (1 + 1e-9)


def test_parquet_gives_the_same_cases(tmp_path: Path):
    cases = read_cases(VECTORS)
    table = pa.table(
        {"base": [list(c.base) for c in cases], "head": [list(c.head) for c in cases], "other": [""] * 240}
    )
    pq.write_table(table, tmp_path / "timings.parquet")
    assert read_cases(tmp_path / "timings.parquet") == cases


def test_no_cases_give_no_results(tmp_path: Path):
    assert analyse(read_cases(written(tmp_path, '{"cases": []}'))) == []


def test_too_little_data_gives_null_not_zero():
    (result,) = analyse([TimedCase((2.0,), (1.0,))])
    assert (result.speedup, result.low, result.high) == (2.0, None, None)
    (result,) = analyse([TimedCase((2.0,), (0.0,))])
    assert result.speedup is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "neither JSON nor Parquet"),
        (b"\xff\xfe\x00", "neither JSON nor Parquet"),
        ("[" * 100_000, "neither JSON nor Parquet"),
        ("PAR1 but nothing else", "not a readable Parquet file"),
        ("[]", "expected"),
        ('{"case": []}', "expected"),
        ('{"cases": {"base": []}}', "expected"),
        ('{"cases": [{"base": [1]}]}', "case 0: `head` is missing"),
        ('{"cases": [{"base": [1], "head": [1]}, 3]}', "case 1: `base` is missing"),
        ('{"cases": [{"base": [1], "head": "12"}]}', "case 0: `head` is missing or is not a list"),
        ('{"cases": [{"base": [], "head": [1]}]}', "case 0: `base` has 0 values"),
        ('{"cases": [{"base": [1], "head": [1, -0.5]}]}', "case 0: `head` holds -0.5"),
        ('{"cases": [{"base": [NaN], "head": [1]}]}', "case 0: `base` holds nan"),
        ('{"cases": [{"base": [1], "head": [Infinity]}]}', "case 0: `head` holds inf"),
        ('{"cases": [{"base": [1], "head": [1e999]}]}', "case 0: `head` holds inf"),
        ('{"cases": [{"base": [1' + "0" * 400 + '], "head": [1]}]}', "case 0: `base` holds 1000"),
        ('{"cases": [{"base": ["1"], "head": [1]}]}', "case 0: `base` holds '1', which is not a number"),
        ('{"cases": [{"base": [true], "head": [1]}]}', "case 0: `base` holds True"),
        ('{"cases": [{"base": [null], "head": [1]}]}', "case 0: `base` holds None"),
    ],
)
def test_bad_input_is_named(tmp_path: Path, text: str | bytes, message: str):
    with pytest.raises(InputError, match=message.replace("[", r"\[")):
        read_cases(written(tmp_path, text))


def test_a_file_that_is_not_there_or_is_a_folder(tmp_path: Path):
    with pytest.raises(InputError, match="cannot read"):
        read_cases(tmp_path / "none.json")
    with pytest.raises(InputError, match="cannot read"):
        read_cases(tmp_path)


def test_parquet_without_the_columns(tmp_path: Path):
    pq.write_table(pa.table({"base": [[1.0]], "after": [[1.0]]}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="no column head; it has base, after"):
        read_cases(tmp_path / "x.parquet")
    pq.write_table(pa.table({"base": [[1.0], None], "head": [[1.0], [1.0]]}), tmp_path / "y.parquet")
    with pytest.raises(InputError, match="case 1: `base` is missing"):
        read_cases(tmp_path / "y.parquet")


def test_our_own_timings_are_read_too(tmp_path: Path):
    rows = session_rows("a", 1, speedup=2.0) + session_rows("b", 1) + session_rows("a", 2, speedup=2.0)
    pq.write_table(to_table(rows, Timing), tmp_path / "part.parquet")
    results = analyse(read_cases(tmp_path / "part.parquet"))
    assert [round(r.speedup or 0, 1) for r in results] == [2.0, 2.0, 1.0]
    assert all(len(r.base_kept) > 10 for r in results)
