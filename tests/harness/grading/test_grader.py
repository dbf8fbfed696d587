"""The grader's own parts: its statistics, what it takes of a solver's folder, what it calls suspicious."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from perfquarry.curation.intervals import hodges_lehmann, shift_interval
from perfquarry.harness.grading.task_folder import built_otherwise, pack_expert, pack_repository, settings_of_tests
from perfquarry.miners.roles import TESTS


def test_its_statistics_are_those_of_the_pipeline(part: Any) -> None:
    figures, rng = part("figures"), np.random.default_rng(3)
    for n in (6, 7, 20, 31, 60):
        logs = rng.normal(0.3, 0.2, n)
        low, middle, high = figures.paired(logs.tolist())
        assert (low, high) == pytest.approx(shift_interval(logs))
        assert middle == pytest.approx(hodges_lehmann(logs))
    assert figures.paired([0.1] * 5) is None
    assert math.exp(figures.log_harmonic([2.0, 4.0], [1.0, 1.0])) == pytest.approx(2 / (1 / 2 + 1 / 4))


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ("import sys\nx = sys.modules\n", ["sys.modules"]),
        ("from sys import modules as m\n", ["sys.modules"]),
        ("import time as t\nt.perf_counter = None\n", ["assignment to time.perf_counter"]),
        ("import time\nsetattr(time, 'perf_counter', None)\n", ["setattr on time"]),
        ("import sys\nframe = sys._getframe()\n", ["_getframe"]),
        ("import ctypes\n", ["ctypes"]),
        ("name = '/proc/self/cmdline'\n", ["'/proc/'"]),
        ("import os\ngetattr(os, 'fork')\n", ["getattr of os"]),
        ("exec('1')\n", ["exec"]),
        ("def f(error):\n    return error.__traceback__.tb_frame.f_back\n", ["f_back", "tb_frame"]),
        ("import os\nos.execv('a', [])\n", ["execv"]),
        ("import time\nbegin = time.perf_counter()\n", []),
        ('"""Reads /proc/stat and sys.modules."""\n', []),
        ("import os\nos.environ['A'] = 'b'\nsystem = os.name\n", []),
        ("def broken(:\n", ["it does not parse"]),
        ("x = " + "(" * 500 + ")" * 500, ["it does not parse"]),
        ("import gc\nfound = gc.get_objects()\n", ["gc", "get_objects"]),
    ],
)
def test_reasons_to_look(part: Any, after: str, said: list[str]) -> None:
    guard = part("guard")
    assert guard.reasons("a.py", b"", after.encode()) == said
    assert guard.reasons("a.py", after.encode(), after.encode()) == []


def test_a_changed_file_that_is_no_source_is_a_reason_to_look(part: Any) -> None:
    assert part("guard").reasons("pack/table.json", b"{}", b"import sys") == ["it is no Python source"]


def test_only_what_may_be_changed_is_taken(part: Any, tmp_path: Path) -> None:
    candidate = part("candidate")
    base, testbed, cand = (tmp_path / name for name in ("base", "testbed", "cand"))
    for folder in (base, testbed, cand):
        for path in ("pack/code.py", "pack/old.py", "tests/test_code.py", "setup.cfg"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text("same\n")
    for path in (
        "pack/code.py", "pack/new.py", "tests/test_code.py", "tests/helper.py", "setup.cfg", "conftest.py", "random.py",
        "sitecustomize.py", "quick.pth", "pack/fast.so", "pack/__pycache__/code.pyc", "pytest.py", "mine.py",
        "pytest.toml", ".pytest.toml", "Tox.ini", "quick-1.dist-info/METADATA", "quick-1.dist-info/entry_points.txt",
        "pack.egg-info/entry_points.txt", "pack.egg-info/PKG-INFO", "EGG-INFO/requires.txt", "pack/fast.so.1",
        "pack/other.egg-link", "pack/table.json",
    ):  # fmt: skip
        (testbed / path).parent.mkdir(parents=True, exist_ok=True)
        (testbed / path).write_text("other\n")
    (testbed / "pack" / "old.py").unlink()
    (testbed / "pack" / "link.py").symlink_to("/etc/passwd")
    (testbed / "linked").symlink_to("/etc")
    os.mkfifo(testbed / "pack" / "pipe.py")
    site = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    (site / "pytest").mkdir(parents=True)
    task = {"testbed": str(testbed), "protected": TESTS.pattern, "python": str(tmp_path / "env" / "bin" / "python")}
    changed, left_out = candidate.apply_changes({**task, "source_roots": ["."]}, str(base), str(cand))
    assert changed == ["mine.py", "pack/code.py", "pack/new.py", "pack/old.py", "pack/table.json"]
    assert set(left_out) == {
        "tests/test_code.py", "tests/helper.py", "setup.cfg", "conftest.py", "random.py", "sitecustomize.py",
        "quick.pth", "pack/fast.so", "pytest.py", "pytest.toml", ".pytest.toml", "Tox.ini",
        "quick-1.dist-info/METADATA", "quick-1.dist-info/entry_points.txt", "pack.egg-info/entry_points.txt",
        "pack.egg-info/PKG-INFO", "EGG-INFO/requires.txt", "pack/fast.so.1", "pack/other.egg-link",
    }  # fmt: skip
    files = {str(path.relative_to(cand)) for path in cand.rglob("*") if path.is_file()}
    assert files == {"mine.py", "pack/code.py", "pack/new.py", "pack/table.json", "tests/test_code.py", "setup.cfg"}
    assert (cand / "pack/code.py").read_text() == "other\n" and (cand / "setup.cfg").read_text() == "same\n"


def test_the_settings_of_djangos_tests_stay_the_bases(part: Any, tmp_path: Path) -> None:
    """Else tests would be faster without faster code: with a hash of passwords that costs nothing, say."""
    base, testbed, cand = (tmp_path / name for name in ("base", "testbed", "cand"))
    for folder in (base, testbed, cand):
        (folder / "sample").mkdir(parents=True)
        (folder / "sample" / "settings.py").write_text("HASHERS = []\n")
        (folder / "runtests.py").write_text("os.environ['DJANGO_SETTINGS_MODULE'] = 'sample.settings'\n")
    kept = ("sample/settings.py", "runtests.py", "manage.py", "pack/tests/runtests.sh", "Makefile")
    for path in ("sample/views.py", *kept):
        (testbed / path).parent.mkdir(parents=True, exist_ok=True)
        (testbed / path).write_text("DJANGO_SETTINGS_MODULE=fast\n")
    protected = f"(?:{TESTS.pattern})|{settings_of_tests(base)}"
    task = {"testbed": str(testbed), "protected": protected, "python": sys.executable, "source_roots": ["."]}
    changed, left_out = part("candidate").apply_changes(task, str(base), str(cand))
    assert changed == ["sample/views.py"]
    assert set(left_out) == set(kept)
    assert not re.search(settings_of_tests(tmp_path / "nowhere"), "settings.py")


def test_what_lies_beside_the_package_is_not_taken(part: Any, tmp_path: Path) -> None:
    base, testbed, cand = (tmp_path / name for name in ("base", "testbed", "cand"))
    for folder in (base, testbed, cand):
        (folder / "src" / "pack").mkdir(parents=True)
    for path in ("src/pack/code.py", "pytest_quick.py", "pack/code.py"):
        (testbed / path).parent.mkdir(exist_ok=True)
        (testbed / path).write_text("new\n")
    task = {"testbed": str(testbed), "protected": TESTS.pattern, "python": sys.executable, "source_roots": ["src"]}
    changed, left_out = part("candidate").apply_changes(task, str(base), str(cand))
    assert changed == ["src/pack/code.py"]
    assert set(left_out.values()) == {"it is no part of the package"}


def test_nothing_is_written_through_a_link_of_the_base(part: Any, tmp_path: Path) -> None:
    base, testbed, cand, outside = (tmp_path / name for name in ("base", "testbed", "cand", "outside"))
    for folder in (base, testbed, cand, outside):
        folder.mkdir()
    for folder in (base, cand):
        (folder / "linked").symlink_to(outside)
    (testbed / "linked" / "deep").mkdir(parents=True)
    (testbed / "linked" / "deep" / "code.py").write_text("new\n")
    task = {"testbed": str(testbed), "protected": TESTS.pattern, "python": sys.executable, "source_roots": ["."]}
    changed, left_out = part("candidate").apply_changes(task, str(base), str(cand))
    assert changed == [] and "a link leads there" in left_out["linked/deep/code.py"]
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("link", ["out/results", "out/results/script", "out/results/script/_result.json"])
def test_no_result_is_read_through_a_link(part: Any, tmp_path: Path, link: str) -> None:
    stored, secret = part("stored"), tmp_path / "secret"
    (secret / "results" / "script").mkdir(parents=True)
    (secret / "results" / "script" / "_result.json").write_text("[1]")
    (tmp_path / link).parent.mkdir(parents=True)
    (tmp_path / link).symlink_to(secret / Path(link).relative_to("out"))
    with pytest.raises(OSError):
        stored.take_stored(str(tmp_path), ("out", "results", "script"))


def test_a_result_is_read_once(part: Any, tmp_path: Path) -> None:
    stored, place = part("stored"), tmp_path / "out" / "results" / "script"
    place.mkdir(parents=True)
    (place / "_result.json").write_text("[1]")
    below = ("out", "results", "script")
    assert stored.take_stored(str(tmp_path), below) == {"_result.json": b"[1]"}
    assert stored.take_stored(str(tmp_path), below) == {}
    os.mkfifo(place / "_result.json")
    with pytest.raises(ValueError):
        stored.take_stored(str(tmp_path), below)


def test_without_root_or_a_sandbox_nobody_is_graded(part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    launch, users = part("launch"), part("users")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(users.Trouble, match="must be root"):
        launch.Launcher({"python": sys.executable}, "/nonexistent")


@pytest.mark.parametrize("script", [True, False])
def test_named_tests_that_pass_nowhere_decide_nothing_where_scripts_do(part: Any, script: bool) -> None:
    """Tests of nose, or without a package that they need: chosen by their names, they fail on the base already."""
    grade = part("grade")
    facts: dict[str, Any] = {}
    workload = {"node": "w", "script": script, "hidden": False}
    grading = grade.Grading({"work": "", "tests": ["tests/test_x.py"], "workloads": [workload]}, "", facts)

    class NoTwins:
        nodes: ClassVar[dict[str, str]] = {}

    class AllFail:
        def run(self, *request: object) -> Any:
            return SimpleNamespace(why="", items={"tests/test_x.py::test_a": {"outcome": "failed"}})

    grading._twins, grading._launcher = NoTwins(), AllFail()
    if script:
        assert grading._correctness() is None and facts["tests"] == 0
    else:
        with pytest.raises(grade.Trouble, match="no test passes"):
            grading._correctness()


@pytest.mark.parametrize("others", [True, False], ids=["beside another", "alone"])
def test_a_test_that_does_not_run_on_the_experts_side_is_not_timed(part: Any, others: bool) -> None:
    """The base's test imports what the expert has removed: that is nobody's failure, the expert's least of all."""
    grade = part("grade")
    facts: dict[str, Any] = {}
    nodes = ["t.py::lost", *(["t.py::kept"] if others else [])]
    workloads = [{"node": node, "script": False, "hidden": False} for node in nodes]
    grading = grade.Grading({"work": "", "tests": ["t.py"], "workloads": workloads}, "", facts)

    class Sides:
        def run(self, side: str, request: object) -> Any:
            found = {"t.py::kept", "t.py::other"} | ({"t.py::lost"} if side == "base" else set())
            return SimpleNamespace(why="", items={node: {"outcome": "passed"} for node in found})

    grading._twins, grading._launcher = SimpleNamespace(nodes={}), Sides()
    if others:
        assert grading._correctness() is None and facts["not_timed"] == ["t.py::lost"]
        assert [one["node"] for one in grading._task["workloads"]] == ["t.py::kept"]
    else:
        with pytest.raises(grade.Trouble, match="none of the timed tests"):
            grading._correctness()


