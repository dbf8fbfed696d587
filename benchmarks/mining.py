"""Speed and memory of the crawl beside `git log -p` and PyDriller: `python -m benchmarks.mining [PATH_OR_URL]`.

Writes the section "Mining" of docs/benchmarks.md. Without an argument numpy is cloned (300 MB).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil
from pydriller import Git as PyDriller

from benchmarks.report import machine_facts, replace_section
from data.records import Stamp
from data.registry import load
from data.settings import MineSettings
from miners.clone import ensure_clone
from miners.history import crawl

SAMPLE = 500
STAMP = Stamp(repo="benchmark", stage_version="1", config_hash="benchmark")


@dataclass
class Usage:
    """What one piece of work took, this process and its descendants together."""

    wall: float = 0.0
    cpu: float = 0.0
    rss: int = 0
    """Peak of the sum of resident sizes, bytes; pages that processes share count several times."""


@contextmanager
def measured() -> Iterator[Usage]:
    """Fills in a `Usage`; memory is looked at 20 times a second."""
    usage = Usage()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            usage.rss = max(usage.rss, _resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    began, cpu = time.perf_counter(), sum(os.times()[:4])
    try:
        yield usage
    finally:
        usage.wall, usage.cpu = time.perf_counter() - began, sum(os.times()[:4]) - cpu
        ended.set()
        watcher.join()


def _resident() -> int:
    total = 0
    own = psutil.Process()
    for process in (own, *own.children(recursive=True)):
        try:
            total += process.memory_info().rss
        except psutil.Error:
            continue
    return total


def ours(clone: Path, only: list[str] | None, known: list[str]) -> dict[str, object]:
    """Builds every record and throws it away; run in a process of its own (`--worker`)."""
    shas, lacking = [], []
    with measured() as usage:
        for change in crawl(clone, STAMP, MineSettings(), only=only, known=set(known)):
            shas.append(change.head_sha)
            if change.reason == "missing_objects":
                lacking.append(change.head_sha)
    return {"wall": usage.wall, "cpu": usage.cpu, "rss": usage.rss, "lacking": lacking, "shas": shas}


def in_own_process(clone: Path, only: list[str] | None = None, known: list[str] | None = None) -> dict[str, object]:
    """`ours` in a fresh interpreter, so that its memory is its own."""
    command = [sys.executable, "-m", "benchmarks.mining", "--worker", str(clone)]
    question = json.dumps({"only": only, "known": known or []})
    done = subprocess.run(command, input=question, capture_output=True, text=True, check=True)
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def git_log(clone: Path, shas: list[str], *options: str) -> Usage:
    """`git log -p` of these commits to nowhere."""
    command = ["git", "-C", str(clone), "log", "-p", "--stdin", "--no-walk=unsorted", *options]
    with measured() as usage:
        subprocess.run(command, input="\n".join(shas), text=True, stdout=subprocess.DEVNULL, check=True)
    return usage


def pydriller(clone: Path, shas: list[str]) -> Usage:
    """Messages, names, line counts and diffs of these commits; no code metrics."""
    repository = PyDriller(str(clone))
    with measured() as usage:
        for sha in shas:
            commit = repository.get_commit(sha)
            for file in commit.modified_files:
                _ = (commit.msg, file.old_path, file.new_path, file.added_lines, file.deleted_lines, file.diff)
    return usage


def section(clone: Path, say: Callable[[str], None]) -> str:
    """Runs everything and returns the Markdown."""
    load = os.getloadavg()[0]
    say("our crawl, all commits")
    full = in_own_process(clone)
    shas: list[str] = full["shas"]  # type: ignore[assignment]
    say("our crawl again, nothing new")
    again = in_own_process(clone, known=shas)
    say("git log -p")
    lacking = set(full["lacking"])  # type: ignore[call-overload]
    readable = [sha for sha in shas if sha not in lacking]
    plain = git_log(clone, readable)
    merges = git_log(clone, readable, "--diff-merges=first-parent", "-M")
    sample = readable[:: max(1, len(readable) // SAMPLE)][:SAMPLE]
    say(f"{len(sample)} commits: ours and PyDriller")
    few = in_own_process(clone, only=sample)
    peer = pydriller(clone, sample)
    rows = [
        ("perfquarry crawl", len(shas), full["wall"], full["cpu"], full["rss"]),
        ("perfquarry crawl again, nothing new", len(shas), again["wall"], again["cpu"], again["rss"]),
        ("`git log -p` (no diffs of merges)", len(readable), plain.wall, plain.cpu, plain.rss),
        ("`git log -p --diff-merges=first-parent -M`", len(readable), merges.wall, merges.cpu, merges.rss),
        (f"perfquarry crawl, {len(sample)} spread commits", len(sample), few["wall"], few["cpu"], few["rss"]),
        (f"PyDriller, the same {len(sample)} commits", len(sample), peer.wall, peer.cpu, peer.rss),
    ]
    table = [
        "| | commits | wall s | wall ms/commit | CPU s | peak RSS of all processes, MB |",
        "|---|---:|---:|---:|---:|---:|",
        *(
            f"| {name} | {count} | {wall:.1f} | {1000 * wall / count:.3f} | {cpu:.1f} | {rss / 1e6:.0f} |"
            for name, count, wall, cpu, rss in rows
        ),
    ]
    return "\n".join(
        [
            f"`make bench-mining`, {datetime.now(UTC).date()}, one run. {machine_facts()}; "
            f"load average {load:.1f} before it: with other work on the machine, CPU seconds tell more than wall.",
            "",
            *table,
            "",
            f"The crawl builds every record and writes nothing. {len(lacking)} commits lacked objects in this clone: "
            "they are rows here and left out for the others, which end at them. PyDriller is too slow for all commits, "
            "so every n-th is read; of merges it lists only files that differ from all parents, and plain `git log -p` "
            "shows no diff of them. Resident sizes are summed over processes, shared pages counted again.",
        ]
    )


def main(arguments: list[str]) -> None:
    """Measures a path, a URL or numpy."""
    if arguments[:1] == ["--worker"]:
        question = json.load(sys.stdin)
        json.dump(ours(Path(arguments[1]), question["only"], question["known"]), sys.stdout)
        return
    with tempfile.TemporaryDirectory() as folder:
        source = arguments[0] if arguments else load("numpy").url
        clone = ensure_clone(source, Path(folder) / "clone")
        body = section(clone, lambda text: print(f"… {text}", file=sys.stderr))
    replace_section("Mining", body)
    print(body)


if __name__ == "__main__":
    main(sys.argv[1:])
