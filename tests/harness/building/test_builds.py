from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from histories import DATE, STAMP, History, both, reasons, run

from perfquarry.data.errors import InputError
from perfquarry.data.home import Home
from perfquarry.data.records import Build, Reason
from perfquarry.harness.building.builder import Builder
from perfquarry.harness.environments.interpreters import choose, find_interpreters
from perfquarry.harness.sandbox import choose_sandbox
from perfquarry.harness.settings import BuildSettings
from perfquarry.harness.trees.checkouts import MTIME


def test_pure_python_sides_share_an_environment(history: History) -> None:
    first = history.commit({"src/lib/__init__.py": "from lib.a import f\n", "src/lib/a.py": "def f(): return 1\n"})
    second = history.commit({"src/lib/a.py": "def f(): return 2\n", "src/lib/b.py": "", "README": "x"})
    built = history.build(first, second)
    base, head = both(built)

    assert [run(side, "import lib; print(lib.f())") for side in (base, head)] == ["1", "2"]
    assert base.python == head.python and base.environment_id == head.environment_id
    assert base.source_roots == (base.tree / "src",)
    assert len(str(base.tree)) == len(str(head.tree))
    chosen = choose(DATE, None, find_interpreters())
    assert chosen
    assert {row.python for row in built.rows} == {str(chosen.version)}
    row = built.rows[1]
    assert (row.side, row.sha, row.status, row.reason, row.source_roots) == ("head", second, "kept", None, ["src"])
    assert any(line.startswith("pytest==") for line in row.requirements)
    assert any(command.startswith("uv pip install") for command in row.commands)
    # valid bytecode lies there (PEP 552: flags, time and size of the source): a read-only tree is imported warm
    (compiled,) = (base.tree / "src/lib/__pycache__").glob("a.*.pyc")
    start = 8 if chosen.minor >= (3, 7) else 4
    facts = [int.from_bytes(compiled.read_bytes()[at : at + 4], "little") for at in (start, start + 4)]
    assert facts == [MTIME, (base.tree / "src/lib/a.py").stat().st_size]
    # equal files share it, others do not
    caches = [side.tree / "src/lib/__pycache__" for side in (base, head)]
    assert [
        len({(cache / name).stat().st_ino for cache in caches})
        for name in (f"__init__.{compiled.name[2:]}", compiled.name)
    ] == [1, 2]
    assert run(head, "import lib; print(lib.f.__code__.co_filename)") == str(head.tree / "src/lib/a.py")


def test_reopening_makes_again_what_is_gone_without_building(history: History) -> None:
    first = history.commit({"lib/__init__.py": "one = 1\n"})
    second = history.commit({"lib/__init__.py": "one = 1.0\n"})
    built = history.build(first, second)
    sides = both(built)
    rows = [Build.model_validate(row.model_dump()) for row in built.rows]
    assert history.builder().reopen(rows[::-1]) == sides

    shutil.rmtree(history.home.trees / "lib")
    shutil.rmtree(history.home.environments / rows[0].environment_id)
    base, head = history.builder().reopen(rows)
    assert [run(side, "import lib; print(lib.one)") for side in (base, head)] == ["1", "1.0"]
    assert (base.tree, head.tree) == (sides[0].tree, sides[1].tree)
    with pytest.raises(InputError, match="run the build stage first"):
        history.builder().reopen(rows[:1])


