"""A/A on a real repository: the same commit as base and head, so every accepted test is a false one.

    python -m benchmarks.aa CLONE [--sha SHA] [--tests 'tornado/test/*_test.py'] [--most 345] [--repo tornado]

Side by side on one machine in one run: our protocol (interleaved blocks, futility, confirming
session, A/A, q-values) and the seeds' (SWE-Perf: all base runs, then all head runs, one call a
process, IQR k=1, δ ≥ 0.05 at α = 0.1). Writes the section `A/A` of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from datetime import UTC, datetime

import git

from benchmarks.report import machine_facts, replace_section
from curation.evidence import decide
from curation.sessions import measure
from curation.stability import delta_grid, keep_inliers
from data.home import Home
from data.records import Change, Evidence, Workload, change_id_of, workload_id_of
from flows.options import Options, default_jobs
from flows.run import Run
from harness.contracts import BuiltSide, Limits, ProbeRequest
from harness.machine import measurement_lock

SEEDS_RUNS = 20
MANY = {"max_process_seconds": 900.0, "min_timed_seconds": 0.01, "workload_seconds": 0.08}
"""Changes of the schedule for hundreds of tests in one process: each is timed for a shorter time."""
LONGEST_SECONDS = 0.05
"""Tests that take longer are left out: the run is about many tests, not long ones."""


def same_on_both_sides(run: Run, sha: str) -> Change:
    """A change whose base and head are the same commit."""
    now = datetime.now(UTC)
    when = git.Repo(run.clone).commit(sha).committed_datetime
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


def passing_tests(run: Run, built: BuiltSide, tests: str, most: int) -> list[str]:
    """At most that many node ids that passed twice and are short, spread evenly over the test files."""
    files = sorted(str(path.relative_to(built.tree)) for path in built.tree.glob(tests))
    passed: Counter[str] = Counter()
    for hash_seed in (1, 2):
        request = ProbeRequest(mode="check", arguments=files, test_timeout=5.0)
        report = run.prober.run(built, request, limits=Limits(wall_seconds=600.0), hash_seed=hash_seed)
        passed.update(i.node for i in report.items if i.outcome == "passed" and i.seconds <= LONGEST_SECONDS)
    found = sorted(node for node, times in passed.items() if times == 2)
    return found[:: max(1, len(found) // most)][:most]


def by_our_protocol(run: Run, change: Change, nodes: list[str], base: BuiltSide, head: BuiltSide) -> list[Evidence]:
    """Evidence of both sessions over all tests."""
    settings, stamp = run.options.settings, run.stamp("measure")
    key = change.change_id
    workloads = [
        Workload(
            **stamp.fields(),
            workload_id=workload_id_of(key, "unit-test", node),
            change_id=key,
            source="unit-test",
            code=node,
        )
        for node in nodes
    ]
    patient = settings.measure.model_copy(update=MANY)
    timings = measure(key, workloads, base, head, run.prober, run.machine, patient, settings.select, stamp)
    return decide(timings, settings.select, run.stamp("select"))


def by_seeds_protocol(run: Run, nodes: list[str], base: BuiltSide, head: BuiltSide) -> dict[str, float]:
    """δ by node id: 20 base processes, then 20 head processes, one call each."""
    request = ProbeRequest(mode="time", arguments=nodes, warmups=0, calls=dict.fromkeys(nodes, 1), max_seconds=600.0)
    values: dict[str, dict[str, list[float]]] = {node: {"base": [], "head": []} for node in nodes}
    for built, side in ((base, "base"), (head, "head")):
        for number in range(SEEDS_RUNS):
            report = run.prober.run(built, request, limits=Limits(wall_seconds=900.0), hash_seed=number + 1)
            for item in report.items:
                if item.samples:
                    values[item.node][side].append(item.samples[0])
    complete = {node: v for node, v in values.items() if len(v["base"]) == len(v["head"]) == SEEDS_RUNS}
    return {node: delta_grid(keep_inliers(v["base"]), keep_inliers(v["head"])) for node, v in complete.items()}


def main() -> None:
    """Measures and writes the section."""
    parser = argparse.ArgumentParser()
    parser.add_argument("clone")
    parser.add_argument("--sha", default="HEAD")
    parser.add_argument("--repo", default="tornado")
    parser.add_argument("--tests", default="tornado/test/*_test.py")
    parser.add_argument("--most", type=int, default=345)
    parser.add_argument("--home", default=str(Home.default().root))
    asked = parser.parse_args()
    run = Run.open(Options(repo=asked.repo, source=asked.clone, home=asked.home, jobs=default_jobs()).model_dump_json())
    change = same_on_both_sides(run, git.Repo(asked.clone).commit(asked.sha).hexsha)
    built = run.builder.build(change)
    if built.base is None or built.head is None:
        raise SystemExit(f"cannot be built: {built.rows[0].reason}\n{built.rows[0].log}")
    nodes = passing_tests(run, built.base, asked.tests, asked.most)
    if not nodes:
        raise SystemExit(f"no test of {asked.tests} passes twice within {LONGEST_SECONDS} s")
    print(f"{len(nodes)} tests", flush=True)
    with measurement_lock():
        began = time.monotonic()
        seeds = by_seeds_protocol(run, nodes, built.base, built.head)
        seeds_seconds = time.monotonic() - began
        print(f"seeds: {sum(d >= 0.05 for d in seeds.values())} of {len(seeds)} in {seeds_seconds:.0f} s", flush=True)
        began = time.monotonic()
        evidence = by_our_protocol(run, change, nodes, built.base, built.head)
        our_seconds = time.monotonic() - began
    accepted = sum(row.status == "kept" for row in evidence)
    confirmed = sum(len(row.sessions) > 1 for row in evidence)
    largest = max((row.delta or 0.0 for row in evidence if row.status == "kept"), default=0.0)
    false_seeds = [d for d in seeds.values() if d >= 0.05]
    body = f"""\
{machine_facts()}. {asked.repo} at {change.base_sha[:10]} against itself: every accepted test is a false one.

| protocol | tests | falsely accepted | share | largest false δ | seconds |
|---|---:|---:|---:|---:|---:|
| seeds: all base runs, then all head runs; IQR k=1, δ ≥ 0.05 | {len(seeds)} | {len(false_seeds)} | \
{len(false_seeds) / len(seeds):.1%} | {max(false_seeds, default=0):.3f} | {seeds_seconds:.0f} |
| ours: interleaved blocks, futility, q-values, A/A, confirming session | {len(evidence)} | {accepted} | \
{accepted / len(evidence):.1%} | {largest:.3f} | {our_seconds:.0f} |

{confirmed} of our tests went to the confirming session; each was timed for 10 ms a process \
instead of 50. Reasons of the rejections: \
{", ".join(f"{reason} {count}" for reason, count in Counter(row.reason for row in evidence).most_common())}.
"""
    replace_section("A/A", body)
    print(body)


if __name__ == "__main__":
    main()