@pytest.mark.parametrize("script", [True, False])
def test_tests_that_never_start_on_our_own_sides_decide_nothing_where_scripts_do(part: Any, script: bool) -> None:
    """A package that pytest imports, at a commit that this pytest does not work with: more-itertools, attrs."""
    grade = part("grade")
    facts: dict[str, Any] = {}
    workload = {"node": "w", "script": script, "hidden": False}
    grading = grade.Grading({"work": "", "tests": ["tests/test_x.py"], "workloads": [workload]}, "", facts)
    asked: list[str] = []

    class NoPytest:
        def run(self, side: str, request: object) -> Any:
            asked.append(side)
            return SimpleNamespace(why="ended early: ImportError", items={})

    grading._twins, grading._launcher = SimpleNamespace(nodes={}), NoPytest()
    if script:
        assert grading._correctness() is None
        assert asked == ["base", "base", "gold", "gold"]
        assert facts["tests_do_not_run"].keys() == {"base", "gold"}
    else:
        with pytest.raises(grade.Trouble, match="ImportError"):
            grading._correctness()


def test_the_packed_repository_has_one_commit_and_nothing_else(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "pack" / "__pycache__").mkdir(parents=True)
    (tree / "pack" / "code.py").write_text("x = 1\n")
    (tree / "pack" / "__pycache__" / "code.pyc").write_bytes(b"old")
    (tree / ".gitignore").write_text("*.so\n")
    (tree / "pack" / "built.so").write_bytes(b"built")
    moment = datetime(2024, 2, 15, tzinfo=UTC)
    pack_repository(tree, moment, tmp_path / "one.tar.gz")
    pack_repository(tree, moment, tmp_path / "two.tar.gz")
    out = tmp_path / "out"
    with tarfile.open(tmp_path / "one.tar.gz") as tar:
        tar.extractall(out, filter="data")

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(out), "-c", "safe.directory=*", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert git("log", "--all", "--format=%an %ae %s %at").splitlines() == [
        f"perfquarry perfquarry@localhost Base {int(moment.timestamp())}"
    ]
    assert git("status", "--porcelain") == "" and git("remote") == "" and git("reflog", "--all") == ""
    assert git("ls-files").split() == [".gitignore", "pack/built.so", "pack/code.py"]
    kinds = git("cat-file", "--batch-all-objects", "--batch-check=%(objecttype)").split()
    assert sorted(kinds) == ["blob"] * 3 + ["commit"] + ["tree"] * 2