@pytest.mark.parametrize(
    ("base", "head", "reason"),
    [
        ("print 'old'\n", "print('new')\n", Reason.NEEDS_PYTHON_2),
        ("'''print 'old''' \n", "a = (1\n", Reason.SYNTAX_ERROR_HEAD),
        ("print('old')\n", "def broken(:\n", Reason.SYNTAX_ERROR_HEAD),
        ("pass\n", "return 1\n", Reason.SYNTAX_ERROR_HEAD),
        ("pass\n", "raise ValueError('at import')\n", Reason.IMPORT_FAILED),
        ("import no_such_module_here\n", "pass\n", Reason.IMPORT_FAILED),
        ("import urllib2\n", "pass\n", Reason.NEEDS_PYTHON_2),
        ("text = unicode('a')\n", "pass\n", Reason.NEEDS_PYTHON_2),
        ("import os; os.abort()\n", "pass\n", Reason.IMPORT_FAILED),
    ],
)
def test_sides_that_cannot_run(history: History, base: str, head: str, reason: Reason) -> None:
    first = history.commit({"lib/__init__.py": base})
    built = history.build(first, history.commit({"lib/__init__.py": head}))
    assert reasons(built) == [reason, reason]
    assert "lib" in built.rows[0].log + built.rows[1].log


def test_for_code_of_python_2_no_environment_is_made(history: History) -> None:
    setup = {"setup.py": "from setuptools import setup\nsetup(install_requires=['no-such-distribution-here==9'])\n"}
    first = history.commit({"lib/__init__.py": "print 'old'\n", **setup})
    built = history.build(first, history.commit({"lib/__init__.py": "print 'new'\n"}))
    assert reasons(built) == [Reason.NEEDS_PYTHON_2] * 2
    assert not any(row.environment_id or "uv" in row.log for row in built.rows), built.rows


def test_files_only_one_side_has_are_parsed_there(history: History) -> None:
    first = history.commit({"lib/__init__.py": "", "lib/old.py": "print 'old'\n"})
    second = history.commit({"lib/old.py": None, "lib/new.py": "ok = 1\n"})
    assert reasons(history.build(first, second)) == [Reason.NEEDS_PYTHON_2] * 2
    third = history.commit({"lib/new.py": "ok = 2\n"})
    both(history.build(second, third))


def test_what_lies_beside_the_package_need_not_parse(history: History) -> None:
    first = history.commit({"lib/__init__.py": "a = 1\n", "drafts/ideas.py": "map(f, ...) ->\n"})
    both(history.build(first, history.commit({"lib/__init__.py": "a = 2\n", "drafts/ideas.py": "map(f, ...) =>\n"})))
    both(history.build(first, history.commit({"lib/new.py": "a = 3\n", "drafts/ideas.py": "map(f, ...) <-\n"})))
    broken = history.commit({"lib/other.py": "a = (\n", "drafts/ideas.py": None})
    assert reasons(history.build(first, broken)) == [Reason.SYNTAX_ERROR_HEAD] * 2


@pytest.mark.parametrize("wanted", ["<3", ">=3.98"])
def test_no_interpreter_in_the_range(history: History, wanted: str) -> None:
    first = history.commit({"lib/__init__.py": "", "setup.py": f"setup(python_requires={wanted!r})"})
    built = history.build(first, history.commit({"lib/__init__.py": "a = 1"}))
    assert reasons(built) == [Reason.NO_INTERPRETER] * 2
    assert wanted in built.rows[0].log and str(find_interpreters()[0].version) in built.rows[0].log


def test_missing_objects(history: History) -> None:
    first = history.commit({"lib/__init__.py": ""})
    second = history.commit({"lib/__init__.py": "lost = 1"})
    blob = history.git("rev-parse", "HEAD:lib/__init__.py")
    change = history.change(first, second)
    (history.clone / ".git/objects" / blob[:2] / blob[2:]).unlink()
    assert reasons(history.builder().build(change)) == [Reason.MISSING_OBJECTS] * 2


def test_requirements_of_both_sides_go_into_one_environment(history: History) -> None:
    first = history.commit({"lib/__init__.py": "", "setup.py": "setup(install_requires=['iniconfig'])"})
    second = history.commit({"lib/__init__.py": "import six", "setup.py": "setup(install_requires=['six'])"})
    built = history.build(first, second)
    base, head = both(built)
    assert base.environment_id == head.environment_id
    assert {"iniconfig", "six"} <= {line.partition("==")[0] for line in built.rows[0].requirements}


