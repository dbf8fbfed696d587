"""What keeps test files from being collected, and what that leads to."""

from __future__ import annotations

from pathlib import Path

import pytest
from probed import Probe

from perfquarry.data.records import Side
from perfquarry.harness.building.collection import Collection
from perfquarry.harness.building.repair_rules import Situation, proposals
from perfquarry.harness.contracts import BuiltSide, Limits, ProbeRequest
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.sandbox import choose_sandbox
from tests.bare_python import bare_python


def test_a_module_skipped_for_a_package_of_the_extras_is_repaired(tmp_path: Path) -> None:
    """`pytest.importorskip` makes no error: without the package the whole file is passed over in silence."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "test_it.py").write_text("import pytest\npytest.importorskip('zstandard')\n\ndef test(): pass\n")
    (tree / "test_os.py").write_text("import pytest\npytest.skip('for others', allow_module_level=True)\n")
    side = BuiltSide("base", "0", tree, bare_python(), "e", (tree,))
    sides: dict[Side, BuiltSide] = {"base": side}
    prober = Prober(choose_sandbox(), tmp_path / "scratch")
    log = Collection(prober, lambda sides: ["test_it.py", "test_os.py"], Limits(60.0)).errors(sides)
    assert "test_it.py:" in log and "test_os.py:" not in log
    offered = [
        amendment.requirements for _, amendment in proposals(Situation("collect", log, declared=["zstandard>1"]))
    ]
    assert ["zstandard>1"] in offered


def test_variables_and_arguments_of_a_recipe_reach_the_tests(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    body = "import os\n\ndef test_yes():\n    assert os.environ['WHERE'] == 'here'\n\ndef test_no():\n    assert 0\n"
    (tree / "test_it.py").write_text(body)
    variables = {"WHERE": "here", "PYTHONHASHSEED": "9"}
    side = BuiltSide("base", "0", tree, bare_python(), "e", (tree,), variables, ("-k", "yes"))
    prober = Prober(choose_sandbox(), tmp_path / "scratch")
    report = prober.run(side, ProbeRequest(mode="check", arguments=["test_it.py"]), limits=Limits(60.0))
    assert {item.node: item.outcome for item in report.items} == {"test_it.py::test_yes": "passed"}


SAME = "NAME = {!r}\ndef test_same():\n    assert NAME == __file__.replace('\\\\', '/').split('/')[-{}]\n"


@pytest.mark.parametrize("mode", ["check", "time"])
def test_test_modules_of_one_name_are_all_imported(probe: Probe, mode: str) -> None:
    """In folders that are no packages, as nose ran them, and in packages of one name."""
    files = ["one/test_same.py", SAME.format("one", 2), "two/test_same.py", SAME.format("two", 2)]
    for folder in ("a", "b"):
        files += [f"{folder}/tests/__init__.py", f"WHERE = {folder!r}\n"]
        text = f"from tests import WHERE\ndef test_where():\n    assert WHERE == {folder!r}\n"
        files += [f"{folder}/tests/test_same.py", SAME.format(folder, 3) + text]
    arguments = [name for name in files[::2] if name.endswith("test_same.py")]
    report = probe(*files, mode=mode, arguments=arguments)
    assert {item.node: item.outcome for item in report.items} == {
        "one/test_same.py::test_same": "passed",
        "two/test_same.py::test_same": "passed",
        **{f"{folder}/tests/test_same.py::test_{name}": "passed" for folder in "ab" for name in ("same", "where")},
    }, report.output
