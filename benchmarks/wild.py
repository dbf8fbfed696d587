"""Yield in the wild: `perfquarry curate` on repositories that nobody has tuned it on, each for a few minutes.

    python -m benchmarks.wild CLONES FOLDER [--half opened|unopened|later|latest] [--only NAMES] [--minutes 3]

`LIST` was written down before any result was seen. A third of it, drawn by a hash of the names, is the `unopened`
half: it is run once, at the end, and reported as it is. What the list marks as `later` or `latest` was added after
that, also before any of it was run, and has a section of its own. CLONES holds a clone of each, named as in the list
(`owner+name/repo`, or `name`); those that are missing are reported as missing. FOLDER keeps a home and a log of each;
what is finished is not run again. Writes the section `Yield in the wild` of docs/benchmarks.md, and
`rejected-HALF.jsonl` in FOLDER: of each repository and stage up to ten rejected changes drawn at random, to be read.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.report import machine_facts, replace_section, table
from perfquarry.curation.in_force import accepted_tasks
from perfquarry.data.figures import with_interval
from perfquarry.data.funnel import StageCount, by_source, funnel
from perfquarry.data.home import Home
from perfquarry.data.records import Build, Change, Reason, Row, Task, Timing, Verdict, Workload
from perfquarry.data.store import TableStore

SEED = 20261125
DRAWN = 10
"""Rejected changes to be read, of each repository and stage."""
LATE = {Reason.NOT_RECORDED, Reason.NOT_REPLAYED}
"""What replay says of a change, after its tests."""

_LINES = [line.split() for line in (Path(__file__).parent / "wild.txt").read_text(encoding="utf-8").splitlines()]
KIND = {line[0]: line[1] for line in _LINES}
"""By repository `native` (C, C++ or Cython) or `python`."""
ADDED = {half: [line[0] for line in _LINES if line[2:] == [half]] for half in ("later", "latest")}
LIST = sorted(
    KIND.keys() - {name for names in ADDED.values() for name in names},
    key=lambda name: hashlib.sha256(name.encode()).hexdigest(),
)
UNOPENED = LIST[-(len(LIST) // 3) :]
MODELS: dict[str, type[Row]] = {
    "judge": Verdict,
    "build": Build,
    "generate": Workload,
    "measure": Timing,
    "select": Task,
}


@dataclass
class Run:
    """What one `curate` did."""

    repository: str
    seconds: float
    code: int
    found_at: list[float] = field(default_factory=list)
    """Seconds after the start at which each task was shown."""


def halves(half: str) -> list[str]:
    """The repositories of a half, in the order of the list."""
    return ADDED.get(half) or [name for name in LIST if (name in UNOPENED) == (half == "unopened")]


def clone_of(clones: Path, repository: str) -> Path | None:
    """Where the clone of a repository lies; None where there is none."""
    places = (clones / repository.replace("/", "+") / "repo", clones / short(repository))
    return next((place for place in places if place.is_dir()), None)


def short(repository: str) -> str:
    """The name that the run goes by."""
    return repository.rpartition("/")[2].lower()


def curate(repository: str, clone: Path, folder: Path, limits: list[str]) -> Run:
    """Runs the command as a user would; its words go into a log, each with its second."""
    name = short(repository)
    kept = folder / f"{name}.json"
    if kept.exists():
        return Run(**json.loads(kept.read_text(encoding="utf-8")))
    command = [sys.executable, "-m", "perfquarry.flows.cli", "curate", name, "--source", str(clone)]
    command += ["--home", str(folder / f"home-{name}"), "--no-server", *limits]
    empty = folder / "run"
    empty.mkdir(exist_ok=True)
    began = time.monotonic()
    run = Run(repository, 0.0, -1)
    environment = {**os.environ, "COLUMNS": "200"}
    with (
        (folder / f"{name}.log").open("w", encoding="utf-8") as words,
        subprocess.Popen(
            command, cwd=empty, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        ) as child,
    ):
        for line in child.stdout or ():
            second = time.monotonic() - began
            words.write(f"{second:7.1f} {line}")
            words.flush()
            if line.startswith("task "):
                run.found_at.append(second)
    run.seconds, run.code = time.monotonic() - began, child.returncode
    kept.write_text(json.dumps(asdict(run)), encoding="utf-8")
    return run


def row(run: Run, folder: Path, store: TableStore, half: str) -> list[str]:
    """One line of the table."""
    name = short(run.repository)
    counts = {stage.stage: stage for stage in funnel(store, name).stages}
    build, generate, select = counts["build"], counts["generate"], counts["select"]
    tried = build.kept + sum(build.rejected.values())
    searched = generate.kept + sum(generate.rejected.values())
    accepted = [with_interval(task.speedup, task.low, task.high) for task in accepted_tasks(store, name)]
    replayed = {one.source: one.accepted_changes for one in by_source(store, name)}.get("replay", 0)
    reasons = Counter[str]()
    for stage in (build, generate, counts["measure"], select):
        reasons.update(stage.rejected)
    return [
        half,
        run.repository + (" (native)" if KIND[run.repository] == "native" else ""),
        f"{counts['mine'].kept}",
        f"{counts['judge'].kept}",
        f"{build.kept} of {tried}",
        f"{generate.kept} of {searched}",
        f"{run.found_at[0]:.0f} s" if run.found_at else "none",
        (f"{len(accepted)}: {', '.join(accepted)}" if accepted else "0")
        + (f"; {replayed} by replay" if replayed else ""),
        ", ".join(f"{number} {reason}" for reason, number in reasons.most_common(4)) or ", ".join(_early(counts)),
        f"{run.seconds:.0f} s" + (f", exit code {run.code}" if run.code else ""),
    ]


def _early(counts: dict[str, StageCount]) -> Iterator[str]:
    for stage in ("mine", "judge"):
        for reason, number in list(counts[stage].rejected.items())[:2]:
            yield f"{stage}: {number} {reason}"


def rejected(repository: str, store: TableStore, rng: random.Random) -> Iterator[dict[str, str]]:
    """Up to `DRAWN` rejected changes of each stage, each with its reason and detail."""
    name = short(repository)
    changes = {change.change_id: change for change in store.records(Change, name)}
    for stage, model in MODELS.items():
        detail = next((column for column in ("detail", "log", "why") if column in model.model_fields), "reason")
        columns = list(dict.fromkeys(["change_id", "status", "reason", detail]))
        rows = store.scan(model, name, columns=columns).to_pylist()
        rows.sort(key=lambda one: str(one["reason"]) not in LATE)  # of a change's workloads, what its tests say
        kept = {one["change_id"] for one in rows if one["status"] == "kept"}
        alone = {one["change_id"]: one for one in rows if one["change_id"] not in kept and one["change_id"] in changes}
        for change_id in rng.sample(sorted(alone), min(DRAWN, len(alone))):
            change, one = changes[change_id], alone[change_id]
            yield {
                "repository": repository,
                "stage": stage,
                "head": change.head_sha,
                "subject": change.title,
                "reason": str(one["reason"]),
                "detail": str(one[detail])[-1000:],
            }


def main() -> None:
    """Runs what is missing, then writes the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clones", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half", choices=("opened", "unopened", "both", *ADDED), default="opened")
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--tasks", type=int, default=0, help="so many are enough for a repository")
    parser.add_argument("--lanes", type=int, default=2, help="repositories at the same time")
    parser.add_argument("--only", default="", help="only these repositories of the half, with commas")
    parser.add_argument("--workloads", default="", help="sources of workloads; the command's own where left out")
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    several = ("opened", "unopened") if options.half == "both" else (options.half,)
    chosen = {half: halves(half) for half in several}
    limits = ["--for", f"{round(60 * options.minutes)}s"]
    limits += ["--tasks", str(options.tasks)] if options.tasks else []
    limits += ["--workloads", options.workloads] if options.workloads else []
    if options.only:
        chosen = {half: [name for name in names if name in options.only.split(",")] for half, names in chosen.items()}
    lock = threading.Lock()

    def one(repository: str) -> Run | None:
        clone = clone_of(options.clones.resolve(), repository)
        run = curate(repository, clone, folder, limits) if clone else None
        with lock:
            print(f"{repository}: {f'{len(run.found_at)} task(s), {run.seconds:.0f} s' if run else 'no clone'}")
        return run

    rows: list[list[str]] = []
    for half, names in chosen.items():
        with ThreadPoolExecutor(options.lanes) as pool:
            runs = [run for run in pool.map(one, names) if run]
        rng = random.Random(SEED)
        with (folder / f"rejected-{half}.jsonl").open("w", encoding="utf-8") as lines:
            for run in runs:
                store = TableStore(Home(folder / f"home-{short(run.repository)}").tables)
                rows.append(row(run, folder, store, half))
                lines.writelines(json.dumps(found) + "\n" for found in rejected(run.repository, store, rng))
    heads = ["half", "repository", "changes", "judged worth trying", "built", "have workloads", "first task after"]
    heads += ["accepted tasks", "most frequent reasons", "whole command"]
    first = f"`curate {' '.join(limits)}` without a recipe, {options.lanes} repositories at once"
    section = "Yield in the wild" + (f", {options.half}" if options.half in ADDED else "")
    replace_section(section, f"{first}. {machine_facts()}.\n\n{table(heads, rows)}")


if __name__ == "__main__":
    main()
