"""Whether the class of a change (docs/intent.md) is right: the heuristic and a model against two readings of the diffs.

    python -m benchmarks.intent                                        # the tables, from what is kept
    python -m benchmarks.intent --clones DIR                           # the heuristic's classes anew
    python -m benchmarks.intent --clones DIR --llm SPEC --home HOME    # and a model's

DIR has the repositories as DIR/NAME. Kept are hashes, classes and reasons in our own words, and answers of models.
Writes the section Measured of docs/intent.md.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from benchmarks.report import replace_section, table
from perfquarry.curation.review.agreement import kappa
from perfquarry.data.home import Home
from perfquarry.data.records import Change, Effect, IntentClass, Stamp
from perfquarry.data.store import TableStore
from perfquarry.llm.client import open_client
from perfquarry.llm.recordings import Recording
from perfquarry.llm.settings import LlmSettings
from perfquarry.miners.blobs import sides
from perfquarry.miners.history import crawl
from perfquarry.miners.intent import effects_of, opinion_of
from perfquarry.miners.intent.model import intent_request, opinion_in
from perfquarry.miners.settings import MineSettings
from perfquarry.testgen.expectations import edited_between

FOLDER = Path(__file__).with_name("recordings") / "intent"
READINGS, ANSWERS = FOLDER / "readings.csv", FOLDER / "answers"
PAGE = Path(__file__).parents[1] / "docs" / "intent.md"
CLASSES: tuple[str, ...] = get_args(IntentClass)
_WHOLE = 1024 * 1024
_STAMP = Stamp(repo="benchmark", stage_version="1", config_hash="1")

Row = dict[str, str]


def main() -> None:
    """Fills in what is asked for, and writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--clones", type=Path)
    parser.add_argument("--llm")
    parser.add_argument("--home", type=Path, default=Path("var"))
    options = parser.parse_args()
    rows = read()
    if options.clones:
        changes = dict(_changes(rows, options.clones))
        for row in rows:
            _by_heuristic(row, options.clones / row["repo"], changes[row["head_sha"]])
        try:
            if options.llm:
                _by_model(rows, options.clones, changes, options.llm, options.home)
        finally:  # what was answered so far is kept
            _write(rows)
    text = report(rows)
    replace_section("Measured", text, PAGE)
    print(text)


def read(path: Path = READINGS) -> list[Row]:
    """The changes with their readings."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def half_of(row: Row) -> str:
    """'fit' or 'shown', by the hash of the head's id: the heuristic was made while only the first were looked at."""
    digit = hashlib.sha256(row["head_sha"].encode()).hexdigest()[0]
    return "fit" if int(digit, 16) % 2 == 0 else "shown"


def report(rows: Sequence[Row]) -> str:
    """The tables as Markdown."""
    pairs = [(row["reading_1"], row["reading_2"]) for row in rows]
    equal = sum(one == other for one, other in pairs)
    counts = Counter(row["reading_1"] for row in rows)
    parts = [
        f"{len(rows)} changes of {len({row['repo'] for row in rows})} repositories; reading 1: "
        + ", ".join(f"{counts[name]} {name}" for name in CLASSES)
        + f". The readings agree on {equal} ({100 * equal / len(rows):.0f} %), κ = {kappa(pairs) or 0:.2f}.",
        _drawn(rows),
    ]
    for author in ("heuristic", "model"):
        some = [row for row in rows if row[author]]
        if some:
            parts.append(_against(author, some))
    return "\n\n".join(parts)


def _drawn(rows: Sequence[Row]) -> str:
    by = defaultdict(list)
    for row in rows:
        by[row["drawn"]].append(row)
    lines = [
        [name, str(len(some)), *(str(sum(row["reading_1"] == one for row in some)) for one in CLASSES)]
        for name, some in sorted(by.items())
    ]
    return table(["drawn", "changes", *CLASSES], lines)


def _against(author: str, rows: Sequence[Row]) -> str:
    lines = []
    for half in ("fit", "shown") if author == "heuristic" else ("all",):
        own = [row for row in rows if half in ("all", half_of(row))]
        agreed = [row for row in own if row["reading_1"] == row["reading_2"]]
        sets = (("reading 1", own, "reading_1"), ("reading 2", own, "reading_2"), ("both agree", agreed, "reading_1"))
        for name, some, column in sets:
            lines.append([half, name, str(len(some)), *(_scores(some, author, column, one) for one in CLASSES)])
    heads = ["half", "against", "changes", *(f"{name}: precision, recall" for name in CLASSES)]
    return f"By the {author}:\n\n{table(heads, lines)}"


def _scores(rows: Sequence[Row], author: str, column: str, name: str) -> str:
    said = sum(row[author] == name for row in rows)
    true = sum(row[column] == name for row in rows)
    both = sum(row[author] == row[column] == name for row in rows)
    return f"{both}/{said}, {both}/{true}"


def _changes(rows: Sequence[Row], clones: Path) -> Iterator[tuple[str, Change]]:
    by_repo = defaultdict(list)
    for row in rows:
        by_repo[row["repo"]].append(row["head_sha"])
    settings = MineSettings(patch_limit=_WHOLE)
    for repo, shas in by_repo.items():
        for change in crawl(clones / repo, _STAMP, settings, only=shas):
            yield change.head_sha, change


def _by_heuristic(row: Row, clone: Path, change: Change) -> None:
    paths = [file.path for file in change.files if file.role == "test" and file.path.endswith(".py")]
    files = sides(clone, change, paths) if paths else []
    texts = [text for file in files for text in edited_between(file.path, file.base or b"", file.head or b"")]
    found = [*effects_of(clone, change), *(Effect(kind="tests", text=text, weight=1.0) for text in texts)]
    row["heuristic"] = opinion_of(change.title, change.message, found).intent
    row["effects"] = " ".join(f"{one.kind}:{one.weight:g}" for one in found)


def _by_model(rows: Sequence[Row], clones: Path, changes: dict[str, Change], llm: str, home: Path) -> None:
    """Asks, and keeps each answer; nothing of an answer that cannot be read or quotes nothing of the diff."""
    requests = [intent_request(clones / row["repo"], changes[row["head_sha"]]) for row in rows]
    ANSWERS.mkdir(parents=True, exist_ok=True)
    place = Home(home)
    with open_client(llm, place, TableStore(place.tables), _STAMP, LlmSettings()) as client:
        for at, answer in client.ask_all(requests):
            row, value = rows[at], answer.value
            if value is None:
                continue
            opinion = opinion_in(value, changes[row["head_sha"]].patch)
            row["model"] = opinion.intent if opinion else ""
            recording = Recording(
                address=requests[at].address,
                origin="a language model through exchange" if llm.startswith("exchange") else "recorded",
                purpose=requests[at].purpose,
                answer=value.model_dump(),
            )
            file = ANSWERS / f"{row['repo']}-{row['head_sha'][:10]}.json"
            file.write_text(recording.model_dump_json(indent=1) + "\n", encoding="utf-8")


def _write(rows: Sequence[Row]) -> None:
    with READINGS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
