"""Labels as a file for `perfquarry judge --evaluate`.

    python -m benchmarks.judge_labels evaluate --to FILE.parquet [NAME=CLONE …]
    python -m benchmarks.judge_labels measured --to FILE.parquet NAME=CLONE=HOME …

`fit` and `evaluate` are the project's own labels, made by reading: rows of repositories without a clone are left out,
unless none is given; weights are those of sampling. `measured` are labels by measurement: changes that were timed in a
home on workloads that execute them. An accepted gain of `LEAST` or more is an improvement, `no_gain` and `slower` are
none; what noise left undecided, and smaller gains, are `unsure`.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.judge import read_labels
from perfquarry.curation.in_force import newest_tasks
from perfquarry.data.home import Home
from perfquarry.data.records import Reason, Task
from perfquarry.data.store import TableStore

LEAST = 1.05
"""Speedup from which an accepted change counts as an improvement."""


def by_reading(name: str, clones: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The project's labels of a file in miners/judge/labels."""
    for label in read_labels(name):
        if not clones or label.repo in clones:
            facts = {"repo": label.repo, "source": clones.get(label.repo), "sha": label.sha, "label": label.label}
            yield facts | {"weight": label.sampling_weight}


def by_measurement(repo: str, clone: str, home: Path) -> Iterator[dict[str, Any]]:
    """Labels of the changes of a repository that a home has decided on."""
    for task in newest_tasks(TableStore(Home(home).tables), repo):
        facts = {"repo": repo, "source": clone, "sha": task.head_sha, "label": measured_label(task), "weight": 1.0}
        yield facts | {"reason": task.reason or "", "speedup": task.speedup}


def measured_label(task: Task) -> str:
    """'yes', 'no' or 'unsure', by the decision on a change's timings."""
    if task.status == "kept":
        return "yes" if (task.speedup or 0.0) >= LEAST else "unsure"
    return "no" if task.reason in (Reason.NO_GAIN, Reason.SLOWER) else "unsure"


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "name", choices=["fit", "evaluate", "measured"], help="file in miners/judge/labels; or measured"
    )
    parser.add_argument("clones", nargs="*", metavar="NAME=CLONE[=HOME]", help="where a repository is cloned from")
    parser.add_argument("--to", type=Path, required=True, help="Parquet file to write")
    options = parser.parse_intermixed_args(arguments)
    parts = 3 if options.name == "measured" else 2
    given = [one.split("=", parts - 1) for one in options.clones]
    if any(len(one) != parts for one in given):
        parser.error("measured needs NAME=CLONE=HOME, the others NAME=CLONE")
    clones = {name: str(Path(path).resolve()) for name, path, *_ in given}
    if options.name == "measured":
        rows = [row for name, _, home in given for row in by_measurement(name, clones[name], Path(home))]
    else:
        rows = list(by_reading(options.name, clones))
    pq.write_table(pa.Table.from_pylist(rows), options.to)
    counts = Counter(str(row["label"]) for row in rows)
    print(f"{len(rows)} labels in {options.to}: {', '.join(f'{number} {label}' for label, number in counts.items())}")


if __name__ == "__main__":
    main()
