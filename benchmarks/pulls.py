"""The crawl of pull requests at SWE-Perf's scale, from a local server that speaks GitHub's APIs.

`python -m benchmarks.pulls [PULLS]`: 102,241 pull requests (SWE-Perf §3.2) and the issues they resolve are crawled
in one go; 1 % of the answers are faults of several kinds, the crawler is killed (SIGKILL) once and started again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.report import machine_facts, replace_section

PULLS = 102_241
SHARE = 0.01
ROOT = Path(__file__).resolve().parent.parent
SERVER = ROOT / "tests" / "miners" / "github_server.py"
LIMIT_MB = 500


@dataclass
class Crawler:
    """Runs `perfquarry pulls` on the server's repository, as often as it takes."""

    home: Path
    url: str
    seconds: list[float] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)
    """Peak resident sets, bytes."""

    def run(self, kill_at: int | None = None) -> dict[str, Any]:
        """One run; killed as soon as the table has so many parts. Returns what it printed, or nothing."""
        settings = self.home.with_name("settings.toml")
        settings.write_text(f'[pulls]\nbase_url = "{self.url}"\ncodebase = "owner/name"\nbackoff = 0.05\n')
        command = [sys.executable, "-m", "perfquarry", "pulls", "demo", "--home", str(self.home), "--json"]
        environment = {**os.environ, "GITHUB_TOKEN": "token-one"}
        began = time.monotonic()
        with tempfile.TemporaryFile() as printed:
            process = subprocess.Popen(
                [*command, "--settings", str(settings)], cwd=ROOT, env=environment, stdout=printed
            )
            peak = 0
            while process.poll() is None:
                peak = max(peak, peak_of(process.pid))
                if kill_at is not None and len(parts(self.home, "pulls")) >= kill_at:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                time.sleep(0.05)
            if kill_at is not None and process.returncode != -signal.SIGKILL:
                raise SystemExit("the crawl ended before it could be killed")
            self.seconds.append(time.monotonic() - began)
            self.peaks.append(peak)
            if kill_at is not None:
                return {}
            if process.returncode:
                raise SystemExit(f"the crawl ended with {process.returncode}")
            printed.seek(0)
            facts: dict[str, Any] = json.load(printed)
            return facts


def peak_of(pid: int) -> int:
    """Peak resident set of a process so far, bytes; `ru_maxrss` begins with that of whoever started it."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def parts(home: Path, table: str) -> list[Path]:
    """The parts of a table that are whole."""
    return sorted((home / "tables" / table / "repo=demo").glob("part-*.parquet"))


def numbers(home: Path, table: str) -> pa.ChunkedArray:
    """The numbers in all rows of all parts, those written twice twice."""
    return pa.concat_tables([pq.read_table(part, columns=["number"]) for part in parts(home, table)])["number"]


@contextmanager
def github(count: int, share: float) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server in a process of its own, and its address."""
    command = [sys.executable, str(SERVER), str(count), str(share)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout and server.stdin
        yield server.stdout.readline().strip(), server
        server.stdin.close()


def counted(server: subprocess.Popen[str]) -> dict[str, Any]:
    """Calls and faults so far, as the server counts them."""
    assert server.stdout and server.stdin
    server.stdin.write("\n")
    server.stdin.flush()
    facts: dict[str, Any] = json.loads(server.stdout.readline())
    return facts


def trial(count: int, share: float, folder: Path) -> dict[str, Any]:
    """A crawl, killed in the middle and run again, and once more when nothing is new."""
    with github(count, share) as (url, server):
        crawler = Crawler(folder / "home", url)
        crawler.run(kill_at=max(1, count // 2000))
        kept = len(numbers(crawler.home, "pulls"))
        facts = crawler.run()
        after = counted(server)
        again = crawler.run()
    pulls, issues = numbers(crawler.home, "pulls"), numbers(crawler.home, "issues")
    return {
        "pulls": len(pulls),
        "distinct": pc.count_distinct(pulls).as_py(),
        "asked": count,
        "issues": len(issues),
        "distinct_issues": pc.count_distinct(issues).as_py(),
        "expected_issues": count // 3,
        "kept_at_kill": kept,
        "calls": after["calls"],
        "faults": after["faults"],
        "retried": facts["run"]["calls"].get("retried", 0),
        "seconds": [round(one, 1) for one in crawler.seconds],
        "peak_mb": [round(one / 1e6) for one in crawler.peaks],
        "unchanged": again["run"]["unchanged"],
        "calls_again": again["run"]["calls"],
        "with_results": facts["with_results"],
    }


def section(facts: dict[str, Any]) -> str:
    """The section of docs/benchmarks.md."""
    rows = facts["pulls"] + facts["issues"]
    faults = ", ".join(f"{count} {name}" for name, count in sorted(facts["faults"].items()))
    first, second, third = facts["seconds"]
    lost = count_lost(facts)
    twice = rows - facts["distinct"] - facts["distinct_issues"]
    fewer = f"{facts['pulls'] / facts['calls']:.1f} times fewer than one a pull request"
    again = facts["calls_again"]
    table = [
        ("rows", f"{facts['pulls']:,} pull requests, {facts['issues']:,} issues; {lost} lost, {twice} twice"),
        ("calls", f"{facts['calls']:,}: {fewer}, {rows / facts['calls']:.1f} times fewer than one a row"),
        ("killed at", f"{facts['kept_at_kill']:,} rows, after {first:.0f} s"),
        ("the rest", f"{second:.0f} s"),
        ("peak RSS of the crawler", f"{max(facts['peak_mb'])} MB (limit {LIMIT_MB})"),
        ("nothing new", f"{third:.1f} s, {again['rest']} calls, {again['not_modified']} of them 'not modified'"),
    ]
    return (
        "`perfquarry pulls` against a local server that speaks GitHub's GraphQL and REST APIs "
        "(`tests/miners/github_server.py`), both on one core that others use, too: SWE-Perf's 102,241 pull requests "
        f"and the issues they resolve. {SHARE:.0%} of the answers were faults ({faults}; `cut` is half an answer, "
        "`wrong` an error of GraphQL's); the crawler was killed (SIGKILL) once and started again, then run a third "
        f"time with nothing new. {machine_facts()}.\n\n| | |\n|---|---|\n"
        + "\n".join(f"| {name} | {value} |" for name, value in table)
    )


def count_lost(facts: dict[str, Any]) -> int:
    """Pull requests and issues that the server has and the tables do not."""
    lost: int = facts["asked"] + facts["expected_issues"] - facts["distinct"] - facts["distinct_issues"]
    return lost


def main(count: int = PULLS) -> None:
    """Runs the trial; writes the section when it is the whole one."""
    with tempfile.TemporaryDirectory(prefix="perfquarry-pulls-") as folder:
        facts = trial(count, SHARE, Path(folder))
    print(json.dumps(facts, indent=2))
    if count == PULLS:
        replace_section("Pull requests", section(facts))
    twice = facts["pulls"] + facts["issues"] - facts["distinct"] - facts["distinct_issues"]
    if count_lost(facts) or twice or max(facts["peak_mb"]) > LIMIT_MB:
        raise SystemExit("rows are lost or there twice, or the memory limit is passed")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
