"""`perfquarry stability`: our filters on anybody's timings."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from perfquarry.curation import Mode
from perfquarry.curation.samples import analyse, read_cases
from perfquarry.data.figures import seconds, times
from perfquarry.flows.output import Listing, put


def report(file: Path, mode: Mode, *, as_json: bool) -> None:
    """Analyses the cases of a file.

    Raises:
        InputError: it cannot be read, or holds no timings.
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
    put({"results": results}, [table], as_json=as_json)
