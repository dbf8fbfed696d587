"""Which of a tree's settings hold for the probe, and what it does without the plugins that are left out."""

from __future__ import annotations

import pytest
from probed import Probe


def test_configuration_of_the_tree_holds_but_its_command_line_does_not(probe: Probe) -> None:
    report = probe(
        "tests/checks.py", "import pytest\n@pytest.mark.no_cover\n@pytest.mark.of_a_plugin\n"
        "def check_it(value, other): assert (value, other) == (1, 2)",
        "setup.cfg", "[tool:pytest]\naddopts = --cov=x -n 4 --reruns 3\npython_functions = check_*\n"
        "filterwarnings = error\nrequired_plugins = nowhere\n",
        "conftest.py", "import pytest\n@pytest.fixture\ndef value(): return 1\ndef pytest_configure_node(node): 1 / 0",
        "tests/conftest.py", "import pytest\n@pytest.fixture\ndef other(): return 2\ndef pytest_html_report(x): 1 / 0",
    )  # fmt: skip
    assert [(item.node, item.outcome) for item in report.items] == [("tests/checks.py::check_it", "passed")]


@pytest.mark.parametrize(
    ("name", "settings", "outcome"),
    [
        (
            "setup.cfg",
            "[nosetests]\nwith-doctest=1\ndoctest-options=+IGNORE_EXCEPTION_DETAIL,+NO_SUCH_FLAG\n",
            "passed",
        ),
        ("setup.cfg", "[nosetests]\nwith-doctest=1\n", "failed"),
        ("tox.ini", "[nosetests]\ndoctest-options=+ELLIPSIS\n[pytest]\ndoctest_optionflags=\n", "failed"),
    ],
)
def test_examples_are_compared_as_nose_was_told(probe: Probe, name: str, settings: str, outcome: str) -> None:
    code = '"""\n>>> raise KeyError(1)\nTraceback (most recent call last):\n    ...\nlib.KeyError: ...\n"""'
    report = probe("lib.py", code, name, settings)
    assert [(item.node, item.outcome) for item in report.items] == [("lib.py::lib", outcome)], report.items


def test_marks_of_plugins_that_are_left_out_are_known(probe: Probe) -> None:
    code = "import pytest\n@pytest.mark.no_cover\n@pytest.mark.xdist_group(name='a')\ndef test_x(): pass"
    report = probe("test_x.py", code, "pytest.ini", "[pytest]\nstrict_markers = true\n")
    assert [(item.node, item.outcome) for item in report.items] == [("test_x.py::test_x", "passed")], report.output
    report = probe("test_y.py", code.replace("no_cover", "no_cove"), "pytest.ini", "[pytest]\nstrict_markers = true\n")
    assert not report.items and "no_cove" in report.collect_errors["test_y.py"]


def test_plugins_that_the_options_of_the_tree_load_bring_their_fixtures(probe: Probe) -> None:
    report = probe(
        "test_x.py", "def test_x(value, testdir): assert value == 1 and testdir",
        "lib/plugin.py", "import pytest\n@pytest.fixture\ndef value(): return 1",
        "xdist.py", "1 / 0", "pytest_randomly.py", "1 / 0",
        "pyproject.toml", "[tool.pytest.ini_options]\naddopts = ['-p lib.plugin', '-p', 'pytester',\n"
        "  '-p no:legacypath', '-p', 'xdist.plugin', '-p=pytest_randomly', '-p pytest_nowhere', '--strict-markers']\n",
    )  # fmt: skip
    assert [(item.node, item.outcome) for item in report.items] == [("test_x.py::test_x", "passed")], report.output
