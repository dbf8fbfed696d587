"""A/A and known gains, really measured: false acceptance, power, coverage and the spread of one pair.

    python -m benchmarks.aa tornado=CLONE sympy=CLONE [--most 312] [--load quiet,busy]
    python -m benchmarks.aa demo --most 20 --known 4

A/A: tests of a commit, base against a second copy of itself: each accepted one is false. Known gains: a package
whose tests do exactly 3, 5, 10 or 20 % less work, as instructions of the interpreter and as traffic to memory, in
the environment of the first repository. Both quiet and beside a busy loop on every core, in batches as large as a
change. Timings are kept (--to): a run that was ended goes on where it was. Writes the section A/A of
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.aa_packages import busy_loops, cores, known_nodes, with_known_gains
from benchmarks.aa_report import Batch, section
from benchmarks.report import replace_section
from perfquarry.curation.sessions import measure
from perfquarry.data.files import remove
from perfquarry.data.git import commit_of, git_of
from perfquarry.data.home import Home
from perfquarry.data.records import Change, Timing, Workload, change_id_of, workload_id_of
from perfquarry.flows.options import Options
from perfquarry.flows.run import Run
from perfquarry.harness.contracts import BuiltSide, Limits, ProbeRequest
from perfquarry.harness.measuring.machine import cores_of_process, measurement_lock
from perfquarry.harness.trees.tree_copies import second_copy

BATCH = 12
"""Tests measured in the same processes, as of one change."""
LONGEST_SECONDS = 0.1
"""Tests that take longer are left out: the run is about many tests, not long ones."""
TESTS = {"tornado": "tornado/test/*_test.py", "sympy": "sympy/*/tests/test_*.py", "demo": "tests/test_*.py"}


def same_on_both_sides(run: Run, sha: str) -> Change:
    """A change whose base and head are the same commit."""
    now = datetime.now(UTC)
    printed = git_of(run.clone).output("show", "--no-patch", "--format=%ct", sha, doing=f"looking at {sha}")
    when = datetime.fromtimestamp(int(printed), UTC)
    return Change(
        **run.stamp("mine").fields(),
        change_id=change_id_of(run.name, sha, sha),
        kind="commit",
        base_sha=sha,
        head_sha=sha,
        authored_at=when,
        merged_at=when,
        title="A/A",
        message="A/A",
        created_at=now,
    )


def built_of(run: Run, sha: str) -> BuiltSide:
    """The built commit; ends the program where it cannot be built."""
    built = run.builder.build(same_on_both_sides(run, commit_of(run.clone, sha)))
    if built.base is None:
        raise SystemExit(f"{run.name} cannot be built: {built.rows[0].reason}\n{built.rows[0].log}")
    return built.base


def passing_tests(run: Run, built: BuiltSide, tests: str, most: int) -> list[str]:
    """At most that many node ids that passed twice and are short, drawn (seeded) over all test files."""
    files = sorted(str(path.relative_to(built.tree)) for path in built.tree.glob(tests))
    passed: Counter[str] = Counter()
    rng = random.Random(20261121)
    rng.shuffle(files)
    for start in range(0, len(files), BATCH):
        for hash_seed in (1, 2):
            request = ProbeRequest(mode="check", arguments=files[start : start + BATCH], test_timeout=5.0)
            report = run.runtime.prober.run(built, request, limits=Limits(wall_seconds=600.0), hash_seed=hash_seed)
            passed.update(i.node for i in report.items if i.outcome == "passed" and i.seconds <= LONGEST_SECONDS)
        if sum(times == 2 for times in passed.values()) >= 2 * most:
            break
    found = sorted(node for node, times in passed.items() if times == 2)
    return sorted(rng.sample(found, min(most, len(found))))


def in_batches(nodes: Sequence[str]) -> Iterator[list[str]]:
    """Tests as changes have them: neighbours, at most 12."""
    for start in range(0, len(nodes), BATCH):
        yield list(nodes[start : start + BATCH])


def measured(run: Run, key: str, nodes: Sequence[str], base: BuiltSide, head: BuiltSide, folder: Path) -> Batch:
    """Both sessions of the tests; kept in the folder, and read from there the next time."""
    file = folder / f"{key.replace('/', '-')}.json"
    ids = {workload_id_of(key, "unit-test", node): node for node in nodes}
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if kept.get("nodes") == ids:
        return Batch(key, [Timing.model_validate(row) for row in kept["timings"]], ids, kept["seconds"])
    settings, stamp = run.options.settings, run.stamp("measure")
    workloads = [
        Workload(**stamp.fields(), workload_id=one, change_id=key, source="unit-test", code=node)
        for one, node in ids.items()
    ]
    began = time.monotonic()
    with measurement_lock() as core:
        timings = measure(
            key,
            workloads,
            base,
            head,
            run.runtime.prober,
            run.runtime.machine,
            settings.measure,
            settings.select,
            stamp,
            core=core,
        )
    seconds = time.monotonic() - began
    rows = {"seconds": seconds, "nodes": ids, "timings": [row.model_dump(mode="json") for row in timings]}
    file.write_text(json.dumps(rows), encoding="utf-8")
    print(f"{key}: {len(ids)} tests in {seconds:.0f} s", flush=True)
    return Batch(key, timings, ids, seconds)


def against_itself(run: Run, built: BuiltSide, nodes: Sequence[str], load: str, folder: Path) -> list[Batch]:
    """Base against a second copy of it, as base and head."""
    with second_copy(built, run.runtime.prober.scratch, run.options.settings.measure.copy_bytes) as copy:
        head = dataclasses.replace(copy, side="head")
        return [
            measured(run, f"aa/{run.name}/{load}/{number}", batch, built, head, folder)
            for number, batch in enumerate(in_batches(nodes))
        ]


def known(run: Run, built: BuiltSide, load: str, times: int, folder: Path) -> list[Batch]:
    """The package with known gains, so many times, its tests in new batches each time."""
    place = run.runtime.prober.scratch.resolve() / f"known-{time.monotonic_ns()}"
    try:
        base, head = with_known_gains(built, place)
        batches = []
        for number in range(times):
            nodes = list(known_nodes())
            random.Random(number).shuffle(nodes)
            for part, batch in enumerate(in_batches(nodes)):
                batches.append(measured(run, f"known/{load}/{number}/{part}", batch, base, head, folder))
        return batches
    finally:
        remove(place)


def main() -> None:
    """Measures and writes the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", nargs="+", help="NAME or NAME=CLONE")
    parser.add_argument("--sha", default="HEAD")
    parser.add_argument("--tests", default="", help="pattern of test files")
    parser.add_argument("--most", type=int, default=312, help="tests of each repository")
    parser.add_argument("--known", type=int, default=10, help="times that the package with known gains is measured")
    parser.add_argument("--load", default="quiet,busy")
    parser.add_argument("--home", default=str(Home.default().root))
    parser.add_argument("--to", default="", help="folder of the timings; default: benchmarks/aa in the home")
    parser.add_argument("--print", action="store_true", help="print the section and leave the page alone")
    asked = parser.parse_args()
    folder = Path(asked.to or Path(asked.home) / "benchmarks" / "aa").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    batches: list[Batch] = []
    packages: tuple[Run, BuiltSide] | None = None
    for named in asked.repositories:
        name, _, clone = named.partition("=")
        options = Options(
            repo=name, source=clone or None, home=str(Path(asked.home).resolve()), jobs=cores_of_process()
        )
        run = Run.open(options.model_dump_json())
        built = built_of(run, asked.sha)
        packages = packages or (run, built)
        chosen = folder / f"tests-{name}-{built.sha[:10]}-{asked.most}.json"
        if not chosen.exists():  # which are short enough differs from run to run
            found = passing_tests(run, built, asked.tests or TESTS.get(name, "**/test_*.py"), asked.most)
            chosen.write_text(json.dumps(found), encoding="utf-8")
        nodes = json.loads(chosen.read_text(encoding="utf-8"))
        print(f"{name}: {len(nodes)} tests", flush=True)
        for load in asked.load.split(","):
            with _beside(load):
                batches += against_itself(run, built, nodes, load, folder)
    assert packages
    for load in asked.load.split(","):
        with _beside(load):
            batches += known(*packages, load, asked.known, folder)
    body = section(batches, packages[0].options.settings.select, packages[0].stamp("select"))
    if not asked.print:
        replace_section("A/A", body)
    print(body)


def _beside(load: str) -> contextlib.AbstractContextManager[None]:
    return busy_loops(cores()) if load == "busy" else contextlib.nullcontext()


if __name__ == "__main__":
    main()
