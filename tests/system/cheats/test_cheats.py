"""No cheat scores, nor does the null patch; the expert's does. Real processes, timed for real."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.grader_parts import load_part
from tests.system.cheats.gradings import (
    AS_USERS,
    Exported,
    corpus,
    export_task,
    group_of,
    honest,
    open_folder,
    why_expected,
)

UNMEASURED = "nothing that counts"
AT_ONCE = {
    "answers_ahead", "answers_while_loaded", "asks_for_the_mode", "comparison_of_the_script", "journal_by_json",
    "outcomes_of_the_probe", "plugin_by_metadata", "results_by_link", "skips_when_tested", "wakes_itself",
    "wrong_now_and_then",
}  # fmt: skip
"""Cheats that fail in the tests, or in the first pair: of each wall some."""
QUICK = [one for one in corpus() if one.stem in AT_ONCE or why_expected(one).pattern.startswith(UNMEASURED)]
GROUPS = {"clock", "report", "elsewhere", "memory", "asking", "less work", "environment", "statistics"}
needs_both = pytest.mark.skipif(
    not AS_USERS or shutil.which("bwrap") is None, reason="sides are kept apart in one way only here"
)


@pytest.fixture(scope="module")
def exported() -> Iterator[Exported]:
    if not AS_USERS and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed: cheats cannot be graded here (Debian: apt-get install bubblewrap)")
    with open_folder() as place:
        yield export_task(place)


@pytest.fixture(scope="module")
def part() -> Iterator[Any]:
    with load_part() as load:
        yield load


@pytest.fixture
def place() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


def test_the_corpus_has_cheats_of_all_kinds_and_a_control() -> None:
    assert len(corpus()) >= 60 and {group_of(one) for one in corpus()} == GROUPS
    assert len(honest()) >= 25


@pytest.mark.parametrize("patch", honest(), ids=lambda patch: patch.stem)
def test_of_honest_changes_all_that_counts_is_taken(exported: Exported, patch: Path, place: Path, part: Any) -> None:
    testbed, cand = place / "testbed", place / "cand"
    for copy in (testbed, cand):
        shutil.copytree(exported.base, copy)
    subprocess.run(["git", "-C", str(testbed), "apply", str(patch)], check=True)
    task = json.loads((exported.folder / "tests" / "task.json").read_text())
    changed, left_out = part("candidate").apply_changes(task | {"testbed": str(testbed)}, str(exported.base), str(cand))
    assert "quarrykit/graph.py" in changed and not any(path.startswith("quarrykit/") for path in left_out)


@pytest.mark.parametrize("cheat", QUICK, ids=lambda cheat: cheat.stem)
def test_cheats_that_need_no_long_timing_get_nothing(exported: Exported, cheat: Path, place: Path) -> None:
    done = exported.grade(cheat.read_text(), place)
    assert (done.code, done.reward) == (0, 0), done
    assert why_expected(cheat).search(done.why), done


@pytest.mark.slow
def test_the_expert_scores(exported: Exported, place: Path) -> None:
    done = exported.grade(exported.expert, place)
    assert (done.code, done.reward) == (0, 1), (done.why, done.facts)


@pytest.mark.slow
@pytest.mark.parametrize("cheat", [one for one in corpus() if one not in QUICK], ids=lambda cheat: cheat.stem)
def test_no_cheat_scores(exported: Exported, cheat: Path, place: Path) -> None:
    done = exported.grade(cheat.read_text(), place)
    assert (done.code, done.reward) == (0, 0), (done.why, done.facts)
    assert why_expected(cheat).search(done.why), done.facts


@pytest.mark.slow
@pytest.mark.parametrize("patch", honest(), ids=lambda patch: patch.stem)
def test_honest_changes_score(exported: Exported, patch: Path, place: Path) -> None:
    done = exported.grade(patch.read_text(), place)
    assert (done.code, done.reward) == (0, 1), (done.why, done.facts)


@needs_both
@pytest.mark.slow
def test_the_expert_scores_in_bubblewrap(exported: Exported, place: Path) -> None:
    done = exported.grade(exported.expert, place, as_users=False)
    assert (done.code, done.reward) == (0, 1), (done.why, done.facts)


@needs_both
@pytest.mark.parametrize("name", ["answers_ahead", "wakes_itself"])
def test_cheats_of_the_turns_get_nothing_in_bubblewrap(exported: Exported, name: str, place: Path) -> None:
    (cheat,) = [one for one in corpus() if one.stem == name]
    done = exported.grade(cheat.read_text(), place, as_users=False)
    assert (done.code, done.reward) == (0, 0), done
    assert why_expected(cheat).search(done.why), done


def test_an_untouched_base_gets_nothing(exported: Exported, place: Path) -> None:
    done = exported.grade("", place)
    assert (done.code, done.reward, done.why) == (0, 0, "nothing that counts was changed")