def test_each_side_has_its_own_environment_where_none_serves_both(history: History) -> None:
    first = history.commit({"lib/__init__.py": "", "setup.py": "setup(install_requires=['six==1.15.0'])"})
    second = history.commit({"lib/__init__.py": "a = 1", "setup.py": "setup(install_requires=['six==1.16.0'])"})
    base, head = both(history.build(first, second))
    code = "import six; print(six.__version__)"
    assert [run(side, code) for side in (base, head)] == ["1.15.0", "1.16.0"]


def test_dependencies_that_do_not_exist(history: History) -> None:
    first = history.commit({"lib/__init__.py": "", "setup.py": "setup(install_requires=['six>1000'])"})
    built = history.build(first, history.commit({"lib/__init__.py": "a = 1"}))
    assert reasons(built) == [Reason.RESOLUTION_FAILED] * 2
    assert "six" in built.rows[1].log


def test_what_only_tests_want_is_given_up(history: History) -> None:
    history.registered = {"test_requirements": ["six>1000"]}
    first = history.commit({"lib/__init__.py": ""})
    built = history.build(first, history.commit({"lib/__init__.py": "a = 1"}))
    both(built)
    assert not any(line.startswith("six==") for line in built.rows[0].requirements)


EXTENSION = """
#include <Python.h>
static PyObject *answer(PyObject *self, PyObject *none) { return PyLong_FromLong(ANSWER); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_fast", "", -1, methods};
PyMODINIT_FUNC PyInit__fast(void) { return PyModule_Create(&module); }
"""
SETUP = """
from setuptools import Extension, setup
open("built.txt", "w").write("by setup.py")
setup(name="lib", packages=["lib"], ext_modules=[Extension("lib._fast", ["lib/fast.c"])])
"""


def can_compile() -> bool:
    chosen = choose(DATE, None, find_interpreters())
    code = "import sysconfig; print(sysconfig.get_path('include'))"
    include = subprocess.check_output([chosen.path, "-c", code], text=True).strip() if chosen else ""
    return bool(shutil.which("cc")) and (Path(include) / "Python.h").exists()


needs_compiler = pytest.mark.skipif(not can_compile(), reason="no C compiler or no headers of Python")


@needs_compiler
def test_a_native_build_serves_all_that_differ_only_in_python(history: History) -> None:
    before = set(history.home.artifacts.glob("*"))
    start = {"lib/fast.c": EXTENSION.replace("ANSWER", "42"), "setup.py": SETUP}
    first = history.commit({**start, "lib/__init__.py": "from lib._fast import answer\nside = 'base'\n"})
    second = history.commit({"lib/__init__.py": "from lib._fast import answer\nside = 'head'\n"})
    third = history.commit({"lib/fast.c": EXTENSION.replace("ANSWER", "43")})

    built = history.build(first, second)
    base, head = both(built)
    code = "import lib; print(lib.side, lib.answer())"
    assert [run(side, code) for side in (base, head)] == ["base 42", "head 42"]
    assert built.rows[0].build_id == built.rows[1].build_id
    assert set(history.home.artifacts.glob("*")) - before == {history.home.artifacts / built.rows[0].build_id}
    assert len(str(base.tree)) == len(str(head.tree))
    assert (head.tree / "built.txt").read_text() == "by setup.py"
    assert not (head.tree / "build").exists()
    assert "python setup.py build_ext --inplace" in built.rows[0].commands
    assert sorted(p.name for p in (history.home.trees / "lib" / first).iterdir()) == ["lib", "setup.py"]

    again = history.build(second, third)
    assert [run(side, code) for side in both(again)] == ["head 42", "head 43"]
    assert len(set(history.home.artifacts.glob("*")) - before) == 2

    shutil.rmtree(history.home.trees / "lib")
    assert history.builder().reopen(built.rows) == (base, head)
    assert run(base, code) == "base 42"


