"""Speed and memory of `perfquarry mine` and `judge` beside git and PyDriller.

`python -m benchmarks.mining [SOURCE [NAME]]` writes the section "Mining" of docs/benchmarks.md. SOURCE is a path or
URL, NAME what the section calls it; without them numpy is cloned (300 MB).
"""

from __future__ import annotations

import os
import re
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

from benchmarks.report import machine_facts, replace_section, table
from perfquarry.data.records import Change, Reason, Stamp, Verdict
from perfquarry.data.registry import load
from perfquarry.data.store import TableStore
from perfquarry.miners.clone import ensure_clone
from perfquarry.miners.history import crawl
from perfquarry.miners.settings import MineSettings

SAMPLE = 500
STAMP = Stamp(repo="benchmark", stage_version="1", config_hash="benchmark")


@dataclass
class Usage:
    """What one piece of work took, this process and its descendants together."""

    wall: float = 0.0
    cpu: float = 0.0
    memory: int = 0
    """Peak of the sum over the processes, bytes; of pages that several processes share each counts its part."""
    first: float = 0.0
    """Seconds until a command's first line of output."""


@contextmanager
def measured(*, own: bool = False) -> Iterator[Usage]:
    """Fills in a `Usage`; memory is looked at five times a second, of this process only for its `own` work."""
    usage = Usage()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.2):
            usage.memory = max(usage.memory, _memory(own))

    watcher = threading.Thread(target=watch)
    watcher.start()
    began, cpu = time.perf_counter(), sum(os.times()[:4])
    try:
        yield usage
    finally:
        usage.wall, usage.cpu = time.perf_counter() - began, sum(os.times()[:4]) - cpu
        ended.set()
        watcher.join()


def _memory(own: bool) -> int:
    this = psutil.Process()
    return sum(map(_proportional, [this] * own + this.children(recursive=True)))


def _proportional(process: psutil.Process) -> int:
    """Bytes in memory, shared pages by their part; 0 of a process that has ended."""
    try:
        found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{process.pid}/smaps_rollup").read_text(), re.M)
        return int(found.group(1)) * 1024 if found else 0
    except OSError:
        return 0


def command(*arguments: str) -> Usage:
    """A command of perfquarry's as a user runs it, without Prefect's server."""
    whole = [sys.executable, "-m", "perfquarry", *arguments, "--no-server"]
    with measured() as usage, subprocess.Popen(whole, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        began = time.perf_counter()
        process.stdout.readline()
        usage.first = time.perf_counter() - began
        process.stdout.read()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, whole)
    return usage


def ours(clone: Path, shas: list[str]) -> Usage:
    """Builds the records of these commits and throws them away."""
    with measured(own=True) as usage:
        for _ in crawl(clone, STAMP, MineSettings(), only=shas):
            pass
    return usage


def git_log(clone: Path, shas: list[str], *options: str) -> Usage:
    """`git log -p -M` of these commits to nowhere."""
    whole = ["git", "-C", str(clone), "log", "-p", "-M", "--stdin", "--no-walk=unsorted", *options]
    with measured() as usage:
        subprocess.run(whole, input="\n".join(shas), text=True, stdout=subprocess.DEVNULL, check=True)
    return usage


def pydriller(clone: Path, shas: list[str]) -> Usage:
    """Messages, names, line counts and diffs of these commits; no code metrics."""
    repository = PyDriller(str(clone))
    with measured(own=True) as usage:
        for sha in shas:
            commit = repository.get_commit(sha)
            for file in commit.modified_files:
                _ = (commit.msg, file.old_path, file.new_path, file.added_lines, file.deleted_lines, file.diff)
    return usage


