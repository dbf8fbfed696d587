"""Which test files reach a changed module, on import graphs made by hand."""

from pathlib import Path

import pytest

from perfquarry.testgen.imports import Import, imports_of
from perfquarry.testgen.pytest_config import Naming, is_test_name, is_test_path, python_files
from perfquarry.testgen.reach import FAR, FEW, TestFile, reachable_tests

TEST = "\ndef test_it():\n    assert True\n"


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def reached(
    root: Path, changed: str, roots: tuple[str, ...] = ("",), limit: int | None = None
) -> list[tuple[str, int]]:
    return [(test.path, test.distance) for test in reachable_tests(root, roots, [changed], limit)]


@pytest.mark.parametrize(
    ("statement", "distance"),
    [
        ("import pkg.heap", 1),
        ("import pkg.heap as h", 1),
        ("import os, pkg.heap", 1),
        ("from pkg import heap", 1),
        ("from pkg.heap import push", 1),
        ("from pkg.heap import (  # both ) of them\n    push,\n    pop,\n)", 1),
        ("from pkg import \\\n    heap", 1),
        ("import importlib\nheap = importlib.import_module('pkg.heap')", 1),
        ("import pytest\nheap = pytest.importorskip(\n    'pkg.heap')", 1),
        ("def late():\n    from pkg.heap import push", 1),
        ("from pkg import push", 1),  # re-exported by name
        ("from pkg import merge", 1),  # re-exported by a star
        ("from pkg import *", 2),
        ("import pkg", 2),
        ("from pkg.tree import grow", 2),  # which imports heap
    ],
)
def test_distance_by_form_of_import(tmp_path: Path, statement: str, distance: int) -> None:
    write(
        tmp_path,
        {
            "pkg/__init__.py": "from .heap import push\nfrom .heap import *\n",
            "pkg/heap.py": "def push(): ...\ndef pop(): ...\ndef merge(): ...\n",
            "pkg/tree.py": "from .heap import pop\ndef grow(): ...\n",
            "tests/test_one.py": statement + "\n" + TEST,
            "tests/test_other.py": "import json\n" + TEST,
        },
    )
    assert reached(tmp_path, "pkg/heap.py") == [("tests/test_one.py", distance)]


def test_a_package_may_hold_its_tests_itself(tmp_path: Path) -> None:
    files = {"pkg/__init__.py": "", "pkg/heap.py": "def push(): ...\n", "tests/__init__.py": "import pkg.heap\n"}
    write(tmp_path, files | {"tests/heap_tests/__init__.py": "import pkg.heap\n" + TEST})
    assert reached(tmp_path, "pkg/heap.py") == [("tests/heap_tests/__init__.py", 1)]


def test_a_reexported_name_leads_only_to_its_own_module(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pkg/__init__.py": "from pkg.api import a, b as c\n",
            "pkg/api.py": "from .one import a\nfrom .two import b\n",
            "pkg/one.py": "def a(): ...\n",
            "pkg/two.py": "def b(): ...\n",
            "tests/test_a.py": "from pkg import a\n" + TEST,
            "tests/test_c.py": "from pkg import c\n" + TEST,
        },
    )
    assert reached(tmp_path, "pkg/two.py") == [("tests/test_c.py", 1), ("tests/test_a.py", 2)]


def test_relative_imports_of_tests_inside_packages(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pkg/__init__.py": "",
            "pkg/core/__init__.py": "",
            "pkg/core/mul.py": "x = 1\n",
            "pkg/core/tests/__init__.py": "",
            "pkg/core/tests/test_mul.py": "from ..mul import x\n" + TEST,
            "pkg/core/tests/test_up.py": "from ... import core\n" + TEST,
            "pkg/test/mul_test.py": "from pkg.core import mul\nclass T(Case):\n    def test_x(self): ...\n",
        },
    )
    assert reached(tmp_path, "pkg/core/mul.py") == [("pkg/core/tests/test_mul.py", 1), ("pkg/test/mul_test.py", 1)]
    assert ("pkg/core/tests/test_up.py", 1) in reached(tmp_path, "pkg/core/__init__.py")


