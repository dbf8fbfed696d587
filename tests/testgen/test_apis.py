"""Public APIs that reach touched functions, in trees made by hand."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from trees import write
from two_trees import STAMP, TwoTrees, verdict

from perfquarry.data.records import Reason, TouchedFunction
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.sandbox import choose_sandbox
from perfquarry.testgen.apis import Api, apis_of, identify_apis, with_apis
from perfquarry.testgen.calls.graph import call_graph
from perfquarry.testgen.case import Case
from perfquarry.testgen.scripts import Script
from perfquarry.testgen.settings import GenerateSettings
from perfquarry.testgen.trials import Trial, rows_of

HEAPS = {
    "heaps/__init__.py": """
        from .core import Heap, push
        from ._fast import sift as sift_down
        __all__ = ["Heap", "push", "sift_down"]
        """,
    "heaps/core.py": """
        from heaps import _fast
        class _Base:
            def __init__(self, items=()):
                self.items = _fast.sift(list(items))
            def add(self, item):
                self._place(item)
            def _place(self, item):
                self.items.append(item)
            def __len__(self):
                return len(self.items)
        class Heap(_Base):
            def _place(self, item):
                push(self.items, item)
            def merged(self, other: "Heap"):
                return other.drained()
            def drained(self):
                return _fast.sift(self.items)
            __or__ = merged
        def push(items, item):
            items.append(item)
            return _fast.sift(items)
        def helper(items):
            return Heap(items)
        def isheap(thing):
            return isinstance(thing, Heap)
        """,
    "heaps/_fast.py": "def sift(items):\n    return _swap(items)\n\ndef _swap(items):\n    return items\n",
    "heaps/tests/test_core.py": "from heaps import push\n\ndef test_push():\n    push([], 1)\n",
    "docs/api.rst": """
        .. currentmodule:: heaps

        .. autoclass:: Heap
           :members:
        """,
}


def found(tree: Path, *functions: str) -> dict[str, Api]:
    touched = [
        TouchedFunction(path=path, name=name, change="modified") for path, name in (f.split("::") for f in functions)
    ]
    return {api.name: api for api in identify_apis(tree, touched)}


def distances(tree: Path, *functions: str) -> dict[str, int]:
    return {name: api.distance for name, api in found(tree, *functions).items()}


def test_a_private_function_is_reached_through_callers_methods_and_re_exports(tmp_path: Path) -> None:
    tree = write(tmp_path, HEAPS)
    assert distances(tree, "heaps/_fast.py::_swap") == {
        "heaps.sift_down": 1,
        "heaps.Heap": 2,
        "heaps.Heap.drained": 2,
        "heaps.push": 2,
        "heaps.Heap.merged": 3,
        "heaps.core.helper": 3,
        "heaps.Heap.__or__": 4,
        "heaps.Heap.add": 5,
    }


def test_the_best_comes_first_and_says_how_it_gets_there(tmp_path: Path) -> None:
    apis = list(found(write(tmp_path, HEAPS), "heaps/_fast.py::sift").values())
    assert [api.name for api in apis[:3]] == ["heaps.sift_down", "heaps.Heap.drained", "heaps.Heap"]
    assert apis[0].why == "is the changed sift" and not apis[0].documented
    assert apis[1].why == "Heap.drained -> sift" and apis[1].documented
    assert apis[2].inherited


DOCUMENTS = {
    ".. autofunction:: heaps.push": ["push"],
    ".. currentmodule:: heaps\n\n.. autosummary::\n   :toctree: api\n\n   push\n   Heap.add\n": ["push", "Heap.add"],
    ".. class:: Heap(items=(), *, size=3)\n\n   Text.\n\n   .. method:: add(item)\n": ["Heap", "Heap.add"],
    ".. automodule:: heaps.core\n   :members:\n": ["push", "Heap", "Heap.add"],
    "See :func:`~heaps.push` and :meth:`more <heaps.Heap.add>`.": ["push", "Heap.add"],
    "::: heaps.Heap": ["Heap", "Heap.add"],
    "push, Heap and add are words.": [],
}


@pytest.mark.parametrize("text", DOCUMENTS)
def test_what_documents_name(tmp_path: Path, text: str) -> None:
    files = HEAPS | {"docs/api.rst": text, "docs/other.md": ":func:`elsewhere`"}
    tree = write(tmp_path, files)
    touched = ("heaps/core.py::push", "heaps/core.py::_Base.__init__", "heaps/core.py::_Base.add")
    documented = {name for name, api in found(tree, *touched).items() if api.documented}
    assert {f"heaps.{name}" for name in ("push", "Heap", "Heap.add")} & documented == {
        f"heaps.{one}" for one in DOCUMENTS[text]
    }


def test_a_base_class_reaches_the_method_that_overrides_its_own(tmp_path: Path) -> None:
    assert distances(write(tmp_path, HEAPS), "heaps/core.py::Heap._place") == {"heaps.Heap.add": 2}


def test_inherited_methods_are_those_of_the_public_class(tmp_path: Path) -> None:
    assert distances(write(tmp_path, HEAPS), "heaps/core.py::_Base.__len__") == {"heaps.Heap.__len__": 0}


def test_an_alias_and_an_annotation_lead_to_the_method(tmp_path: Path) -> None:
    apis = distances(write(tmp_path, HEAPS), "heaps/core.py::Heap.drained")
    assert apis == {"heaps.Heap.drained": 0, "heaps.Heap.merged": 1, "heaps.Heap.__or__": 2}


def test_names_in_a_method_are_not_those_of_its_class(tmp_path: Path) -> None:
    text = """
        def work():
            return 1
        class One:
            def work(self):
                return 2
            def run(self):
                return work()
            go = work
        class Two:
            def work(self):
                return 3
            go = work
        """
    tree = write(tmp_path, {"lib.py": text})
    assert distances(tree, "lib.py::work") == {"lib.work": 0, "lib.One.run": 1}
    assert distances(tree, "lib.py::Two.work") == {"lib.Two.work": 0, "lib.Two.go": 1}


def test_trees_that_nobody_writes_are_read_to_their_end(tmp_path: Path) -> None:
    chain = "\n".join(f"name{at} = name{at + 1}" for at in range(3000))
    texts = {
        "lib.py": f"def work():\n    return name0()\n{chain}\n",
        "deep.py": f"from lib import work\n__all__ = {'+'.join(['[]'] * 3000)}\n",
    }
    tree = write(tmp_path, texts)
    os.mkfifo(tree / "pipe.py")
    (tree / "docs").symlink_to("/")
    assert distances(tree, "lib.py::work") == {"lib.work": 0}


def test_a_class_that_is_only_mentioned_is_not_called(tmp_path: Path) -> None:
    apis = distances(write(tmp_path, HEAPS), "heaps/core.py::_Base.__init__")
    assert apis == {"heaps.Heap": 0, "heaps.core.helper": 1}


def test_code_of_a_module_counts_where_no_function_is_touched(tmp_path: Path) -> None:
    tree = write(tmp_path, HEAPS)
    assert distances(tree, "heaps/_fast.py::<module>")["heaps.sift_down"] == 0
    alone = distances(tree, "heaps/_fast.py::_swap")
    assert distances(tree, "heaps/_fast.py::<module>", "heaps/_fast.py::_swap") == alone


def test_what_is_not_there_reaches_nothing(tmp_path: Path) -> None:
    tree = write(tmp_path, HEAPS)
    assert found(tree, "heaps/core.py::Heap.gone", "heaps/gone.py::f", "heaps/core.py::gone") == {}


EXPORTS = {
    "__all__ = ['work']": True,
    "__all__ = ['other']": False,
    "__all__ = []\n__all__ += inner.__all__": True,
    "__all__ = []\n__all__.extend(inner.__all__)": True,
    "__all__ = ['other'] + inner.__all__": True,
    "__all__ = ['other']\n__all__ += [name for name in dir(inner)]": True,  # nobody knows: the import shows it
    "": True,
}


@pytest.mark.parametrize("statement", EXPORTS)
def test_all_decides_what_a_package_offers(tmp_path: Path, statement: str) -> None:
    files = {
        "pkg/__init__.py": f"from pkg import _inner as inner\nfrom pkg._inner import work\n{statement}\n",
        "pkg/_inner.py": "__all__ = ['work']\ndef work():\n    pass\n",
    }
    assert ("pkg.work" in found(write(tmp_path, files), "pkg/_inner.py::work")) is EXPORTS[statement]


def test_stars_lead_through_modules_in_circles(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "from ._one import *\n",
        "pkg/_one.py": "from ._two import *\n",
        "pkg/_two.py": "from ._one import *\nfrom . import _deep\n\ndef work():\n    return _deep.inner()\n",
        "pkg/_deep.py": "def inner():\n    return 1\n",
    }
    assert distances(write(tmp_path, files), "pkg/_deep.py::inner") == {"pkg.work": 1}


def test_a_source_root_is_no_part_of_the_name(tmp_path: Path) -> None:
    tree = write(tmp_path, {"src/space/pkg/mod.py": "def work():\n    pass\n"})
    touched = [TouchedFunction(path="src/space/pkg/mod.py", name="work", change="modified")]
    assert [api.name for api in identify_apis(tree, touched, ["src"])] == ["space.pkg.mod.work"]


C_MODULE = {
    "pkg/__init__.py": "from ._native import total\nfrom . import wrap\nfrom .wrap import mean\n",
    "pkg/wrap.py": "from pkg import _native\n\ndef mean(items):\n    return _native.total(items) / len(items)\n",
    "pkg/src/sum.c": """
        static double
        add_all(const double *items, long count) /* { not a block */
        {
            if (count == 0) { return 0.0; }
            return add_all(items, count - 1);
        }

        static PyObject *
        py_total(PyObject *self, PyObject *args)
        {
            return PyFloat_FromDouble(add_all(NULL, 0));
        }

        static PyObject *
        bag_sorted(PyObject *self, PyObject *args)
        {
            add_all(NULL, 1);
        #if FAST
            if (1) {
        #else
            if (0) {
        #endif
            return NULL;
        }

        static Py_ssize_t bag_length(PyObject *self) { return add_all(NULL, 2); }

        static PySequenceMethods bag_as_sequence = { .sq_length = bag_length, };
        static PyMethodDef bag_methods[] = { {"ordered", bag_sorted, METH_NOARGS, "text }"}, {NULL} };
        static PyTypeObject Bag_Type = {
            .tp_name = "pkg.Bag", .tp_methods = bag_methods, .tp_as_sequence = &bag_as_sequence,
        };
        static PyMethodDef methods[] = { {"total", (PyCFunction)py_total, METH_VARARGS, "doc"}, {NULL} };
        static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "_native", NULL, -1, methods };
        PyMODINIT_FUNC PyInit__native(void) { return PyModule_Create(&module); }
        """,
}


def test_c_functions_reach_the_names_of_their_tables(tmp_path: Path) -> None:
    assert distances(write(tmp_path, C_MODULE), "pkg/src/sum.c::add_all") == {
        "pkg.total": 2,
        "pkg.Bag.ordered": 2,
        "pkg.Bag.__len__": 2,
        "pkg.mean": 3,
    }


def test_ufuncs_are_found_by_templates_and_their_generator(tmp_path: Path) -> None:
    files = {
        "num/__init__.py": "from .umath import *\n",
        "num/umath.py": "from ._umath import *\n",
        "num/generate.py": "defs = {\n'add':\n    Ufunc(2, 1),\n'cube': Ufunc(1, 1, 'cube_impl'),\n}\n",
        "num/src/loops.c.src": """
            /**begin repeat
             * #TYPE = FLOAT, DOUBLE#
             */
            NPY_NO_EXPORT void CURFX(@TYPE@_add)
            (char **args, void *data)
            {
                inner_@TYPE@(args);
            }
            static void inner_@TYPE@(char **args)
            {
            }
            /**end repeat**/
            static int cube_impl(void) { return 3; }
            """,
    }
    tree = write(tmp_path, files)
    assert distances(tree, "num/src/loops.c.src::CURFX") == {"num.add": 1}
    assert distances(tree, "num/src/loops.c.src::inner_@TYPE@") == {"num.add": 2}
    assert distances(tree, "num/src/loops.c.src::cube_impl") == {"num.cube": 1}


def test_cython_functions_are_public_by_def_and_reached_from_c(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "from ._speed import Counter, count\n",
        "pkg/_speed.pyx": """
            from pkg._lower cimport shared
            cdef extern from "lower.h":
                long lower_count(long *items) nogil

            cdef class Counter:
                def add(self, item):
                    self._note(item)

                cdef inline int _note(self, item) except -1:
                    '''def not_this(): lower_count()'''
                    return shared(item)

            cpdef long count(list items):
                return lower_count(NULL)
            """,
        "pkg/_lower.pyx": "cdef int shared(item):\n    return 1\n",
        "pkg/lower.c": "long lower_count(long *items)\n{\n    return 0;\n}\n",
    }
    tree = write(tmp_path, files)
    assert distances(tree, "pkg/_lower.pyx::shared") == {"pkg.Counter.add": 2}
    assert distances(tree, "pkg/lower.c::lower_count") == {"pkg.count": 1}
    assert distances(tree, "pkg/_speed.pyx::Counter._note") == {"pkg.Counter.add": 1}


BASE = """
def _fast(x):
    return x

def work(x):
    return _fast(x)

class A:
    def run(self): pass

class B(A):
    pass
"""
HEAD = (
    BASE.removesuffix("    pass\n")
    + """    def run(self): fresh(2)

def fresh(x):
    return _fast(x)
"""
)


def test_of_a_change_only_what_both_sides_have(tmp_path: Path) -> None:
    prober = Prober(choose_sandbox(), tmp_path / "scratch")
    trees = TwoTrees(tmp_path, {"lib.py": BASE}, {"lib.py": HEAD}, prober)
    touched = [
        TouchedFunction(path="lib.py", name="_fast", change="modified"),
        TouchedFunction(path="lib.py", name="B.run", change="added"),
        TouchedFunction(path="lib.py", name="fresh", change="added"),
    ]
    sides = trees.built["base"], trees.built["head"]
    case = Case(trees.change, verdict(trees.change, *touched), *sides, prober, GenerateSettings(), STAMP, {})
    assert [api.name for api in apis_of(case)] == ["lib.work", "lib.B.run"]
    rows = rows_of(case, [Trial(Script("1", "asv"), None), Trial(Script("2", "asv"), Reason.TOO_SHORT)])
    assert [row.apis for row in with_apis(case, rows)] == [["lib.work", "lib.B.run"], []]
    judged = replace(case, verdict=case.verdict.model_copy(update={"apis": ["lib.judged"]}))
    assert [row.apis for row in with_apis(judged, rows)] == [["lib.judged"], []]


def test_a_graph_is_made_once_for_equal_trees(tmp_path: Path) -> None:
    one, other = write(tmp_path / "one", HEAPS), write(tmp_path / "other", HEAPS)
    assert call_graph(one) is call_graph(other)
    (other / "heaps/_fast.py").write_text("def sift(items):\n    return items\n")
    assert call_graph(one) is not call_graph(other)
