"""Refits the heuristic judge and reports how well it ranks histories it was not fitted on.

    python -m benchmarks.judge tornado=PATH scipy=PATH … [--report-only]

Every repository that `miners/judge/labels/*.csv` name needs a clone. Writes `weights.json` and the
section "Heuristic judge" of docs/benchmarks.md; docs/judge.md says how the labels were made.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.judge_model import Floats, calibrate, fit, left_out_scores, matrix
from benchmarks.judge_report import History, Judged, section
from benchmarks.report import machine_facts, replace_section
from perfquarry.data.records import Change, Stamp
from perfquarry.miners.history import crawl
from perfquarry.miners.judge import heuristic, rules
from perfquarry.miners.judge.diff import parse
from perfquarry.miners.settings import JudgeSettings, MineSettings

LABELS = Path(heuristic.__file__).parent / "labels"
PENALTY = 0.3
"""L2 factor; of 0.1, 0.3, 1, 3 and 10 the best log-loss with each repository left out in turn."""


@dataclass(frozen=True)
class Label:
    """One line of a label file."""

    repo: str
    sha: str
    label: str
    stratum: str
    sampling_weight: float
    """Changes of the history that the label stands for; 0 where it was picked and not sampled."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Fits, writes the weights, judges the held-out histories and writes the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clones", nargs="+", metavar="NAME=PATH", help="clone of a labelled repository")
    parser.add_argument("--report-only", action="store_true", help="keep the weights as they are")
    options = parser.parse_args(arguments)
    clones = {name: Path(path) for name, _, path in (clone.partition("=") for clone in options.clones)}
    if not options.report_only:
        write_weights(read_labels("fit"), clones)
    heuristic.weights.cache_clear()
    labels = read_labels("evaluate")
    histories = [judge_history(repo, clones[repo], labels) for repo in sorted({label.repo for label in labels})]
    fitted = json.loads(heuristic.WEIGHTS.read_text(encoding="utf-8"))["fitted"]
    replace_section("Heuristic judge", section(histories, fitted, JudgeSettings(), machine_facts()))


def read_labels(name: str) -> list[Label]:
    """The labels of one file; `unsure` ones are part of neither fit nor figures."""
    with (LABELS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    labels = [Label(r["repo"], r["sha"], r["label"], r["stratum"], float(r["sampling_weight"])) for r in rows]
    return [label for label in labels if label.label != "unsure"]


def write_weights(labels: list[Label], clones: dict[str, Path]) -> None:
    """Fits on the labelled changes that no rule rejects, calibrates, and writes weights.json."""
    seen = [(label, values) for label, values in _observed(labels, clones)]
    names = sorted({name for _, values in seen for name in values})
    values, groups = matrix([v for _, v in seen], names), [label.repo for label, _ in seen]
    truth = np.array([float(label.label == "yes") for label, _ in seen])
    weights = np.array([label.sampling_weight for label, _ in seen])
    for repo in set(groups):  # each repository counts as much as the next
        here = np.array([group == repo for group in groups])
        weights[here] /= max(weights[here].sum(), 1e-9)
    theta = fit(values, truth, names, PENALTY)
    scores = left_out_scores(values, truth, names, groups, PENALTY)
    slope, intercept = calibrate(scores, truth, weights)
    fitted = {
        "labels": len(seen),
        "improvements": int(truth.sum()),
        "repositories": sorted(set(groups)),
        "penalty": PENALTY,
        "log_loss_left_out": round(float(np.mean(np.logaddexp(0, scores) - truth * scores)), 4),
        "auc_left_out": round(_auc(scores, truth), 4),
        "slope": round(slope, 4),
    }
    stored = {
        "intercept": round(slope * float(theta[0]) + intercept, 4),
        "weights": {n: round(slope * float(w), 4) for n, w in zip(names, theta[1:], strict=True) if abs(w) >= 0.005},
        "fitted": fitted,
    }
    heuristic.WEIGHTS.write_text(json.dumps(stored, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _observed(labels: list[Label], clones: dict[str, Path]) -> Iterator[tuple[Label, dict[str, float]]]:
    wanted: dict[str, dict[str, Label]] = defaultdict(dict)
    for label in labels:
        wanted[label.repo][label.sha] = label
    for repo, by_sha in sorted(wanted.items()):
        for change in _changes(repo, clones[repo], only=sorted(by_sha)):
            diff = parse(change.patch)
            if rules.rejection(change, diff) is None:
                yield by_sha[change.head_sha], {f.name: f.value for f in heuristic.observe(change, diff)}


def _changes(repo: str, clone: Path, only: Sequence[str] | None = None) -> Iterator[Change]:
    stamp = Stamp(repo=repo, stage_version="benchmark", config_hash=MineSettings().config_hash())
    return crawl(clone, stamp, MineSettings(), only=only)


def judge_history(repo: str, clone: Path, labels: list[Label]) -> History:
    """Judges all changes of a history and looks up the labelled ones in the ranking."""
    stamp = Stamp(repo=repo, stage_version="benchmark", config_hash=JudgeSettings().config_hash())
    judge = heuristic.Heuristic(JudgeSettings(), stamp)
    probabilities: dict[str, float] = {}
    messages: dict[str, str] = {}
    seconds, judged = 0.0, 0
    for change in _changes(repo, clone):
        start = time.process_time()
        verdict = judge.judge(change)
        seconds += time.process_time() - start
        judged += bool(change.patch)
        probabilities[change.head_sha] = verdict.probability
        messages[change.head_sha] = change.message
    ranked = sorted(probabilities, key=lambda sha: -probabilities[sha])
    rank = {sha: (place + 1) / len(ranked) for place, sha in enumerate(ranked)}
    rows = [
        Judged(repo, x.label == "yes", x.stratum, x.sampling_weight, probabilities[x.sha], rank[x.sha], messages[x.sha])
        for x in labels
        if x.repo == repo and x.sha in rank
    ]
    return History(repo, rows, probabilities, rank, 1e3 * seconds / max(judged, 1), messages)


def _auc(scores: Floats, truth: Floats) -> float:
    yes, no = scores[truth == 1], scores[truth == 0]
    return float(np.mean(yes[:, None] > no[None, :]) + 0.5 * np.mean(yes[:, None] == no[None, :]))


if __name__ == "__main__":
    main()
