"""Exact functions touched, on real commits."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_repository import Repository, only_row

from perfquarry.miners.functions import touched

PYTHON = '''\
"""Module."""
import os

LIMIT = 1


@decorator
class Shape(Base):
    """A shape."""

    sides = 0

    @property
    def area(self):
        """Area."""
        # slow
        def inner(x):
            return x
        return inner(1)

    @area.setter
    def area(self, value):
        self._area = value


async def fetch(url, retries=3):
    for n in range(retries):
        x = 1
    return x


if os.name == "nt":
    def sep():
        return 1
else:
    def sep():
        return 2
'''

CYTHON = '''\
cimport numpy as np
cdef extern from "x.h":
    int foo(int)

@cython.boundscheck(False)
cdef inline double total(double[:] x,
      int n=3) except -1:
    """Sum
at any column: def not_one():
    """
    for i in range(n):
        s += x[i]
    return s

cdef class Gen(Base):
    cdef int state
    def __init__(self, a="#):"):
        self.a = a
    cpdef bint go(self) nogil:
        return 1
'''

C = """\
#include <x.h>
/* total: def f( */
NPY_NO_EXPORT PyObject *
PyArray_New(int a,
            int b)
{
    return one(a); // {
}
#ifdef A
static int twice(void) { return 2; }
#else
static int twice(void) { return 3; }
#endif
/**begin repeat
 * #TYPE = A,B#
 */
