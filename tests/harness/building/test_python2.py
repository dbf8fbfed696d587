"""Code of Python 2, by what real interpreters say of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perfquarry.harness.building.checks import _PARSE
from perfquarry.harness.building.python2 import does_not_parse_since, fails_at_import_since, made_for_2to3
from perfquarry.harness.environments.interpreters import Interpreter, find_interpreters

OLD = (
    "raise exc_info[0], exc_info[1], exc_info[2]", "raise sys.exc_info()[0], 'text'",
    'print "a"', "print a, b", "if a: print a", 'exec "a = 1" in names', "raise Error, 'text'",
    "try:\n    a\nexcept Error, error:\n    pass", "try:\n    a\nexcept (One, Other), error:\n    pass",
    "mode = 0777", "big = 10L", "a = 0xffL", "name = ur'a'", "text = `a`", "a <> b", "def f(a, (b, c)):\n    pass",
    "walk(lambda (k, v): (f(k), v), pairs)", "f(lambda a, (b, c): a)", "key = lambda(k, v): k",
)  # fmt: skip
NEW = (
    "def f(:", "a = (1", "return = 2", "print('a'", "for a in", "x = 1 +", "class A\n    pass", "'''print 'a'",
    "yield a b", "except Error:", "async def f():\n    a b", "a = 0.5.5", "f'{a'", "call('`a` <> 0777 10L' b c)",
    "a b  # print 'x', `y`, 0777", "def f(a, b=(1, 2):\n    pass",
    "f(lambda a, b=(1, 2: a)", "f(lambda: (a b))", "f(lambda a: (a b))",
)  # fmt: skip
PYTHONS = find_interpreters()
IDS = [str(one.version) for one in PYTHONS]


@pytest.mark.parametrize("python", PYTHONS, ids=IDS)
def test_what_does_not_compile_is_told_apart(python: Interpreter, tmp_path: Path) -> None:
    for number, text in enumerate((*OLD, *NEW)):
        (tmp_path / f"module_{number}.py").write_text(text + "\n")
        argv = [str(python.path), "-I", "-S", "-c", _PARSE, f"module_{number}.py"]
        said = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert said.returncode == 1, text
        assert does_not_parse_since(said.stdout) == (text in OLD), said.stdout


IMPORTS = {
    "import urllib2": True, "from rfc822 import formatdate": True,
    "from StringIO import StringIO": True, "from itertools import izip": True,
    "a = basestring": True, "{}.iteritems()": True, "import sys; sys.maxint": True, "from beside import *": True,
    "import sys; print >>sys.stderr, 1": True, "import folder": True,
    "import inner_old": True, "import no_such_module": False, "a = no_such_name": False,
    "{}.no_such_method()": False, "raise ValueError(\"name 'x' of unicode\")": False, "import outside": False,
    "from __config__ import show": True, "from fast import speed": True,
    "{}.keys() + [1]": True, "[1] + {}.keys()": True, "{}.items()[0]": True, "map(str, []).sort()": True,
    "from io import read": True, "from os import no_such_name": False,
    "len(filter(None, []))": True, "zip([], [])[0] = 1": True, "[1] + (1,)": False, "(1)[0]": False,
    "from .version import version": False,
}  # fmt: skip


@pytest.mark.parametrize(("statement", "old"), IMPORTS.items())
def test_what_fails_at_import_is_told_apart(statement: str, old: bool, tmp_path: Path) -> None:
    package, site = tmp_path / "tree" / "lib", tmp_path / "site"
    for folder in (package / "folder", site):
        folder.mkdir(parents=True)
    (package / "__init__.py").write_text(f"\n{statement}\n")
    for name in ("beside", "lib"):
        (package / f"{name}.py").write_text("")
    (package / "io.py").write_text("def read(): pass\n")
    (package / "fast.pyx").write_text("")
    (package / "folder" / "__init__.py").write_text("")
    (package.parent / "inner_old.py").write_text("def f():\n    print 'old'\n")
    (site / "outside.py").write_text("import urllib2\n")
    code = f"import sys; sys.path[:0] = [{str(package.parent)!r}, {str(site)!r}]; import lib"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert fails_at_import_since(said.stderr, package.parent) == old, said.stderr


@pytest.mark.parametrize(
    ("setup", "old", "said"),
    [
        ("from lib2to3.main import main", 3, "3 of 10 files"),
        ("import do2to3", 2, "2 of 10 files"),
        ("setup(use_2to3=True)", 1, ""),
        ("setup(name='lib')", 3, ""),
        (None, 3, ""),
    ],
)
def test_a_package_that_has_to_be_converted_is_known(setup: str | None, old: int, said: str, tmp_path: Path) -> None:
    (tmp_path / "src" / "lib").mkdir(parents=True)
    for number in range(10):
        (tmp_path / "src" / "lib" / f"m{number}.py").write_text("print 1\n" if number < old else "print(1)\n")
    if setup:
        (tmp_path / "setup.py").write_text(setup)
    found = made_for_2to3(tmp_path, ["src"], ["lib", "lib.inner"])
    assert said in found and bool(found) == bool(said)
