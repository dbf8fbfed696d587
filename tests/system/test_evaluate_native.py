"""`perfquarry evaluate` where the change is in C: what solvers write is built as the base is, and graded."""

from __future__ import annotations

import difflib
import json
import platform
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from perfquarry.curation.evaluation.report import read_grades
from perfquarry.data.records import Grade, Task, workload_id_of
from perfquarry.data.records.task import TaskWorkload
from perfquarry.data.schema import to_table
from tests.harness.building.test_native import needs_compiler
from tests.miners.git_repository import Repository
from tests.outside_tmp import outside_tmp
from tests.six_functions import REST

pytestmark = [
    needs_compiler,
    pytest.mark.skipif(
        shutil.which("bwrap") is None,
        reason="bubblewrap is not installed: nothing can be graded (apt-get install bubblewrap)",
    ),
]
SETUP = """
from setuptools import Extension, setup
about = {}
exec(open("lib/version.py").read(), about)
setup(name="lib", version=about["version"], packages=["lib"], ext_modules=[Extension("lib._pairs", ["lib/pairs.c"])])
"""
VERSION = 'version = "1.0"\n'
PAIRS = """
#include <Python.h>
/* How many pairs of numbers are equal. */
static PyObject *pairs(PyObject *self, PyObject *values) {
    Py_ssize_t n = PyList_Size(values), i, j;
    long found = 0;
    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++)
            if (PyLong_AsLong(PyList_GetItem(values, i)) == PyLong_AsLong(PyList_GetItem(values, j)))
                found += 1;
    return PyLong_FromLong((found - n) / 2);
}
static PyMethodDef methods[] = {{"pairs", pairs, METH_O, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_pairs", "", -1, methods};
PyMODINIT_FUNC PyInit__pairs(void) { return PyModule_Create(&module); }
"""
HALF = PAIRS.replace("j = 0; j < n", "j = i + 1; j < n").replace("(found - n) / 2", "found")
OTHER = PAIRS.replace("j = 0; j < n", "j = 0; j < i").replace("(found - n) / 2", "found")
MEMO = PAIRS.replace("long found = 0;", "static long found = 0; if (found) return PyLong_FromLong((found - n) / 2);")
WRONG = HALF.replace("PyLong_FromLong(found)", "PyLong_FromLong(found + 1)")
ONE_MORE = PAIRS.replace("(found - n) / 2", "(found - n) / 2 + 1")
SCRIPT = f"""
import random
from lib import pairs
{REST}

def setup():
    drawn = random.Random(7)
    return [drawn.randrange(400) for _ in range(1500)]


def experiment(values):
    return pairs(values)
"""
THIEF = """
import os
version = "1.0"
home = os.getcwd().partition(".pq-home-")
home = home[0] + home[1] + home[2].split(os.sep)[0]
for place, _, names in os.walk(home):
    for name in names:
        path = os.path.join(place, name)
        if name.endswith((".c", ".patch", ".jsonl")) and os.access(path, os.R_OK) and os.path.isfile(path):
            with open(path, errors="replace") as file:
                text = file.read()
            if "j = i + 1; j < n" in text or "j = 0; j < i" in text:
                raise SystemExit("found " + path)
"""
WHOLE = "[measure]\npairs = 6\nmax_pairs = 24\nturn_seconds = 0.05\nmost_turns = 24\n"


def _patch(before: str, after: str, path: str = "lib/pairs.c") -> str:
    lines = [text.splitlines(keepends=True) for text in (before, after)]
    return "".join(difflib.unified_diff(*lines, f"a/{path}", f"b/{path}"))


@pytest.fixture
def home() -> Iterator[Path]:
    """Not below /tmp, of which sandboxes have their own: what is hidden here is hidden because it is private."""
    with tempfile.TemporaryDirectory(dir=outside_tmp(), prefix=".pq-home-") as folder:
        yield Path(folder)


