"""Repairs of real builds: what a log asks for is tried, recorded, and remembered for the neighbours."""

from __future__ import annotations

import os
import shutil
import subprocess
import textwrap
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from histories import DATE, STAMP, History, both, reasons, run

from perfquarry.data.records import Amendment, Attempt, Change, Reason, Step
from perfquarry.harness.building.builder import BuiltChange
from perfquarry.harness.building.collection import done_without
from perfquarry.harness.building.debian import HEADERS, install
from perfquarry.harness.building.known_good import WINDOW, KnownGood
from perfquarry.harness.building.repair import PROPOSED, REMEMBERED, Repair, RepairAttempt
from perfquarry.harness.building.repair_rules import MAJOR, MODULE, Situation
from perfquarry.harness.environments.interpreters import find_interpreters
from perfquarry.harness.metadata.recipe import Recipe
from perfquarry.harness.settings import BuildSettings


def tries(built: BuiltChange) -> list[tuple[str, str]]:
    """(Rule, outcome) of each attempt."""
    assert [row.side for row in built.attempts] == ["base", "head"] * (len(built.attempts) // 2)
    assert [row.number for row in built.attempts[::2]] == list(range(1, len(built.attempts) // 2 + 1))
    assert sum(row.chosen for row in built.attempts) == 2
    return [(row.rule, row.outcome) for row in built.attempts[::2]]


def test_what_was_added_may_need_a_repair_itself() -> None:
    """Factory Boy's tests import mongoengine, whose source distribution needs an old setuptools."""
    logs: dict[str, tuple[Step, str]] = {
        "": ("collect", "ModuleNotFoundError: No module named 'yaml'"),
        "pyyaml": ("environment", "error in setup command: use_2to3 is invalid."),
        "pyyaml setuptools<58": ("built", ""),
    }

    def make(amendment: Amendment, rule: str) -> RepairAttempt:
        step, log = logs[" ".join(amendment.requirements)]
        return RepairAttempt(amendment, rule, [], step, log, 0.0)

    def situate(trial: RepairAttempt) -> Situation:
        return Situation(trial.step, trial.log, trial.amendment)

    repair = Repair(make, situate, lambda packages: None, BuildSettings())
    assert repair.run(Amendment()).step == "built" and len(repair.trials) == 3
    few = Repair(make, situate, lambda packages: None, BuildSettings(attempts=2))
    assert few.run(Amendment()).step == "collect" and len(few.trials) == 2
    logs["pyyaml setuptools<58"] = logs["pyyaml"]
    vain = Repair(make, situate, lambda packages: None, BuildSettings())
    assert vain.run(Amendment()) is vain.trials[0] and len(vain.trials) == 3


@pytest.mark.slow
def test_a_missing_module_is_installed_and_remembered_for_neighbours(history: History) -> None:
    known = KnownGood()
    history.options = {"known_good": known}
    first = history.commit({"lib/__init__.py": "import six, toolz\n"})
    second = history.commit({"lib/__init__.py": "import six, toolz\na = 1\n"})
    built = history.build(first, second)
    both(built)
    assert tries(built) == [("", "import"), (MODULE, "import"), (MODULE, "built")]
    last = built.attempts[-1]
    assert last.amendment == Amendment(requirements=["six", "toolz"])
    assert {"pytest", "six", "toolz"} <= set(last.requirements)
    assert [row.reason for row in built.attempts[::2]] == [Reason.IMPORT_FAILED, Reason.IMPORT_FAILED, None]
    assert "No module named 'six'" in built.attempts[0].log
    assert built.rows[0].requirements == history.builder().build(history.change(first, second)).rows[0].requirements

    third = history.commit({"lib/__init__.py": "import six, toolz\na = 2\n"})
    near = history.builder().build(history.change(second, third, DATE + timedelta(days=30)))
    assert tries(near) == [(REMEMBERED, "built")]
    assert near.rows[0].environment_id != ""
    far = history.builder().build(history.change(second, third, DATE + WINDOW + timedelta(days=1)))
    assert tries(far)[0] == ("", "import")

    fourth = history.commit({"lib/__init__.py": "raise ValueError\n"})
    broken = history.build(third, fourth)
    assert reasons(broken) == [Reason.IMPORT_FAILED] * 2
    assert tries(broken) == [(REMEMBERED, "import"), ("", "import")]
    assert "ValueError" in broken.rows[1].log


def test_names_of_the_repository_and_unknown_names_are_never_installed(history: History) -> None:
    first = history.commit({"lib/__init__.py": "import six, nobody_knows_this\n", "tests/six.py": ""})
    built = history.build(first, history.commit({"lib/__init__.py": "import six\n"}))
    assert reasons(built) == [Reason.IMPORT_FAILED] * 2
    assert tries(built) == [("", "import")]


@pytest.mark.skipif(len([i for i in find_interpreters() if i.minor < (3, 10)]) == 0, reason="no Python before 3.10")
def test_an_older_interpreter_where_the_library_lost_a_name(history: History) -> None:
    first = history.commit({"lib/__init__.py": "from collections import Mapping\n"})
    second = history.commit({"lib/__init__.py": "from collections import Mapping, MutableMapping\n"})
    built = history.build(first, second)
    both(built)
    assert tries(built) == [("", "import"), ("collections' ABCs: Python < 3.10", "built")]
    assert {row.python.split(".")[1] for row in built.rows} < {"6", "7", "8", "9"}
    history.commit({"setup.py": "setup(name='lib', python_requires='>=3.10')"})
    third = history.git("rev-parse", "HEAD")
    cannot = history.build(third, history.commit({"lib/a.py": ""}))
    assert reasons(cannot) == [Reason.IMPORT_FAILED] * 2
    assert tries(cannot) == [("", "import"), ("collections' ABCs: Python < 3.10", "interpreter")]


def test_versions_the_project_tested_with_are_preferred(history: History) -> None:
    tested = next(i for i in find_interpreters() if i.matured and i.matured < DATE)
    version = "{}.{}".format(*tested.minor)
    first = history.commit({"lib/__init__.py": "", ".travis.yml": f"python: [2.7, {version}, 3.14]\n"})
    built = history.build(first, history.commit({"lib/__init__.py": "a = 1\n"}))
    both(built)
    assert {row.python for row in built.rows} == {str(tested.version)}


@pytest.mark.parametrize(
    ("code", "rule", "bound"),
    [
        ("from markupsafe import soft_unicode\n", "markupsafe 2.1", "markupsafe<2.1"),
        ("from itsdangerous import json\n", MAJOR, "itsdangerous<2"),
    ],
)
def test_an_upper_bound_where_a_library_lost_a_name(history: History, code: str, rule: str, bound: str) -> None:
    name, _, version = bound.partition("<")
    history.registered = {"requirements": [name]}
    first = history.commit({"lib/__init__.py": code})
    built = history.build(first, history.commit({"lib/__init__.py": code + "a = 1\n"}))
    both(built)
    assert tries(built) == [("", "import"), (rule, "built")]
    assert built.attempts[-1].amendment == Amendment(requirements=[bound])
    (line,) = [line.lower() for line in built.rows[0].requirements if line.lower().startswith(f"{name}==")]
    assert line < f"{name}=={version}"


def near_tests(*files: str) -> dict[str, object]:
    return {"tests_near": lambda change, sides: files}


def test_modules_that_tests_miss_are_installed(history: History) -> None:
    history.options = near_tests("tests/test_a.py", "tests/test_b.py", "tests/gone.py")
    tests = {"tests/test_a.py": "import six\ndef test(): assert 0\n", "tests/test_b.py": "def test(): open('ran', 'w')"}
    first = history.commit({"lib/__init__.py": "", "requirements-dev.txt": "six==1.15.0\nflake8\n", **tests})
    second = history.commit({"lib/__init__.py": "a = 1\n"})
    built = history.build(first, second)
    base, _ = both(built)
    assert "six==1.15.0" in built.rows[0].requirements
    assert not (base.tree / "ran").exists()


def test_modules_that_tests_do_without_are_installed(history: History) -> None:
    history.options = near_tests("tests/test_a.py")
    code = """
    import unittest
    try:
        import sortedcontainers
    except ImportError:
        sortedcontainers = None
    try:
        import lib.missing, toolz
    except ImportError:
        import types as toolz
    @unittest.skipIf(sortedcontainers is None, "sortedcontainers not installed")
    class TestIt(unittest.TestCase):
        def test(self):
            pass
    """
    first = history.commit({"lib/__init__.py": "", "tests/test_a.py": textwrap.dedent(code)})
    built = history.build(first, history.commit({"lib/__init__.py": "a = 1\n"}))
    both(built)
    assert tries(built) == [("", "collect"), (MODULE, "built")]
    assert built.attempts[-1].amendment == Amendment(requirements=["sortedcontainers"])


@pytest.mark.parametrize(
    ("code", "modules"),
    [
        ("try:\n    import yaml.cyaml, six\nexcept (ImportError, OSError):\n    six = None", ["yaml.cyaml", "six"]),
        ("def test():\n    try:\n        from babel.core import a\n    except:\n        skip()", ["babel.core"]),
        ("try:\n    import simplejson\nexcept ImportError:\n    import json as simplejson", []),
        ("try:\n    import simplejson\nexcept ValueError:\n    pass", []),
        ("try:\n    run()\n    import simplejson\nexcept Exception:\n    pass", []),
        ("try:\n    from . import simplejson\n    import unknown_helper\nexcept ImportError:\n    pass", []),
        ("def test():\n    pd = pytest.importorskip('pandas')\n    importorskip('zarr', '2')", ["pandas", "zarr"]),
        ("importorskip(name)\nimportorskip('lib.own')\nskip('zarr')", ["lib.own"]),
        ("importorskip('/etc/**')\nimportorskip('')\nimportorskip('..')", []),
        ("import simplejson", []),
        ("print 'Python 2'", []),
    ],
)  # fmt: skip
def test_what_files_do_without(code: str, modules: list[str]) -> None:
    assert done_without(code.encode()) == modules


def test_what_optional_modules_of_the_tree_need_is_installed(history: History) -> None:
    """With a message of its own: nothing says what is missing."""
    history.options = near_tests("tests/test_a.py")
    optional = (
        "try:\n    import sortedcontainers, unknown_helper\nexcept ImportError:\n    raise ImportError('Sorry')\n"
    )
    tests = "import pytest\ndef test():\n    pytest.importorskip('lib.optional')\n"
    files = {"lib/__init__.py": "", "lib/optional.py": optional, "tests/test_a.py": tests}
    first = history.commit(files)
    built = history.build(first, history.commit({"lib/__init__.py": "a = 1\n"}))
    both(built)
    assert built.attempts[-1].amendment == Amendment(requirements=["sortedcontainers"])


def test_tests_that_cannot_be_collected_are_noted(history: History) -> None:
    history.options = near_tests("tests/test_a.py", "tests/test_b.py")
    code = "import sortedcontainers\nimport unknown_helper\n"
    files = {"tests/test_a.py": code, "tests/test_b.py": "raise ValueError('never again')\n"}
    first = history.commit({"lib/__init__.py": "", **files})
    built = history.build(first, history.commit({"lib/__init__.py": "a = 1\n"}))
    both(built)
    assert tries(built) == [("", "collect"), (MODULE, "collect")]
    assert any(line.startswith("sortedcontainers==") for line in built.rows[0].requirements)
    assert "No module named 'unknown_helper'" in built.rows[0].log and "never again" in built.rows[0].log
    assert {row.status for row in built.attempts} == {"kept"}


def test_a_conftest_that_fails_is_noted(history: History) -> None:
    history.options = near_tests("tests/test_a.py")
    files = {"tests/conftest.py": "import toolz, nothing_like_it\n", "tests/test_a.py": "def test(): pass\n"}
    first = history.commit({"lib/__init__.py": "", **files})
    built = history.build(first, history.commit({"lib/__init__.py": "a = 1\n"}))
    both(built)
    assert tries(built)[-1] == (MODULE, "collect"), built.rows[1].log
    assert "nothing_like_it" in built.rows[1].log


LACKING = next((name for name in sorted(HEADERS) if not list(Path("/usr").glob(f"include/**/{name}"))), None)


@pytest.mark.skipif(not (LACKING and shutil.which("cc")), reason="no C compiler, or every header is installed")
def test_a_missing_header_names_the_debian_package(history: History) -> None:
    setup = "from setuptools import Extension, setup\nsetup(name='lib', ext_modules=[Extension('lib.a', ['a.c'])])\n"
    first = history.commit({"lib/__init__.py": "", "setup.py": setup, "a.c": f"#include <{LACKING}>\n"})
    built = history.build(first, history.commit({"lib/__init__.py": "a = 1\n"}))
    assert reasons(built) == [Reason.SYSTEM_PACKAGE_MISSING] * 2
    assert LACKING and HEADERS[LACKING] in built.rows[0].log and "system_packages" in built.rows[0].log
    assert tries(built) == [("", "build")]


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("apt-get"), reason="apt-get and root are needed")
def test_installing_debian_packages(tmp_path: Path) -> None:
    listed = subprocess.run(["dpkg-query", "-W", "-f", "${Package}\\n"], capture_output=True, text=True, check=True)
    assert install([listed.stdout.split()[0]], tmp_path / "locks" / "apt.lock") is None
    why = install(["no-such-package-anywhere"], tmp_path / "locks" / "apt.lock")
    assert why and "no-such-package-anywhere" in why


def test_attempts_are_bounded(history: History) -> None:
    history.settings = BuildSettings(timeout=300.0, attempts=2)
    first = history.commit({"lib/__init__.py": "import six\nimport toolz\n"})
    built = history.build(first, history.commit({"lib/__init__.py": "import six\nimport toolz\na = 1\n"}))
    assert reasons(built) == [Reason.IMPORT_FAILED] * 2
    assert tries(built) == [("", "import"), (MODULE, "import")]
    history.settings = BuildSettings(timeout=300.0, attempts_seconds=0.0)
    assert len(tries(history.build(first, history.git("rev-parse", "HEAD")))) == 1


def test_a_proposer_is_asked_when_no_rule_fits(history: History) -> None:
    asked: list[str] = []

    def proposer(change: Change, log: str, recipe: Recipe) -> Sequence[str]:
        asked.append(log)
        return ["not a requirement ==", "evil @ file:///tmp/x", "unheard-of-package", "six", *recipe.requirements]

    history.options = {"proposer": proposer}
    code = "try:\n    import six\nexcept ImportError:\n    raise ValueError('a library is not there') from None\n"
    first = history.commit({"lib/__init__.py": code})
    built = history.build(first, history.commit({"lib/__init__.py": code + "a = 1\n"}))
    base, _ = both(built)
    assert tries(built) == [("", "import"), (PROPOSED, "built")]
    assert len(asked) == 1 and "not there" in asked[0]
    assert run(base, "import six; print('there')") == "there"


def attempt(number: int, days: int, **changes: object) -> Attempt:
    row = Attempt(
        **STAMP.fields(), change_id=f"c{number}", side="base", number=1, merged_at=DATE + timedelta(days=days),
        outcome="built", chosen=True, rule="r", amendment=Amendment(requirements=[f"n{number}"]),
    )  # fmt: skip
    return row.model_copy(update=changes)


def test_the_nearest_known_good_in_time(history: History) -> None:
    first = history.commit({"lib/__init__.py": ""})
    change = history.change(first, first)
    rows = [attempt(1, -30), attempt(2, 20), attempt(3, 400), attempt(4, -20)]
    for order in (rows, rows[::-1]):
        assert KnownGood(order).nearest(change).requirements == ["n4"]  # the earlier of two equally near ones
    useless = [
        attempt(5, 0, chosen=False),
        attempt(6, 0, status="rejected"),
        attempt(7, 0, rule=REMEMBERED),
        attempt(8, 0, change_id=change.change_id),
    ]
    assert KnownGood([*useless, *rows]).nearest(change).requirements == ["n4"]
    assert KnownGood([attempt(9, 1, rule="", amendment=Amendment()), *rows]).nearest(change) == Amendment()
    assert KnownGood([rows[2]]).nearest(change) == Amendment()
