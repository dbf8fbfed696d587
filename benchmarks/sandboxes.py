"""What a start costs in each sandbox, and what its walls do: the same command in all of them, in turns, in one run.

    python -m benchmarks.sandboxes [--rounds 40]

Writes the section `Sandboxes` of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np

from benchmarks.report import machine_facts, replace_section
from perfquarry.data.errors import SandboxUnavailable
from perfquarry.harness.contracts import Command
from perfquarry.harness.environments.interpreters import find_interpreters
from perfquarry.harness.environments.stand_in import stand_in
from perfquarry.harness.sandbox import BubblewrapSandbox, choose_sandbox

BACKENDS = ("process", "bubblewrap", "docker")
TRUE = "`/bin/true`"
COMMANDS = {TRUE: ("/bin/true",), "`python -I -c pass`": (sys.executable, "-I", "-c", "pass")}
NOTHING = "no sandbox: subprocess.run"
WALLS = {
    "bubblewrap without its filter of system calls": ("call_filter", lambda: None),
    "bubblewrap without covers over keys and homes": ("_covers", lambda *_: []),
}
BUILD = "a step of a dependency's build: uv to stand-in to bubblewrap"


def without(name: str, instead: Callable[..., object], command: Command) -> object:
    """Runs a command in a bubblewrap sandbox without one wall."""
    with patch(f"perfquarry.harness.sandbox.bubblewrap.{name}", instead):
        return BubblewrapSandbox().run(command)


@contextlib.contextmanager
def runners(folder: Path) -> Iterator[dict[str, Callable[[tuple[str, ...]], object]]]:
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
    if BubblewrapSandbox.name not in found:
        yield found
        return
    for name, (wall, instead) in WALLS.items():
        found[name] = lambda argv, wall=wall, instead=instead: without(
            wall, instead, Command(argv, cwd=folder, readable=readable)
        )
    real = find_interpreters()[-1].path
    with stand_in(BubblewrapSandbox(), real, folder / "place", folder / "cache", lambda: 60.0) as taken:
        found[BUILD] = lambda argv: subprocess.run(
            (str(taken.program), *argv[1:]), cwd="/", env={}, check=True, capture_output=True
        )
        yield found


def measure(rounds: int) -> dict[tuple[str, str], list[float]]:
    """Seconds of each start by (sandbox, command), each round in a new order."""
    taken: dict[tuple[str, str], list[float]] = {}
    order = random.Random(1)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        run = stack.enter_context(runners(Path(folder)))
        cells = [(name, command) for name in run for command in COMMANDS if name != BUILD or command != TRUE]
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
            if (name, command) not in taken:
                cells.append("–")
                continue
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