def test_source_layout_fixtures_and_helpers(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "src/pkg/__init__.py": "",
            "src/pkg/heap.py": "",
            "tests/conftest.py": "from helpers import build\n",
            "tests/helpers.py": "import pkg.heap\n",
            "tests/deep/test_fixture.py": "def test_it(built): ...\n",
            "tests/test_helper.py": "from helpers import build\n" + TEST,
        },
    )
    found = reached(tmp_path, "src/pkg/heap.py", roots=("src",))
    assert found == [("tests/test_helper.py", 2), ("tests/deep/test_fixture.py", 3)]


def test_the_file_named_after_the_change_comes_first(tmp_path: Path) -> None:
    files = {"pkg/__init__.py": "from .sortedlist import S\n", "pkg/sortedlist.py": "class S: ...\n"}
    names = [f"tests/test_{name}.py" for name in ("sortedlist", "coverage_sortedlist", "a", "stress_sortedlist")]
    files |= dict.fromkeys(names[1:], "from pkg.sortedlist import S\n" + TEST)
    files |= {names[0]: "import pkg\n" + TEST}
    write(tmp_path, files)
    assert [path for path, _ in reached(tmp_path, "pkg/sortedlist.py")] == names
    assert reached(tmp_path, "pkg/sortedlist.py", limit=1) == [(names[0], 2)]


def test_what_is_no_test_file(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "m.py": "",
            "test_python2.py": "import m\nprint 'old'\n" + TEST,
            "test_empty.py": "import m\n",
            ".hidden/test_h.py": "import m\n" + TEST,
            "build/lib/test_b.py": "import m\n" + TEST,
            "env/pyvenv.cfg": "",
            "env/test_v.py": "import m\n" + TEST,
            "check_m.py": "import m\n" + TEST,
        },
    )
    assert reached(tmp_path, "m.py") == []
    write(tmp_path, {"setup.cfg": "[tool:pytest]\npython_files = check_*.py other/*_spec.py\n"})
    assert reached(tmp_path, "m.py") == [("check_m.py", 1)]


def test_native_code_is_reached_by_module_name_or_neighbourhood(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pkg/__init__.py": "",
            "pkg/fast.pyx": "from pkg import deep\n",
            "pkg/deep.pyx": "",
            "pkg/speedups.c": "int x;\n",
            "pkg/core/wrap.py": "",
            "pkg/core/src/impl.cpp": "int y;\n",
            "tests/test_fast.py": "from pkg.fast import f\n" + TEST,
            "tests/test_speed.py": "from pkg.speedups import f\n" + TEST,
            "tests/test_wrap.py": "import pkg.core.wrap\n" + TEST,
        },
    )
    assert reached(tmp_path, "pkg/deep.pyx") == [("tests/test_fast.py", 2)]
    assert reached(tmp_path, "pkg/speedups.c") == [("tests/test_speed.py", 1)]
    assert reached(tmp_path, "pkg/core/src/impl.cpp") == [
        ("tests/test_wrap.py", 2),
        ("tests/test_fast.py", 3),
        ("tests/test_speed.py", 3),
    ]


def test_native_sources_without_a_package_are_reached_by_what_the_build_compiled(tmp_path: Path) -> None:
    """ujson: C in lib/ and python/, the module at the root; bottleneck: templates that become other modules."""
    write(
        tmp_path,
        {
            "lib/encode.c": "int x;\n",
            "quick.cpython-311-x86_64-linux-gnu.so": "",
            "pkg/__init__.py": "from .reduce import total\n",
            "pkg/src/reduce_template.c": "int y;\n",
            "pkg/reduce.abi3.so": "",
            "tests/test_quick.py": "import quick\n" + TEST,
            "tests/test_pkg.py": "import pkg\n" + TEST,
            "tests/test_other.py": "import os\n" + TEST,
        },
    )
    assert reached(tmp_path, "lib/encode.c") == [("tests/test_quick.py", 2), ("tests/test_pkg.py", 3)]
    assert {path for path, _ in reached(tmp_path, "pkg/src/reduce_template.c")} == {
        "tests/test_quick.py",
        "tests/test_pkg.py",
    }


