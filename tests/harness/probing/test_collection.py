"""What keeps test files from being collected, and what that leads to."""

from __future__ import annotations

import sys
from pathlib import Path

from data.records import Side
from harness.collection import Collection
from harness.contracts import BuiltSide, Limits
from harness.prober import SandboxProber
from harness.rules import Situation, proposals
from harness.sandbox import choose_sandbox


def test_a_module_skipped_for_a_package_of_the_extras_is_repaired(tmp_path: Path) -> None:
    """`pytest.importorskip` makes no error: without the package the whole file is passed over in silence."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "test_it.py").write_text("import pytest\npytest.importorskip('zstandard')\n\ndef test(): pass\n")
    (tree / "test_os.py").write_text("import pytest\npytest.skip('for others', allow_module_level=True)\n")
    side = BuiltSide("base", "0", tree, Path(sys.executable), "e", (tree,))
    sides: dict[Side, BuiltSide] = {"base": side}
    prober = SandboxProber(choose_sandbox(), tmp_path / "scratch")
    log = Collection(prober, lambda sides: ["test_it.py", "test_os.py"], Limits(60.0)).errors(sides)
    assert "test_it.py:" in log and "test_os.py:" not in log
    offered = [
        amendment.requirements for _, amendment in proposals(Situation("collect", log, declared=["zstandard>1"]))
    ]
    assert ["zstandard>1"] in offered
