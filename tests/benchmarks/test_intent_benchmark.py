"""The readings that are kept, and the tables made of them."""

from __future__ import annotations

import re

from benchmarks.intent import CLASSES, PAGE, half_of, read, report


def test_readings_hold_hashes_classes_and_reasons() -> None:
    rows = read()
    assert len(rows) >= 60 and len({row["head_sha"] for row in rows}) == len(rows)
    for row in rows:
        assert re.fullmatch(r"[0-9a-f]{40}", row["head_sha"]) and row["why_1"]
        assert {row["reading_1"], row["reading_2"], row["heuristic"]} <= set(CLASSES)
        assert (row["reading_1"] == row["reading_2"]) or row["why_2"], "where the readings differ, the second says why"
    assert {half_of(row) for row in rows} == {"fit", "shown"}


def test_the_page_shows_the_tables_of_the_readings() -> None:
    assert report(read()) in PAGE.read_text(encoding="utf-8")


def test_scores_count_what_was_said_and_what_is_true() -> None:
    rows = [row | {"heuristic": row["reading_1"]} for row in read()]
    shown = [row for row in rows if half_of(row) == "shown"]
    cells = []
    for name in CLASSES:
        number = sum(row["reading_1"] == name for row in shown)
        cells.append(f"{number}/{number}, {number}/{number}")
    assert f"| shown | reading 1 | {len(shown)} | {' | '.join(cells)} |" in report(rows)