@needs_compiler
def test_a_failing_native_build(history: History) -> None:
    first = history.commit({"lib/__init__.py": "", "lib/fast.c": "#error broken on purpose\n", "setup.py": SETUP})
    built = history.build(first, history.commit({"lib/__init__.py": "a = 1"}))
    assert reasons(built) == [Reason.BUILD_FAILED] * 2
    assert "broken on purpose" in built.rows[0].log


def test_a_build_is_given_the_version_it_would_ask_git_for(history: History) -> None:
    history.registered = {"build": ['basename "$PWD" > lib/made.txt']}
    first = history.commit({"lib/__init__.py": "", "setup.cfg": "[versioneer]\nparentdir_prefix = lib-\n"})
    second = history.commit({"lib/__init__.py": "a = 1\n"})
    base, _ = both(history.build(first, second))
    assert (base.tree / "lib/made.txt").read_text() == "lib-0.0.0\n", "no tag"
    plain = history.builder()
    versioned = Builder(
        Home(history.home.root.with_name("other")), history.clone, plain.repository, choose_sandbox(),
        BuildSettings(), STAMP, version="1.23.0.dev0",
    )  # fmt: skip
    rows = history.build(first, second).rows
    base, _ = versioned.reopen(rows)
    assert (base.tree / "lib/made.txt").read_text() == "lib-1.23.0.dev0\n"


def test_commands_of_the_registry_are_run_and_limited(history: History) -> None:
    history.registered = {"build": ["echo '# made' > lib/_version.py", "python -c 'import lib._version'"]}
    first = history.commit({"lib/__init__.py": "import lib._version\n"})
    second = history.commit({"lib/__init__.py": "import lib._version\na = 1\n"})
    base, head = both(history.build(first, second))
    assert (base.tree / "lib/_version.py").read_text() == (head.tree / "lib/_version.py").read_text() == "# made\n"

    history.registered = {"build": ["sleep 60"]}
    builder = history.builder()
    limited = Builder(
        history.home, history.clone, builder.repository, choose_sandbox(), BuildSettings(timeout=2.0), STAMP
    )
    limited._environments = builder._environments
    assert reasons(limited.build(history.change(first, second))) == [Reason.BUILD_TIMEOUT] * 2


def test_a_package_from_elsewhere_is_not_the_trees(history: History) -> None:
    history.registered = {"packages": ["iniconfig"]}
    first = history.commit({"lib/__init__.py": ""})
    built = history.build(first, history.commit({"lib/__init__.py": "a = 1"}))
    assert reasons(built) == [Reason.IMPORT_FAILED] * 2
    assert "not from the tree" in built.rows[0].log


def test_a_name_of_the_past_that_refuses_to_be_imported_is_no_reason(history: History) -> None:
    history.registered = {"packages": ["lib", "past"]}
    refusing = {"past.py": "raise ImportError('lib is its name now')  # 1\n"}
    first = history.commit({"lib/__init__.py": "", **refusing})
    both(history.build(first, history.commit({"lib/__init__.py": "a = 1", "past.py": refusing["past.py"] + "#\n"})))
    failing = {"past.py": "import no_such_module_here\n"}
    second = history.commit(failing)
    built = history.build(second, history.commit({"lib/__init__.py": "a = 2", "past.py": failing["past.py"] + "#\n"}))
    assert reasons(built) == [Reason.IMPORT_FAILED] * 2


def test_a_package_that_asks_for_settings_of_django_is_there(history: History) -> None:
    """django-filter's modules read the settings as they are imported, which only its tests have."""
    asks = "from django.core.exceptions import ImproperlyConfigured\nraise ImproperlyConfigured('no settings')\n"
    history.registered = {"packages": ["lib"]}
    django = {"django/core/exceptions.py": "class ImproperlyConfigured(Exception):\n    pass\n"}
    first = history.commit({"lib/__init__.py": asks, **django})
    both(history.build(first, history.commit({"lib/__init__.py": asks + "# faster\n"})))