class Library:
    """A repository with a module in C, of which a change does half of the work, and its task."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clone = Repository(folder / "lib")
        files: dict[str, str | bytes] = {
            "pyproject.toml": 'build-system.requires = ["setuptools"]\n',
            "setup.py": SETUP,
            "lib/__init__.py": "from lib._pairs import pairs\n",
            "lib/pairs.c": PAIRS,
            "lib/version.py": VERSION,
            "tests/test_pairs.py": "from lib import pairs\n\ndef test_pairs():\n    assert pairs([1, 2, 1, 1]) == 3\n",
        }
        self.base = self.clone.commit("Base", files)
        head = self.clone.commit("Half of the pairs", {"lib/pairs.c": HALF})
        pq.write_table(to_table([_task(self.base, head)], Task), folder / "tasks.parquet")

    def with_binary(self) -> str:
        """A patch that brings along a compiled module."""
        library = f"lib/_other{sysconfig.get_config_var('EXT_SUFFIX')}"
        self.clone.git("checkout", "-q", "-b", "library", self.base)
        self.clone.commit("A compiled module that was brought along", {library: b"no library\0"})
        return self.clone.git("diff", "--binary", self.base, "HEAD").decode()

    def with_link(self) -> str:
        """A patch that makes the package a link."""
        self.clone.git("checkout", "-q", "-b", "linked", self.base)
        (self.clone.folder / "lib" / "pairs.c").unlink()
        (self.clone.folder / "lib").rename(self.clone.folder / "elsewhere")
        (self.clone.folder / "lib").symlink_to("/etc")
        self.clone.commit("The package is a link that leads out")
        return self.clone.git("diff", "--binary", self.base, "HEAD").decode()

    def graded(self, patches: dict[str, str], home: Path, forked: list[str]) -> dict[str, Grade]:
        """The grades of `perfquarry evaluate` by model."""
        predictions = self.folder / "predictions.jsonl"
        rows = [
            {"instance_id": "lib-1", "model_name_or_path": name, "model_patch": text} for name, text in patches.items()
        ]
        predictions.write_text("\n".join(map(json.dumps, rows)))
        settings = self.folder / "settings.toml"
        settings.write_text(WHOLE)
        words = ["evaluate", str(predictions), "--dataset", str(self.folder / "tasks.parquet")]
        words += ["--source", str(self.clone.folder), "--to", str(self.folder / "report"), "--settings", str(settings)]
        done = subprocess.run([*forked, *words, "--home", str(home)], capture_output=True, text=True, check=False)
        found = {row.model: row for row in read_grades(self.folder / "report")}
        assert found.keys() == patches.keys(), done.stderr
        compiled = [path for path in home.rglob("*_pairs*.so") if "scratch" in path.parts]
        assert compiled == [], "what is built of a patch goes with its grading"
        return found


def test_patches_in_c_are_built_and_tested(tmp_path: Path, home: Path, forked: list[str]) -> None:
    """Those that need no timing."""
    library = Library(tmp_path)
    patches = {
        "link": library.with_link(),
        "wrong": _patch(PAIRS, WRONG),
        "breaks": _patch(PAIRS, PAIRS.replace("long found = 0;", "long found")),
        "library": library.with_binary(),
        "thief": _patch(PAIRS, ONE_MORE) + _patch(VERSION, THIEF, "lib/version.py"),
    }
    found = library.graded(patches, home, forked)
    said = {name: (row.status, row.reason, row.why[:200]) for name, row in found.items()}
    assert found["breaks"].reason == "build_failed" and found["breaks"].applied, said
    assert "error: expected" in found["breaks"].why, said
    assert found["wrong"].reason == "tests_fail", said
    assert found["library"].reason == "nothing_changed", said
    assert found["link"].status == "rejected" and not list(Path("/etc").glob("_pairs*")), said
    assert found["thief"].reason == "tests_fail", said  # what it looked for, it has not found


@pytest.mark.slow
def test_patches_in_c_are_timed(tmp_path: Path, home: Path, forked: list[str]) -> None:
    found = Library(tmp_path).graded({"same in C": _patch(PAIRS, OTHER), "memo": _patch(PAIRS, MEMO)}, home, forked)
    assert found["same in C"].status == "kept", found["same in C"].why
    assert found["memo"].status == "rejected", found["memo"].why


def _task(base: str, head: str) -> Task:
    figures = {"base_seconds": 0.01, "head_seconds": 0.005, "speedup": 2.0, "low": 1.9, "high": 2.1, "delta": 0.5}
    figures |= {"p_value": 0.001, "q_value": 0.001}
    script = TaskWorkload(
        workload_id=workload_id_of("c", "generated", SCRIPT), source="generated", code=SCRIPT, role="hidden", **figures
    )
    test = TaskWorkload(
        workload_id=workload_id_of("c", "unit-test", "tests/test_pairs.py::test_pairs"),
        source="unit-test",
        code="tests/test_pairs.py::test_pairs",
        **figures,
    )
    packages = ("pytest", "pluggy", "iniconfig", "packaging", "pygments", "setuptools")
    return Task(
        repo="lib",
        stage_version="0",
        config_hash="0",
        task_id="lib-1",
        change_id="c",
        codebase="lib",
        base_sha=base,
        head_sha=head,
        created_at_commit=datetime(2024, 2, 15, tzinfo=UTC),
        title="Half of the pairs",
        message="",
        patch=_patch(PAIRS, HALF),
        python=platform.python_version(),
        requirements=[f"{name}=={version(name)}" for name in packages],
        oracle_targets=["lib/pairs.c::pairs"],
        workloads=[script, test],
    )
