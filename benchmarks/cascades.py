"""What a cascade says of whole repositories, beside the heuristic judge and beside what was measured.

    perfquarry judge NAME --source CLONE --home HOME --judge cascade --llm cassette:benchmarks/recordings/judge …
    python -m benchmarks.cascades NAME=HOME …

A table in Markdown, one row per repository. A change is decided when it was timed on workloads that execute it
(`benchmarks/recordings/decided.jsonl`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

import perfquarry
from benchmarks.decided import kept
from benchmarks.report import table
from perfquarry.data.records import Reason

COLUMNS = (
    "repository", "changes", "heuristic goes on", "asked", "yes", "unsure", "no", "cascade goes on",
    "tasks known", "of these lost", "others known", "of these left out",
)  # fmt: skip


def figures(name: str, home: Path) -> dict[str, int | str]:
    """One row of the table."""
    opened = perfquarry.open_home(home)
    verdicts = opened.frame("verdicts", name).sort_values("created_at")
    heads = opened.frame("changes", name).drop_duplicates("change_id").set_index("change_id")["head_sha"]
    models = verdicts[verdicts.judge != "heuristic"]
    if models.empty:
        sys.exit(f"no model judged {name} in {home}: run `perfquarry judge {name} --judge cascade` first")
    mine = verdicts[verdicts.config_hash == models.config_hash.iloc[-1]].drop_duplicates("change_id", keep="last")
    mine = mine.assign(asked=mine.judge != "heuristic", head=mine.change_id.map(heads))
    # what the heuristic keeps of those asked is all of them; of the others the cascade's verdict is its own
    goes_on = mine.asked | (mine.status == "kept")
    answers = mine[mine.asked].is_performance.value_counts()
    known = {row["head"]: row["reason"] for row in kept() if row["repo"] == name}
    tasks = mine[mine["head"].map(lambda head: head in known and known[head] is None)]
    others = mine[mine["head"].map(lambda head: known.get(head) not in (None, Reason.UNDECIDED))]
    return dict(
        zip(
            COLUMNS,
            [
                name, len(mine), int(goes_on.sum()), int(mine.asked.sum()),
                *(int(answers.get(one, 0)) for one in ("yes", "unsure", "no")),
                int((mine.status == "kept").sum()),
                len(tasks), int((tasks.status != "kept").sum()), len(others), int((others.status != "kept").sum()),
            ],
            strict=True,
        )
    )  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    """Prints the table."""
    rows = pd.DataFrame([figures(name, Path(home)) for name, _, home in (one.partition("=") for one in arguments)])
    total = {**rows.sum(numeric_only=True), "repository": "**all**"}
    shown = pd.concat([rows, pd.DataFrame([total])])[list(COLUMNS)]
    print(table(COLUMNS, shown.astype(str).to_numpy().tolist()))


if __name__ == "__main__":
    main(sys.argv[1:])