def section(clone: Path, home: Path, say: Callable[[str], None]) -> str:
    """Runs everything and returns the Markdown."""
    load = os.getloadavg()[0]
    to = (str(clone), "--home", str(home))
    say("perfquarry mine")
    mine = command("mine", *to)
    say("perfquarry mine again, nothing new")
    again = command("mine", *to)
    say("perfquarry judge")
    judge = command("judge", *to)
    store = TableStore(home / "tables")
    (name,) = store.repositories(Change)
    heads = store.scan(Change, name, columns=["head_sha", "reason"]).to_pylist()
    readable = [row["head_sha"] for row in heads if row["reason"] != Reason.MISSING_OBJECTS]
    line = set(_git(clone, "rev-list", "--first-parent", "HEAD").split())
    judged = store.count(Verdict, name)
    say("git log")
    first_parents = [sha for sha in readable if sha in line]
    of_line = git_log(clone, first_parents, "--first-parent", "-m")
    of_all = git_log(clone, readable, "--diff-merges=first-parent")
    sample = readable[:: max(1, len(readable) // SAMPLE)][:SAMPLE]
    say(f"{len(sample)} commits: our crawl and PyDriller")
    few, peer = ours(clone, sample), pydriller(clone, sample)
    rows = [
        ("`perfquarry mine`", len(heads), mine),
        ("`perfquarry mine` again, nothing new", len(heads), again),
        ("`perfquarry judge`", judged, judge),
        ("`git log -p -M --diff-merges=first-parent`, what `mine` reads", len(readable), of_all),
        ("`git log -p -M --first-parent -m`, that line alone", len(first_parents), of_line),
        (f"the crawl alone, {len(sample)} spread commits", len(sample), few),
        (f"PyDriller, the same {len(sample)} commits", len(sample), peer),
    ]
    return "\n".join(
        [
            f"`make bench-mining` of {clone.name.removesuffix('.git')}, {datetime.now(UTC).date()}, one run. "
            f"{machine_facts()}; load average {load:.1f} before it: with other work on the machine, CPU seconds say "
            "more than wall.",
            "",
            table(("", "commits", "wall s", "CPU s", "CPU ms a commit", "peak memory, MB"), map(_row, rows)),
            "",
            f"`mine` takes {mine.cpu / of_all.cpu:.2f} × the CPU of `git log` for the same commits "
            f"({mine.wall / of_all.wall:.2f} × its wall time), and {mine.cpu / of_line.cpu:.2f} × that of the "
            f"first-parent line alone, which is {len(first_parents) / len(readable):.0%} of the commits. The first "
            f"output of `mine` came after {mine.first:.1f} s, of `judge` after {judge.first:.1f} s.",
            "",
            "The commands run whole, with all their processes, the clone of a local repository and the tables that "
            f"they write, without Prefect's server. {len(heads) - len(readable)} commits miss objects: they are rows "
            "here and left out for the others, which end at them. PyDriller is too slow for all commits, so every n-th "
            "is read; of merges it lists only files that differ from all parents. Memory is the sum over all "
            "processes; of pages that they share, each counts its part.",
        ]
    )


def _row(row: tuple[str, int, Usage]) -> tuple[str, ...]:
    name, count, usage = row
    facts = (f"{usage.wall:.1f}", f"{usage.cpu:.1f}", f"{1000 * usage.cpu / count:.3f}", f"{usage.memory / 1e6:.0f}")
    return name, str(count), *facts


def _git(clone: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(clone), *arguments], capture_output=True, text=True, check=True).stdout


def main(arguments: list[str]) -> None:
    """Measures a path, a URL or numpy."""
    with tempfile.TemporaryDirectory() as folder:
        source = arguments[0] if arguments else load("numpy").url
        name = source.rstrip("/").rpartition("/")[2].removesuffix(".git")
        clone = ensure_clone(source, Path(folder) / f"{arguments[1] if len(arguments) > 1 else name}.git")
        body = section(clone, Path(folder) / "home", lambda text: print(f"… {text}", file=sys.stderr))
    replace_section("Mining", body)
    print(body)


if __name__ == "__main__":
    main(sys.argv[1:])
