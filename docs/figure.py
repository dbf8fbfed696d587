"""Draws the picture of README and the tour from a home in which the demo is curated: `python docs/figure.py HOME`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt

ASSETS = Path(__file__).resolve().parent / "assets"
INKS = {"light": "#1f2328", "dark": "#e6edf3"}
STEPS = "#56a0d3"
GAINS = "#e08a3c"


def facts(home: str, *arguments: str) -> Any:
    """What a command prints with `--json`."""
    command = [sys.executable, "-m", "perfquarry", *arguments, "--json", "--home", home]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def draw(home: str, name: str, ink: str) -> None:
    """One picture: how many changes each stage keeps, and the speedups of the tasks with their intervals."""
    stages = facts(home, "funnel", "demo")["stages"]
    tasks = sorted(facts(home, "tasks", "demo"), key=lambda task: task["speedup"])
    steps = [("commits and merges", stages[0]["in"]), *((stage["stage"], stage["kept"]) for stage in stages)]
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "perfquarry", "font.size": 10, "text.color": ink})
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(9.6, 3.4), gridspec_kw={"width_ratios": [1, 1.15], "wspace": 0.32}
    )
    names, counts = zip(*reversed(steps), strict=True)
    left.barh(names, counts, color=[GAINS, *[STEPS] * (len(names) - 1)], height=0.66)
    for place, count in enumerate(counts):
        left.text(count + 0.5, place, str(count), va="center")
    left.set_title("changes kept by each stage", loc="left", fontsize=10)
    left.set_xticks([])
    places = range(len(tasks))
    right.hlines(places, [one["low"] for one in tasks], [one["high"] for one in tasks], color=GAINS, linewidth=3)
    right.plot([one["speedup"] for one in tasks], places, "o", color=GAINS, markersize=6)
    right.axvline(1, color=ink, linewidth=0.8, linestyle=":")
    right.set_yticks(places, [one["task_id"].rpartition("-")[2] for one in tasks], family="monospace", fontsize=9)
    right.set_xticks([1, 1.5, 2, 2.5, 3], ["1×", "1.5×", "2×", "2.5×", "3×"])
    right.set_title("the tasks: speedup with its 95 % interval", loc="left", fontsize=10)
    for axes in (left, right):
        axes.set_facecolor("none")
        axes.tick_params(colors=ink, length=0)
        axes.spines[:].set_visible(False)
    figure.savefig(ASSETS / f"demo-{name}.svg", transparent=True, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    for scheme, colour in INKS.items():
        draw(sys.argv[1], scheme, colour)
