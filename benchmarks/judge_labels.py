"""The project's labels as a file for `perfquarry judge --evaluate`.

    python -m benchmarks.judge_labels evaluate --to FILE.parquet [NAME=CLONE …]

Rows of repositories without a clone are left out, unless none is given; weights are those of sampling.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.judge import read_labels


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=["fit", "evaluate"], help="file in miners/judge/labels")
    parser.add_argument("clones", nargs="*", metavar="NAME=CLONE", help="where a repository is cloned from")
    parser.add_argument("--to", type=Path, required=True, help="Parquet file to write")
    options = parser.parse_intermixed_args(arguments)
    clones = {name: str(Path(path).resolve()) for name, _, path in (one.partition("=") for one in options.clones)}
    rows = [
        {
            "repo": label.repo,
            "source": clones.get(label.repo),
            "sha": label.sha,
            "label": label.label,
            "weight": label.sampling_weight,
        }
        for label in read_labels(options.name)
        if not clones or label.repo in clones
    ]
    pq.write_table(pa.Table.from_pylist(rows), options.to)
    print(f"{len(rows)} labels in {options.to}")


if __name__ == "__main__":
    main()
