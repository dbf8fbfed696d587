"""What many changes, batches and workers cost; the parts run one after the other, or one alone.

    python -m benchmarks.scale [orchestration] [tables --rows 1000000] [workers] [faults]

Writes the sections `Scale: …` of docs/benchmarks.md. `workers` wants two quiet cores; `faults` a Postgres server.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.report import machine_facts, replace_section
from benchmarks.scale_faults import faults
from benchmarks.scale_orchestration import orchestration
from benchmarks.scale_workers import workers


def load() -> str:
    """The load of this machine, for the reader of a figure."""
    return f"load average {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores"


def tables(rows: int, folder: Path) -> str:
    """In a process of its own, whose peak memory is that of nothing else."""
    command = [sys.executable, "-m", "benchmarks.scale_tables", str(rows), str(folder)]
    facts = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    lines = [
        f"{rows:,} synthetic changes of {facts['patch_bytes']} bytes of patch go from the stub of a crawl through the "
        "claims and the tables to the stub of a judge, one worker, tables on the local disk.",
        "",
        "| step | seconds | of CPU | rows a CPU second | peak memory so far, MB |",
        "|---|---|---|---|---|",
    ]
    for name, seconds, cpu, done, peak in facts["steps"]:
        rate = f"{done / cpu:,.0f}" if done else ""
        lines.append(f"| {name} | {seconds:.1f} | {cpu:.1f} | {rate} | {peak:.0f} |")
    lines += ["", f"Parts of changes and verdicts: {facts['parts']} before compaction, {facts['compacted']} after."]
    return "\n".join(lines)


def main() -> None:
    """Runs the parts and writes their sections."""
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", default=["orchestration", "tables", "workers", "faults"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--every", type=float, default=20.0, help="seconds between two kills")
    parser.add_argument("--changes", type=int, help="faults: only the most probable ones; all without")
    arguments = parser.parse_args()
    for part in arguments.parts:
        with tempfile.TemporaryDirectory(prefix="perfquarry-scale-") as folder:
            if part == "orchestration":
                body = orchestration(Path(folder))
            elif part == "tables":
                body = tables(arguments.rows, Path(folder))
            elif part == "workers":
                body = workers(Path(folder))
            else:
                body = faults(Path(folder), arguments.every, arguments.changes)
        replace_section(f"Scale: {part}", f"{body}\n\n{machine_facts()}; {load()}.")
        print(f"## Scale: {part}\n\n{body}\n", flush=True)


if __name__ == "__main__":
    main()
