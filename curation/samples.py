"""The stability filters on anybody's timings: `perfquarry stability FILE`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from perfquarry.curation import Mode
from perfquarry.curation.blocks import runs_of
from perfquarry.curation.intervals import ratio_of_medians, unpaired_interval
from perfquarry.curation.stability import delta, delta_grid, keep_inliers, p_value
from perfquarry.data.errors import InputError
from perfquarry.data.figures import seconds, times
from perfquarry.data.output import Listing, Report
from perfquarry.data.records import Record, Timing
from perfquarry.data.schema import from_table

_MOST_VALUES = 5000  # δ looks at all pairs of values: 25 million ratios, 200 MB


@dataclass(frozen=True)
class TimedCase:
    """Timings of one workload, seconds."""

    base: tuple[float, ...]
    head: tuple[float, ...]


class Result(Record):
    """What the filters say about one case; null is "too little data to say"."""

    delta: float
    base_kept: list[float]
    head_kept: list[float]
    speedup: float | None
    low: float | None
    high: float | None
    p_value: float


def report(file: Path, mode: Mode) -> Report:
    """What the filters say of the cases in a file.

    Raises:
        InputError: see `read_cases`.
    """
    results = analyse(read_cases(file), mode)
    names = (">case", ">base median", ">head median", ">kept", ">speedup", ">95 % interval", ">δ", ">p")
    table = Listing(names, f"{len(results)} case(s), mode {mode}")
    for number, result in enumerate(results):
        table.add(
            str(number),
            seconds(median(result.base_kept)),
            seconds(median(result.head_kept)),
            f"{len(result.base_kept)}, {len(result.head_kept)}",
            times(result.speedup),
            f"[{times(result.low)}, {times(result.high)}]",
            f"{result.delta:.3f}",
            "–" if result.p_value is None else f"{result.p_value:.3g}",
        )
    return Report({"results": results}, [table])


def read_cases(path: Path) -> list[TimedCase]:
    """Cases of a JSON file `{"cases": [{"base": [s…], "head": [s…]}…]}` or of a Parquet file.

    Parquet: the columns `base` and `head` (lists of numbers), one row per case; or a part of
    our own table `timings`: a case for each session of each workload, with its block values.

    Raises:
        InputError: the file cannot be read or a case is not valid; the text names the case by its index from 0.
    """
    try:
        with path.open("rb") as file:
            parquet = file.read(4) == b"PAR1"
        rows = _parquet_rows(path) if parquet else _json_rows(path.read_bytes(), path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    return [TimedCase(_seconds(row, "base", i), _seconds(row, "head", i)) for i, row in enumerate(rows)]


def analyse(cases: Iterable[TimedCase], mode: Mode = "full", *, alpha: float = 0.1, iqr_k: float = 1.0) -> list[Result]:
    """Filters outliers and computes δ, speedup, interval and p of each case, in order.

    `sweperf`: δ by the authors' grid, to three decimals; `full`: δ in closed form. The
    interval is unpaired in both, for nothing says that the values came in blocks.
    """
    return [_analyse(case, mode, alpha, iqr_k) for case in cases]


def _analyse(case: TimedCase, mode: Mode, alpha: float, iqr_k: float) -> Result:
    base, head = keep_inliers(case.base, iqr_k), keep_inliers(case.head, iqr_k)
    speedup = ratio_of_medians(base, head)
    interval = unpaired_interval(base, head) if speedup is not None else None
    if interval and speedup is not None:  # medians may leave it where values have two modes
        interval = min(interval[0], speedup), max(interval[1], speedup)
    return Result(
        delta=delta_grid(base, head, alpha) if mode == "sweperf" else float(delta(base, head, alpha)),
        base_kept=base.tolist(),
        head_kept=head.tolist(),
        speedup=speedup,
        low=interval[0] if interval else None,
        high=interval[1] if interval else None,
        p_value=p_value(base, head),
    )


def _json_rows(content: bytes, path: Path) -> list[Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is neither JSON nor Parquet: {error}") from error
    cases = document.get("cases") if isinstance(document, dict) else None
    if not isinstance(cases, list):
        raise InputError(f'{path}: expected {{"cases": [{{"base": [seconds…], "head": [seconds…]}}…]}}')
    return cases


def _parquet_rows(path: Path) -> list[Any]:
    try:
        names = pq.read_schema(path).names
        if set(Timing.model_fields) <= set(names):
            return _own_rows(pq.ParquetFile(path).read())
        missing = {"base", "head"} - set(names)
        if missing:
            raise InputError(f"{path}: no column {', '.join(sorted(missing))}; it has {', '.join(names)}")
        rows: list[Any] = pq.ParquetFile(path).read(columns=["base", "head"]).to_pylist()
    except pa.ArrowException as error:
        raise InputError(f"{path} is not a readable Parquet file: {error}") from error
    return rows


def _own_rows(table: pa.Table) -> list[Any]:
    sessions = [session for run in runs_of(from_table(Timing, table)) for session in run.sessions]
    return [{"base": session.base.tolist(), "head": session.head.tolist()} for session in sessions]


def _seconds(row: Any, side: str, index: int) -> tuple[float, ...]:
    values = row.get(side) if isinstance(row, dict) else None
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise InputError(f"case {index}: `{side}` is missing or is not a list of seconds")
    if not 0 < len(values) <= _MOST_VALUES:
        raise InputError(f"case {index}: `{side}` has {len(values)} values; expected 1 to {_MOST_VALUES}")
    return tuple(_second(value, side, index) for value in values)


def _second(value: Any, side: str, index: int) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"case {index}: `{side}` holds {value!r:.80}, which is not a number")
    try:
        seconds = float(value)
    except OverflowError:
        seconds = math.inf
    if not (math.isfinite(seconds) and seconds >= 0):
        raise InputError(f"case {index}: `{side}` holds {value!r:.80}; seconds are finite and not negative")
    return seconds