def test_rewards_that_a_solver_left_do_not_outlive_a_grading_that_fails(part: Any, tmp_path: Path) -> None:
    (tmp_path / "reward.txt").write_text("1")
    (tmp_path / "reward.json").symlink_to(tmp_path / "nowhere")
    task = {"logs": str(tmp_path), "work": str(tmp_path / "work"), "base": ["missing.b64"], "workloads": []}
    (tmp_path / "task.json").write_text(json.dumps(task))
    with pytest.raises(FileNotFoundError):
        part("grade").main(str(tmp_path / "task.json"))
    assert [path.name for path in tmp_path.glob("reward.*")] == []


@pytest.mark.parametrize(
    ("other", "otherwise"),
    [
        ({"lib.so": b"1", "a.py": b"y"}, False),
        ({"lib.so": b"2", "a.py": b"x"}, True),
        ({"a.py": b"x"}, True),
        ({"lib.so": b"1", "more.so": b"1"}, True),
    ],
    ids=["other sources", "other code", "one less", "one more"],
)
def test_sides_are_built_otherwise_where_compiled_files_differ(
    tmp_path: Path, other: dict[str, bytes], otherwise: bool
) -> None:
    """Seen: a package of Python alone, whose sides ran one command for other texts, was taken for a native one."""
    for side, found in (("base", {"lib.so": b"1", "a.py": b"x"}), ("head", other)):
        (tmp_path / side).mkdir()
        for name, content in found.items():
            (tmp_path / side / name).write_bytes(content)
    assert built_otherwise(tmp_path / "base", tmp_path / "head") == otherwise


def test_the_experts_files_are_those_of_the_patch(part: Any, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.py").write_text("one\n")
    (tree / "b.py").write_text("two\n")
    patch = (
        "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-one\n+1\n"
        "diff --git a/b.py b/b.py\ndeleted file mode 100644\n--- a/b.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-two\n"
    )
    files = pack_expert(tree, patch, tmp_path)
    assert (files.written, files.deleted) == (("a.py",), ("b.py",))
    assert (tree / "a.py").read_text() == "one\n"
    assert files.archive == ("expert.0.b64",) and (tmp_path / "expert.0.b64").read_text().isascii()
    assert part("candidate").extract([tmp_path / "expert.0.b64"], tmp_path / "out") == ["a.py"]
    assert (tmp_path / "out" / "a.py").read_text() == "1\n"