def test_circles_and_missing_files_end(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pkg/__init__.py": "from .a import x\nfrom .b import *\n",
            "pkg/a.py": "from pkg import x\nfrom pkg.b import *\n",
            "pkg/b.py": "from pkg import x\nfrom .a import *\nfrom .gone import z\n",
            "test_p.py": "from pkg import x, y\nfrom ....far import z\n" + TEST,
        },
    )
    assert reached(tmp_path, "pkg/b.py") == [("test_p.py", 2)]
    assert reached(tmp_path, "pkg/missing.py") == []


def test_prose_that_looks_like_an_import_does_not_hide_the_real_ones() -> None:
    content = (
        b'"""\nimport things from here and there\nfrom us import\n"""\nimport real; import second\nfrom . import near\n'
    )
    assert imports_of(content) == (Import("real"), Import("", 1, (("near", "near"),)))


def test_patterns_of_every_configuration_file(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pyproject.toml": "[tool.pytest.ini_options]\npython_files = ['a_*.py']\n",
            "pytest.ini": "[pytest]\npython_files =\n    b_*.py\n    %(broken\n",
            "tox.ini": "not an ini file",
        },
    )
    patterns = python_files(tmp_path)
    assert patterns == ("test_*.py", "*_test.py", "a_*.py", "b_*.py", "%(broken")
    assert is_test_name("deep/a_x.py", patterns)
    assert not is_test_name("deep/a_x.txt", patterns)
    assert is_test_path("pkg/tests/helper.py", patterns)
    assert is_test_path("conftest.py", patterns)
    assert not is_test_path("pkg/testing.py", patterns)


@pytest.mark.parametrize(
    ("file", "settings", "text"),
    [
        ("pyproject.toml", "[tool.pytest.ini_options]\npython_functions = ['it_', 'they_']", "def it_adds(): ..."),
        ("pyproject.toml", "[tool.pytest]\npython_functions = ['it_']", "    async def it_adds(): ..."),
        ("setup.cfg", "[tool:pytest]\npython_functions = *_spec", "def adds_spec(): ..."),
        ("setup.cfg", "[pytest]\npython_classes = Describe", "class DescribeSums: ..."),
        (".pytest.ini", "[pytest]\npython_classes =\n    *Case\n    Check", "class SumsCase(Base): ..."),
        ("tox.ini", "[pytest]\ndescribe_prefixes = when", "def when_added():\n    def it_is_more(): ..."),
        ("tox.ini", "[tox]", "def describe_sums():\n    def adds(): ..."),
    ],
)
def test_names_of_tests_are_those_of_the_configuration(tmp_path: Path, file: str, settings: str, text: str) -> None:
    """python-docx's `it_opens_a_file`, graphql-core's functions within `describe_lexer`."""
    write(tmp_path, {"m.py": "", "test_m.py": "import m\n" + text.replace("    async", "class X:\n    async") + "\n"})
    assert bool(reached(tmp_path, "m.py")) == text.startswith("def describe")
    write(tmp_path, {file: settings + "\n"})
    assert reached(tmp_path, "m.py") == [("test_m.py", 1)]
    assert not Naming.of(tmp_path).are_in(b"def helper(): ...\nclass Helper(Base): ...\n# def test\n")


def test_facts_are_shared_by_equal_contents(tmp_path: Path) -> None:
    for side in ("base", "head"):
        write(tmp_path / side, {"m.py": "", "test_m.py": "import m\n" + TEST})
    assert reachable_tests(tmp_path / "base", [""], ["m.py"]) == [TestFile("test_m.py", 1)]
    assert imports_of(b"import m\n" + TEST.encode()) is imports_of(b"import m\n" + TEST.encode())


