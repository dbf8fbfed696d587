"""Labels as a file for `perfquarry judge --evaluate`.

    python -m benchmarks.judge_labels evaluate --to FILE.parquet [NAME=CLONE …]
    python -m benchmarks.judge_labels measured --to FILE.parquet NAME=CLONE …

`fit` and `evaluate` are the project's own labels, made by reading: rows of repositories without a clone are left out,
unless none is given; weights are those of sampling. `measured` are labels by measurement: changes that were timed on
workloads that execute them, as `benchmarks.decided` keeps them. An accepted gain of `LEAST` or more is an improvement,
`no_gain` and `slower` are none; what noise left undecided, and smaller gains, are `unsure`.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.decided import kept
from benchmarks.judge import read_labels
from perfquarry.data.records import Reason

LEAST = 1.05
"""Speedup from which an accepted change counts as an improvement."""


def by_reading(name: str, clones: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The project's labels of a file in miners/judge/labels."""
    for label in read_labels(name):
        if not clones or label.repo in clones:
            facts = {"repo": label.repo, "source": clones.get(label.repo), "sha": label.sha, "label": label.label}
            yield facts | {"weight": label.sampling_weight}


def by_measurement(clones: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Labels of the decided changes of the repositories."""
    for one in kept():
        if one["repo"] in clones:
            facts = {"repo": one["repo"], "source": clones[one["repo"]], "sha": one["head"], "weight": 1.0}
            yield facts | {"label": measured_label(one["reason"], next(iter(one["speedup"]), None))}


def measured_label(reason: str | None, speedup: float | None) -> str:
    """'yes', 'no' or 'unsure', by the decision on a change's timings."""
    if reason is None:
        return "yes" if (speedup or 0.0) >= LEAST else "unsure"
    return "no" if reason in (Reason.NO_GAIN, Reason.SLOWER) else "unsure"


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "name", choices=["fit", "evaluate", "measured"], help="file in miners/judge/labels; or measured"
    )
    parser.add_argument("clones", nargs="*", metavar="NAME=CLONE", help="where a repository is cloned from")
    parser.add_argument("--to", type=Path, required=True, help="Parquet file to write")
    options = parser.parse_intermixed_args(arguments)
    given = [one.split("=", 1) for one in options.clones]
    if any(len(one) != 2 for one in given):
        parser.error("a clone is given as NAME=CLONE")
    clones = {name: str(Path(path).resolve()) for name, path in given}
    rows = list(by_measurement(clones) if options.name == "measured" else by_reading(options.name, clones))
    pq.write_table(pa.Table.from_pylist(rows), options.to)
    counts = Counter(str(row["label"]) for row in rows)
    print(f"{len(rows)} labels in {options.to}: {', '.join(f'{number} {label}' for label, number in counts.items())}")


if __name__ == "__main__":
    main()
