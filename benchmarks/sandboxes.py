"""What a start costs in each sandbox: the same command in all of them, in turns, in one run.

    python -m benchmarks.sandboxes [--rounds 40]

Writes the section `Sandboxes` of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.report import machine_facts, replace_section
from data.errors import SandboxUnavailable
from harness.contracts import Command
from harness.sandbox import choose_sandbox

BACKENDS = ("process", "bubblewrap", "docker")
COMMANDS = {"`/bin/true`": ("/bin/true",), "`python -I -c pass`": (sys.executable, "-I", "-c", "pass")}
NOTHING = "no sandbox: subprocess.run"


def runners(folder: Path) -> dict[str, Callable[[tuple[str, ...]], object]]:
    """What runs a command, by name; sandboxes that do not work here are left out, loudly."""
    found: dict[str, Callable[[tuple[str, ...]], object]] = {
        NOTHING: lambda argv: subprocess.run(argv, cwd=folder, env={}, check=True, capture_output=True)
    }
    readable = (Path(sys.prefix), Path(sys.base_prefix))
    for name in BACKENDS:
        try:
            sandbox = choose_sandbox(name)
        except SandboxUnavailable as error:
            print(f"without {name}: {error}", file=sys.stderr)
            continue
        found[name] = lambda argv, sandbox=sandbox: sandbox.run(Command(argv, cwd=folder, readable=readable))
    return found


def measure(rounds: int) -> dict[tuple[str, str], list[float]]:
    """Seconds of each start by (sandbox, command), each round in a new order."""
    taken: dict[tuple[str, str], list[float]] = {}
    order = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        run = runners(Path(folder))
        cells = [(name, command) for name in run for command in COMMANDS]
        for name, command in cells:  # warm caches and connections
            run[name](COMMANDS[command])
        for _ in range(rounds):
            for name, command in order.sample(cells, len(cells)):
                begin = time.perf_counter()
                run[name](COMMANDS[command])
                taken.setdefault((name, command), []).append(time.perf_counter() - begin)
    return taken


def report(taken: dict[tuple[str, str], list[float]], rounds: int) -> str:
    """The section's text."""
    lines = ["| | " + " | ".join(COMMANDS) + " |", "|---|" + "---:|" * len(COMMANDS)]
    for name in dict.fromkeys(name for name, _ in taken):
        cells = []
        for command in COMMANDS:
            low, middle, high = 1e3 * np.quantile(taken[name, command], [0.1, 0.5, 0.9])
            cells.append(f"{middle:.1f} ms [{low:.1f}, {high:.1f}]")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    load = os.getloadavg()[0]
    return (
        f"`make bench-sandboxes`: one command from the call to its result, in turns, {rounds} rounds; median and 80 % "
        f"range. {machine_facts()}; load average {load:.1f} at the end.\n\n" + "\n".join(lines)
    )


def main() -> None:
    """Measures and writes the section."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    text = report(measure(rounds), rounds)
    print(text)
    replace_section("Sandboxes", text)


if __name__ == "__main__":
    main()
