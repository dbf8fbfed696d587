"""Reports that are kept until a search is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfquarry.harness.contracts import BuiltSide, Limits, ProbeReport, ProbeRequest
from perfquarry.harness.probing.known_reports import KnownReports
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.sandbox import choose_sandbox
from tests.bare_python import bare_python

TESTS = """\
def test_a(): pass
def test_b(): assert 1 == 2, "\N{SNOWMAN}"
def test_slow():
    import time
    time.sleep(5)
"""
SCRIPT = "def setup(): return 1\ndef experiment(x): return bytes(range(256))\n"


@pytest.fixture
def side(tmp_path: Path) -> BuiltSide:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "test_lib.py").write_text(TESTS)
    return BuiltSide("base", "a" * 40, tree, bare_python(), "environment", (tree,))


def run(side: BuiltSide, known: KnownReports, seed: int = 0, *, test: str = "test_a") -> ProbeReport:
    (side.tree.parent / "scratch").mkdir(exist_ok=True)
    prober = Prober(choose_sandbox(), side.tree.parent / "scratch", known=known)
    request = ProbeRequest(mode="check", arguments=[f"test_lib.py::{test}"], test_timeout=0.5)
    return prober.run(side, request, limits=Limits(), hash_seed=seed)


def test_whoever_goes_on_runs_nothing_again(side: BuiltSide, tmp_path: Path) -> None:
    first = KnownReports(tmp_path / "known")
    ran = [run(side, first), run(side, first), run(side, first, 1), run(side, first, test="test_b")]
    assert ran[0].wall_seconds != ran[1].wall_seconds, "asked twice, run twice: it may pass by chance"

    later = KnownReports(first.folder)
    assert [run(side, later), run(side, later), run(side, later, 1), run(side, later, test="test_b")] == ran
    assert run(side, later).wall_seconds not in {report.wall_seconds for report in ran}
    other = BuiltSide("base", "a" * 40, side.tree, side.python, "another environment", (side.tree,))
    assert run(other, KnownReports(first.folder)).wall_seconds != ran[0].wall_seconds
    later.remove()
    later.remove()
    assert not first.folder.exists()


def test_what_may_have_been_the_machine_is_not_kept(side: BuiltSide, tmp_path: Path) -> None:
    known = KnownReports(tmp_path / "known")
    (slow,) = run(side, known, test="test_slow").items
    assert slow.outcome == "timeout" and not known.folder.exists()
    known.keep("crashed.json", ProbeReport(outcome="crashed"))
    assert not known.folder.exists()


def test_a_file_that_is_not_whole_counts_for_nothing(side: BuiltSide, tmp_path: Path) -> None:
    known = KnownReports(tmp_path / "known")
    ran = run(side, known)
    (path,) = known.folder.iterdir()
    path.write_bytes(path.read_bytes()[:-5])
    assert run(side, KnownReports(known.folder)).wall_seconds != ran.wall_seconds


def test_results_of_scripts_come_back_as_they_were(side: BuiltSide, tmp_path: Path) -> None:
    known = KnownReports(tmp_path / "known")
    report = ProbeReport(outcome="finished", results={"a": {"file": bytes(range(256))}}, wall_seconds=0.1)
    known.keep("name", report)
    assert KnownReports(known.folder).get("name") == report
    known.keep("other", ProbeReport(outcome="finished", output="\udcff"))
    assert known.get("other") is None