def test_the_text_of_a_test_says_what_it_is_about(tmp_path: Path) -> None:
    crowd = {f"tests/test_{number:03}.py": "from pkg import heap\n" + TEST for number in range(80)}
    write(
        tmp_path,
        {
            "pkg/__init__.py": "",
            "pkg/heap.py": "class Pile:\n    def push_down(self): ...\n",
            "pkg/all.py": "from . import heap\n",
            **crowd,
            "tests/test_zoo.py": "from pkg import all\n\ndef test_it():\n    all.heap.Pile().push_down()\n",
            "tests/test_plugin.py": "def test_it():\n    run('push_down')\n",
            "tests/heap/test_zz.py": "from pkg import all\n" + TEST,
        },
    )
    tests = reachable_tests(tmp_path, [""], ["pkg/heap.py"], 3, ["Pile.push_down"])
    assert [test.path for test in tests] == ["tests/heap/test_zz.py", "tests/test_zoo.py", "tests/test_plugin.py"]
    write(
        tmp_path, {f"tests/test_{name}.py": f"import pkg.all\nrun.{name}_task(){TEST}" for name in ("often", "rarely")}
    )
    by_callers = reachable_tests(tmp_path, [""], ["pkg/heap.py"], 4, ["Pile._down"], callers=["rarely_task", "run"])
    assert [test.path for test in by_callers[2:]] == ["tests/test_rarely.py", "tests/test_often.py"]


@pytest.mark.parametrize("name", ["tests.py", "pkg/tests/heap.py", "test.py", "heap_tests.py", "test/check_heap.py"])
def test_names_that_nose_and_unittest_find(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"pkg/__init__.py": "", "pkg/heap.py": "", name: "import pkg.heap\n" + TEST})
    assert reached(tmp_path, "pkg/heap.py") == [(name, 1)]


def test_paths_of_a_recipe_hold_tests_whatever_their_names(tmp_path: Path) -> None:
    write(tmp_path, {"pkg/__init__.py": "", "pkg/heap.py": "", "checks/heap.py": "import pkg.heap\n" + TEST})
    assert reached(tmp_path, "pkg/heap.py") == []
    for paths in (["checks"], ["checks/*.py"]):
        found = reachable_tests(tmp_path, [""], ["pkg/heap.py"], test_paths=paths)
        assert [test.path for test in found] == ["checks/heap.py"]


def test_benchmarks_among_equally_near_tests_come_first(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pkg/__init__.py": "",
            **{f"tests/test_{name}.py": "import pkg\n" + TEST for name in ("a", "b_benchmarks", "stress")},
        },
    )
    assert [path for path, _ in reached(tmp_path, "pkg/__init__.py")] == [
        "tests/test_b_benchmarks.py",
        "tests/test_a.py",
        "tests/test_stress.py",
    ]


def test_what_is_loaded_by_name_is_found_by_the_name_of_its_package(tmp_path: Path) -> None:
    tree = write(
        tmp_path,
        {
            "src/cloud/__init__.py": "import importlib\ndef start(name): importlib.import_module('cloud.' + name)\n",
            "src/cloud/s3/__init__.py": "",
            "src/cloud/s3/responses.py": "def get(): ...\n",
            "tests/test_s3/test_buckets.py": f"import cloud{TEST}",
            "tests/test_s3.py": f"import cloud{TEST}",
            "tests/test_ec2/test_machines.py": f"import cloud{TEST}",
            "src/cloud/tests/test_all.py": f"import cloud{TEST}",
        },
    )
    found = reachable_tests(tree, ["src"], ["src/cloud/s3/responses.py"], names=["get_it"])
    assert {test.path for test in found} == {"tests/test_s3.py", "tests/test_s3/test_buckets.py"}
    assert reachable_tests(tree, ["src"], ["src/cloud/other.py"], names=["get_it"]) == []


def test_of_a_module_that_nothing_imports_few_tests_of_its_package_are_tried(tmp_path: Path) -> None:
    """A plugin is found by its entry point; a script that belongs to no package has no tests."""
    files = {f"tests/test_{number}.py": f"import lint{TEST}" for number in range(FEW + 2)}
    files |= {"lint/__init__.py": "", "lint/plugins/__init__.py": "", "lint/plugins/yaml.py": "def check(): ...\n"}
    files |= {"tests/test_other.py": f"import json{TEST}", "tools/update.py": "def main(): ...\n"}
    tree = write(tmp_path, files)
    found = reachable_tests(tree, [""], ["lint/plugins/yaml.py"], 20, names=["check"])
    assert [test.path for test in found] == [f"tests/test_{number}.py" for number in range(FEW)]
    assert {test.distance for test in found} == {FAR}
    assert reachable_tests(tree, [""], ["tools/update.py"], 20, names=["main"]) == []
