"""Our verdicts, and GSO's and SWE-Perf's public metric code, on the raw timings of an evaluation.

    python -m benchmarks.agreement REPORT... gso=CLONE sweperf=CLONE

REPORT is a folder that `perfquarry evaluate` wrote; the clones are those projects' repositories, whose code is run
here and not kept. Writes the section Agreement of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.report import replace_section
from perfquarry.curation.evaluation.metrics import passes
from perfquarry.curation.evaluation.peers import gso_opt, gso_verdict, sweperf_gain, times_of
from perfquarry.curation.evaluation.report import read_grades
from perfquarry.data.records import Grade

_EXACT = 1e-9


def main() -> None:
    """Compares, and writes the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("names", nargs="+", metavar="REPORT|gso=CLONE|sweperf=CLONE")
    names = parser.parse_args().names
    clones = dict(name.split("=", 1) for name in names if "=" in name)
    rows = [row for name in names if "=" not in name for row in read_grades(Path(name))]
    timed = [row for row in rows if times_of(row)]
    with tempfile.TemporaryDirectory() as folder:
        gso = _gso(Path(clones["gso"]), Path(folder) / "gso")
        sweperf = _sweperf(Path(clones["sweperf"]), Path(folder) / "sweperf")
        table = [*_compared_gso(timed, gso), *_compared_sweperf(timed, sweperf)]
    lines = [
        f"{len(timed)} timed gradings of {len({row.task_id for row in timed})} tasks by "
        f"{len({row.model for row in timed})} models; per workload one value a pair of processes.",
        "",
        "| what | agree | largest difference |",
        "|---|---:|---:|",
        *table,
    ]
    replace_section("Agreement", "\n".join(lines))
    print("\n".join(lines))


def _compared_gso(rows: list[Grade], theirs: Callable[[dict[str, Any]], dict[str, Any]]) -> list[str]:
    same, largest, ours = 0, 0.0, 0
    for row in rows:
        base, patch, commit = times_of(row) or ([], [], [])
        said = theirs({"base_times": base, "patch_times": patch, "commit_times": commit, "main_times": None})
        mine = gso_verdict(base, patch, commit)
        stats = said["opt_stats"]
        largest = max(
            largest,
            abs(stats["gm_speedup_patch_base"] - mine.geometric_over_base),
            abs(stats["hm_speedup_patch_commit"] - mine.harmonic_over_expert),
        )
        same += (said["opt_base"], said["opt_commit"]) == (mine.opt_base, mine.opt_commit)
        ours += passes(row) == gso_opt(row)
    assert same == len(rows) and largest < _EXACT, "our copy of GSO's rule is not GSO's"
    return [
        f"| GSO's `get_opt_status` and `peers.gso_verdict` | {same} of {len(rows)} | {largest:.1g} |",
        f"| our reward and GSO's rule (which has no intervals, no first calls, no clocks outside) "
        f"| {ours} of {len(rows)} | |",
    ]


def _compared_sweperf(rows: list[Grade], theirs: Callable[[Any, Any], float]) -> list[str]:
    largest, closed = 0.0, 0.0
    for row in rows:
        base, patch, _ = times_of(row) or ([], [], [])
        said = sum(theirs(one, other) for one, other in zip(base, patch, strict=True)) / len(base)
        largest = max(largest, abs(said - sweperf_gain(base, patch)))
        if row.correct:
            closed = max(closed, abs(said - row.delta))
    assert largest < _EXACT, "our copy of SWE-Perf's rule is not SWE-Perf's"
    return [
        f"| SWE-Perf's gain and `peers.sweperf_gain` | {len(rows)} of {len(rows)} | {largest:.1g} |",
        f"| SWE-Perf's gain and our δ in closed form (no grid) | | {closed:.2g} |",
    ]


def _gso(clone: Path, folder: Path) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """`get_opt_status` of a clone; of what its module imports, the dataset's class is left out."""
    _checkout(clone, folder, "src/gso")
    dataset = types.ModuleType("gso.data.dataset")
    dataset.GSOInstance = object  # type: ignore[attr-defined]
    sys.modules |= {"gso.data": types.ModuleType("gso.data"), "gso.data.dataset": dataset}
    sys.path.insert(0, str(folder / "src"))
    found: Callable[[dict[str, Any]], dict[str, Any]] = _named("gso.harness.grading.metrics", "get_opt_status")
    return found


def _sweperf(clone: Path, folder: Path) -> Callable[[Any, Any], float]:
    """The gain of one test: their filter, and their search."""
    _checkout(clone, folder, "evaluation/utils.py")
    text = (folder / "evaluation/utils.py").read_text(encoding="utf-8")
    wanted = text[text.index("def filter_outliers") :]  # what is above imports packages of its own
    module = types.ModuleType("sweperf_utils")
    exec(compile("import numpy as np\n" + wanted, "utils.py", "exec"), module.__dict__)
    names = module.__dict__
    return lambda base, head: names["find_max_significant_improvement"](
        names["filter_outliers"](head), names["filter_outliers"](base)
    )


def _named(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def _checkout(clone: Path, folder: Path, path: str) -> None:
    folder.mkdir()
    archive = subprocess.run(["git", "-C", str(clone), "archive", "HEAD", path], capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)


if __name__ == "__main__":
    main()
