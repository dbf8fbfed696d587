"""No cheat scores, nor does the null patch; the expert's does. Real processes, timed for real."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.system.cheats.gradings import Exported, corpus, export_task, why_expected

UNMEASURED = ("nothing that counts", "looks at what measures it")
QUICK = [one for one in corpus() if one.stem == "other_type" or why_expected(one).pattern.startswith(UNMEASURED)]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed: cheats cannot be graded here (Debian: apt-get install bubblewrap)")
    return export_task(tmp_path_factory.mktemp("cheats"))


@pytest.mark.parametrize("cheat", QUICK, ids=lambda cheat: cheat.stem)
def test_cheats_that_need_no_timing_get_nothing(exported: Exported, cheat: Path, tmp_path: Path) -> None:
    done = exported.grade(cheat.read_text(), tmp_path)
    assert (done.code, done.reward) == (0, 0), done
    assert why_expected(cheat).search(done.why), done


@pytest.mark.slow
def test_the_expert_scores(exported: Exported, tmp_path: Path) -> None:
    done = exported.grade(exported.expert, tmp_path)
    assert (done.code, done.reward) == (0, 1), done.facts


@pytest.mark.slow
@pytest.mark.parametrize("cheat", [one for one in corpus() if one not in QUICK], ids=lambda cheat: cheat.stem)
def test_no_cheat_scores(exported: Exported, cheat: Path, tmp_path: Path) -> None:
    done = exported.grade(cheat.read_text(), tmp_path)
    assert (done.code, done.reward) == (0, 0), done.facts
    assert why_expected(cheat).search(done.why), done.facts


def test_an_untouched_base_gets_nothing(exported: Exported, tmp_path: Path) -> None:
    done = exported.grade("", tmp_path)
    assert (done.code, done.reward, done.why) == (0, 0, "nothing that counts was changed")