NPY_NO_EXPORT void
@TYPE@_add(char **args)
{
    BINARY_LOOP { x(); }
}
/**end repeat**/
"""

CPP = """\
namespace np {
template <typename T> class V : public B {
  public:
    V(int a) : a_(a) {}
    int get() const { return a_; }
    int run(int x);
};
template <class T> int V<T>::run(int x) { return x; }
}
"""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "work")


def names(repository: Repository, name: str, old: str | bytes, new: str | bytes) -> set[tuple[str, str]]:
    """(name, change) of what is touched between two versions of one file."""
    repository.commit("start", {name: old, "other.py": "x = 1\n"})
    sha = repository.commit("change", {name: new, "other.py": "x = 2  # same file name, other role of the test\n"})
    change = only_row(repository.folder, sha)
    found = touched(repository.folder, change)
    assert ("other.py", "<module>", "modified") in {(item.path, item.name, item.change) for item in found}
    return {(item.name, item.change) for item in found if item.path == name}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("return x\n\n\nif", "return x + 1\n\n\nif", {("fetch", "modified")}),
        ("retries=3", "retries=4", {("fetch", "modified")}),
        ("            return x\n", "            return -x\n", {("Shape.area.inner", "modified")}),
        ("return inner(1)", "return inner(2)", {("Shape.area", "modified")}),
        ("    sides = 0", "    sides = 1", {("Shape", "modified")}),
        ("@decorator\n", "", {("Shape", "modified")}),
        ("@area.setter\n", "@area.deleter\n", {("Shape.area", "modified")}),
        ("LIMIT = 1", "LIMIT = 2", {("<module>", "modified")}),
        ("        return 2", "        return 3", {("sep", "modified")}),
        ("async def fetch", "def added():\n    pass\n\n\nasync def fetch", {("added", "added")}),
        ("fetch", "get", {("get", "added"), ("fetch", "deleted")}),
        ("        # slow\n", "        # fast\n\n", set()),
        ('"""Area."""', '"""The area."""', set()),
        ('"""Module."""\n', "", set()),
        ("retries=3", "retries = 3", set()),
    ],
)
def test_python(repository: Repository, old: str, new: str, expected: set[tuple[str, str]]) -> None:
    assert old in PYTHON
    assert names(repository, "pkg/a.py", PYTHON, PYTHON.replace(old, new)) == expected


def test_a_function_that_only_moved_is_not_touched(repository: Repository) -> None:
    start = PYTHON.index("async def fetch")
    end = PYTHON.index("if os.name")
    moved = PYTHON[:start] + PYTHON[end:] + "\n\n" + PYTHON[start:end]
    assert names(repository, "pkg/a.py", PYTHON, moved) == set()


def test_added_and_deleted_files(repository: Repository) -> None:
    repository.commit("start", {"pkg/old.py": "def a(): pass\n"})
    (repository.folder / "pkg" / "old.py").unlink()
    sha = repository.commit("change", {"pkg/new.py": "import x\ndef b(): return 11111\n"})
    found = touched(repository.folder, only_row(repository.folder, sha))
    assert {(item.path, item.name, item.change) for item in found} == {
        ("pkg/new.py", "<module>", "added"),
        ("pkg/new.py", "b", "added"),
        ("pkg/old.py", "a", "deleted"),
    }


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("    return s\n", "    return s + 1\n", {("total", "modified")}),
        ("        s += x[i]\n", "    s += x[i]\n", {("total", "modified")}),
        ("boundscheck(False)", "boundscheck(True)", {("total", "modified")}),
        ("nogil:\n        return 1", "nogil:\n        return 0", {("Gen.go", "modified")}),
        ("    cdef int state\n", "    cdef long state\n", {("Gen", "modified")}),
        ("int foo(int)", "long foo(int)", {("<module>", "modified")}),
        ("at any column", "at every column", set()),
        ("    return s\n", "    return s  # done\n\n", set()),
    ],
)
def test_cython(repository: Repository, old: str, new: str, expected: set[tuple[str, str]]) -> None:
    assert old in CYTHON
    assert names(repository, "pkg/_a.pyx", CYTHON, CYTHON.replace(old, new)) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("one(a)", "two(a)", {("PyArray_New", "modified")}),
        ("return 3", "return 4", {("twice", "modified")}),
        ("x();", "y();", {("@TYPE@_add", "modified")}),
        ("#include <x.h>", "#include <y.h>", {("<module>", "modified")}),
        ("// {", "// other", set()),
        ("            int b)", " int b)", set()),
    ],
)
def test_c(repository: Repository, old: str, new: str, expected: set[tuple[str, str]]) -> None:
    assert old in C
    assert names(repository, "pkg/src/a.c.src", C, C.replace(old, new)) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("return a_;", "return a_ + 1;", {("np::V::get", "modified")}),
        ("return x;", "return -x;", {("np::V<T>::run", "modified")}),
        ("a_(a)", "a_(0)", {("np::V::V", "modified")}),
        ("int run(int x);", "long run(int x);", {("<module>", "modified")}),
    ],
)
def test_cpp(repository: Repository, old: str, new: str, expected: set[tuple[str, str]]) -> None:
    assert old in CPP
    assert names(repository, "pkg/a.cpp", CPP, CPP.replace(old, new)) == expected


def test_python_2_is_read_by_its_indentation(repository: Repository) -> None:
    old = 'class A:\n    def f(self):\n        print "x"\n    def g(self):\n        """Doc."""\n        raise E, 1\n'
    assert names(repository, "pkg/a.py", old, old.replace('print "x"', 'print "y"')) == {("A.f", "modified")}
    assert names(repository, "pkg/b.py", old, old.replace('"""Doc."""', '"""Words."""')) == set()


@pytest.mark.parametrize(
    "broken", [b"def f(:\n", b"\0\0", b"\xff\xfe(", b"(" * 100_000, b"-" * 100_000 + b"1", b"x = '"]
)
@pytest.mark.parametrize("name", ["pkg/a.py", "pkg/a.pyx", "pkg/a.c", "pkg/a.cpp"])
def test_what_does_not_parse_is_no_error(repository: Repository, name: str, broken: bytes) -> None:
    names(repository, name, b"int f() { return 1; }\n", broken)


def test_huge_files_fall_back_to_hunk_headers(repository: Repository) -> None:
    big = "def f():\n    x = 1\n    y = 1\n    z = 1\n    return 1\n" + "# filler filler filler\n" * 200_000
    assert names(repository, "pkg/a.py", big, big.replace("return 1", "return 2")) == {("f", "modified")}
