"""No cheat scores, nor does the null patch; the expert's does. Real processes, timed for real."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.cheats.gradings import AS_USERS, Exported, corpus, export_task, open_folder, why_expected

UNMEASURED = ("nothing that counts", "looks at what measures it")
AT_ONCE = {"other_type", "answers_ahead", "answers_while_loaded", "wakes_itself"}
"""Cheats that fail in the tests, or in the first pair."""
QUICK = [one for one in corpus() if one.stem in AT_ONCE or why_expected(one).pattern.startswith(UNMEASURED)]
needs_both = pytest.mark.skipif(
    not AS_USERS or shutil.which("bwrap") is None, reason="sides are kept apart in one way only here"
)


@pytest.fixture(scope="module")
def exported() -> Iterator[Exported]:
    if not AS_USERS and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed: cheats cannot be graded here (Debian: apt-get install bubblewrap)")
    with open_folder() as place:
        yield export_task(place)


@pytest.fixture
def place() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


@pytest.mark.parametrize("cheat", QUICK, ids=lambda cheat: cheat.stem)
def test_cheats_that_need_no_long_timing_get_nothing(exported: Exported, cheat: Path, place: Path) -> None:
    done = exported.grade(cheat.read_text(), place)
    assert (done.code, done.reward) == (0, 0), done
    assert why_expected(cheat).search(done.why), done


@pytest.mark.slow
def test_the_expert_scores(exported: Exported, place: Path) -> None:
    done = exported.grade(exported.expert, place)
    assert (done.code, done.reward) == (0, 1), done.facts


@pytest.mark.slow
@pytest.mark.parametrize("cheat", [one for one in corpus() if one not in QUICK], ids=lambda cheat: cheat.stem)
def test_no_cheat_scores(exported: Exported, cheat: Path, place: Path) -> None:
    done = exported.grade(cheat.read_text(), place)
    assert (done.code, done.reward) == (0, 0), done.facts
    assert why_expected(cheat).search(done.why), done.facts


@needs_both
@pytest.mark.slow
def test_the_expert_scores_in_bubblewrap(exported: Exported, place: Path) -> None:
    done = exported.grade(exported.expert, place, as_users=False)
    assert (done.code, done.reward) == (0, 1), done.facts


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
