"""Small repositories, one a layout, through what decides of roles, packages, imports and tests."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from perfquarry.curation.layouts import places_of, with_own_roles
from perfquarry.data.records import Change, Reason, Side, Stamp
from perfquarry.data.registry import Repository
from perfquarry.harness.building.checks import Checker
from perfquarry.harness.contracts import BuiltSide
from perfquarry.harness.metadata.installed_files import ELSEWHERE
from perfquarry.harness.metadata.recipe import read_recipe
from perfquarry.harness.sandbox import choose_sandbox
from perfquarry.miners.history import crawl
from perfquarry.miners.judge.diff import parse
from perfquarry.miners.judge.rules import rejection
from perfquarry.miners.patches import split
from perfquarry.miners.settings import MineSettings
from perfquarry.testgen.traced import candidate_files
from tests.bare_python import bare_python
from tests.miners.git_repository import Repository as Git

STAMP = Stamp(repo="sample", stage_version="1", config_hash="test")
CODE = "def work(n):\n    return {}\n"
TEST = "from {} import work\n\ndef test_work():\n    assert work(3) == 3\n"
BROKEN = "import a_module_that_nobody_has\n"
TOOLS = {"noxfile.py": BROKEN, "tasks/__init__.py": BROKEN, "docs/conf.py": BROKEN, "benchmarks/__init__.py": BROKEN}
SETUP = "from setuptools import setup, find_packages\nsetup({})\n"


@dataclass(frozen=True)
class Layout:
    """A repository: its files, and what is to be found in it."""

    changed: str
    """The module that a change of it improves."""
    packages: list[str]
    root: str
    files: dict[str, str]
    test: str | None = None
    """Files: this one is a test of `packages[0]`; None: `files` hold it, and it is found first."""

    @property
    def all_files(self) -> dict[str, str]:
        """With the changed module, tools around it, and a test."""
        module = self.packages[0]
        name = self.test or "tests/test_work.py"
        above = Path(self.changed).parent
        inits = {} if above == Path(self.root) or "ns" in self.changed else {f"{above}/__init__.py": ""}
        test = {} if self.test and self.test in self.files else {name: TEST.format(_module(self))}
        tools = {path: text for path, text in TOOLS.items() if self.root != "." or not path.startswith(module)}
        return {**tools, **inits, **test, self.changed: CODE.format("sum([1 for _ in range(n)])"), **self.files}


def _module(layout: Layout) -> str:
    path = Path(layout.changed).relative_to(layout.root).with_suffix("")
    return ".".join(path.parts).removesuffix(".__init__")


def _setup(keywords: str) -> dict[str, str]:
    return {"setup.py": SETUP.format(keywords)}


def _project(name: str, backend: str = "", more: str = "") -> dict[str, str]:
    build = f'[build-system]\nrequires = []\nbuild-backend = "{backend}"\n' if backend else ""
    return {"pyproject.toml": f'{build}[project]\nname = "{name}"\nversion = "1"\n{more}'}


LAYOUTS = {
    "src and flit": Layout("src/lib/core.py", ["lib"], "src", _project("lib", "flit_core.buildapi")),
    "a package called packaging": Layout(
        "src/packaging/core.py", ["packaging"], "src", _project("packaging", "flit_core.buildapi")
    ),
    "packaging without src": Layout("packaging/core.py", ["packaging"], ".", _setup("name='packaging'")),
    "a package called build": Layout("src/build/core.py", ["build"], "src", _project("build", "flit_core.buildapi")),
    "build without src": Layout("build/core.py", ["build"], ".", _setup("name='build'")),
    "a package called docs": Layout(
        "docs/core.py", ["docs"], ".", {"setup.cfg": "[metadata]\nname = docs\n", "docs/conf.py": ""}
    ),
    "a package called tools": Layout("tools/core.py", ["tools"], ".", _project("tools", "hatchling.build")),
    "a package called testing": Layout("testing/core.py", ["testing"], ".", _project("testing")),
    "a package called benchmarks": Layout(
        "src/benchmarks/core.py", ["benchmarks"], "src", _project("benchmarks", "pdm.backend")
    ),
    "a package called scripts": Layout("scripts/tasks.py", ["scripts"], ".", _project("scripts")),
    "a module called tasks": Layout(
        "tasks.py", ["tasks"], ".", _project("tasks"),
    ),
    "flat with setuptools": Layout("lib/core.py", ["lib"], ".", _setup("name='lib', packages=find_packages()")),
    "a single module with flit": Layout("lib.py", ["lib"], ".", _project("lib", "flit_core.buildapi")),
    "flit's module of another name": Layout(
        "libcore.py", ["libcore"], ".", _project("lib", "flit_core.buildapi", '[tool.flit.module]\nname = "libcore"\n')
    ),
    "flit of old": Layout(
        "lib/core.py", ["lib"], ".", {"pyproject.toml": '[tool.flit.metadata]\nmodule = "lib"\ndist-name = "libx"\n'}
    ),
    "poetry": Layout(
        "code/lib/core.py", ["lib"], "code",
        {"pyproject.toml": '[tool.poetry]\nname = "other"\npackages = [{include = "lib", from = "code"}]\n'},
    ),
    "hatch": Layout(
        "source/lib/core.py", ["lib"], "source",
        _project("lib-of-ours", "hatchling.build", '[tool.hatch.build.targets.wheel]\npackages = ["source/lib"]\n'),
    ),
    "pdm": Layout(
        "code/lib/core.py", ["lib"], "code", _project("x", "pdm.backend", '[tool.pdm.build]\nincludes = ["code/lib"]\n')
    ),
    "uv": Layout(
        "lib/core.py", ["lib"], ".",
        _project("x", "uv_build", '[tool.uv.build-backend]\nmodule-name = "lib"\nmodule-root = ""\n'),
    ),
    "uv with its default": Layout(
        "src/lib/core.py", ["lib"], "src", _project("x", "uv_build", '[tool.uv.build-backend]\nmodule-name = "lib"\n')
    ),
    "scikit-build": Layout(
        "python/lib/core.py", ["lib"], "python",
        _project("x", "scikit_build_core.build", '[tool.scikit-build]\nwheel.packages = ["python/lib"]\n'),
    ),
    "meson": Layout("lib/core.py", ["lib"], ".", _project("lib", "mesonpy")),
    "setuptools' where": Layout(
        "source/lib/core.py", ["lib"], "source",
        _project("x", "setuptools.build_meta", '[tool.setuptools.packages.find]\nwhere = ["source"]\n'),
    ),
    "find_packages('source')": Layout(
        "source/lib/core.py", ["lib"], "source", _setup("name='x', packages=find_packages('source')")
    ),
    "find_packages of the package": Layout(
        "lib/lib.py", ["lib"], ".", _setup("name='lib', packages=['lib'] + find_packages('lib')")
    ),
    "a folder of another name": Layout(
        "src/core.py", ["lib"], ".",
        {**_setup("name='lib', package_dir={'lib': 'src'}, packages=['lib']"),
         "tests/test_work.py": TEST.format("lib.core"), "src/lib.py": BROKEN},
    ),
    "py_modules": Layout(
        "alone.py", ["alone"], ".", {"setup.cfg": "[metadata]\nname = x\n[options]\npy_modules = alone\n"}
    ),
    "packages that are found, and a module beside them": Layout(
        "lib/core.py", ["lib", "past"], ".",
        {**_setup("name='lib', packages=find_packages(), py_modules=['past']"), "past.py": ""},
    ),
    "the same, of another name": Layout(
        "lib/core.py", ["lib", "past"], ".",
        {"setup.cfg": "[metadata]\nname = x\n[options]\npackages = find:\npy_modules = past\n", "past.py": ""},
    ),
    "two packages": Layout(
        "one/core.py", ["one", "two"], ".",
        {**_setup("name='both', packages=['one', 'two', 'tests']"), "two/__init__.py": "",
         "tests/__init__.py": ""},
    ),
    "a distribution of another name": Layout("libcore/core.py", ["libcore"], ".", _setup("name='PyOther'")),
    "python- before the name": Layout("lib/core.py", ["lib"], ".", _setup("name='python-lib'")),
    "a namespace": Layout(
        "src/ns/lib/core.py", ["ns.lib"], "src", {**_project("ns.lib"), "src/ns/lib/__init__.py": ""}
    ),
    "a namespace with dashes": Layout(
        "ns/cloud/lib/core.py", ["ns.cloud.lib"], ".", {**_project("ns-cloud-lib"), "ns/cloud/lib/__init__.py": ""}
    ),
    "a package without __init__": Layout("src/nslib/core.py", ["nslib"], "src", _project("nslib")),
    "tests inside the package": Layout("lib/core.py", ["lib"], ".", _project("lib"), "lib/tests/test_core.py"),
    "unittest": Layout(
        "lib/core.py", ["lib"], ".",
        {
            **_project("lib"),
            "tests/checks.py": "",
            "tests/test_it.py": "import unittest\nfrom lib.core import work\n\nclass It(unittest.TestCase):\n"
            "    def test(self):\n        self.assertEqual(work(3), 3)\n",
        },
        "tests/test_it.py",
    ),
    "documentation within": Layout("lib/docs/core.py", ["lib"], ".", {**_project("lib"), "lib/__init__.py": ""}),
    "one of several languages": Layout(
        "python/src/lib/core.py", ["lib"], "python/src",
        {f"python/{name}": text for name, text in _project("lib", "hatchling.build").items()}
        | {"pyproject.toml": "[tool.ruff]\nline-length = 100\n"},
        "python/tests/test_core.py",
    ),
    "one of several projects": Layout(
        "libs/lib/lib/core.py", ["lib"], "libs/lib",
        {"libs/lib/setup.py": SETUP.format("name='lib'"), "libs/other/setup.py": SETUP.format("name='other'"),
         "libs/other/other/__init__.py": "", "libs/lib/lib/more.py": ""},
        "libs/lib/tests/test_core.py",
    ),
    "a project among the examples": Layout(
        "lib/core.py", ["lib"], ".", {f"lib/{name}.py": "" for name in "abcdefg"}
        | {"examples/small/setup.py": SETUP.format("name='small'"), "examples/small/small.py": ""},
    ),
    "no metadata at all": Layout("lib/core.py", ["lib"], ".", {}),
}  # fmt: skip


@dataclass(frozen=True)
class Made:
    """A layout as a real repository, with both sides of a change as trees."""

    layout: Layout
    change: Change
    places: tuple[str, ...]
    clone: Path
    trees: dict[Side, Path]


@pytest.fixture(params=LAYOUTS, ids=list(LAYOUTS))
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Made:
    layout = LAYOUTS[request.param]
    git = Git(tmp_path / "work")
    shas = {"base": git.commit("start", dict(layout.all_files))}  # type: ignore[arg-type]
    shas["head"] = git.commit("faster", {layout.changed: CODE.format("n")})
    trees: dict[Side, Path] = {}
    for side in ("base", "head"):
        trees[side] = tmp_path / side
        git.git("worktree", "add", "-q", "--detach", str(trees[side]), shas[side])
    places = places_of(git.folder, Repository(name="x", codebase="x"))
    change = next(crawl(git.folder, STAMP, MineSettings(), only=[shas["head"]], places=places))
    return Made(layout, change, places, git.folder, trees)


def test_every_layout_is_understood(made: Made) -> None:
    layout, recipe = made.layout, read_recipe(made.trees["base"], Repository(name="x", codebase="x"))
    roots = [made.trees["base"] / root for root in recipe.source_roots]
    checker = Checker(choose_sandbox("process"), bare_python(), 2**30, 60.0)
    for tree in made.trees.values():
        for command in (one for one in recipe.build if ELSEWHERE in one):
            subprocess.run(command, cwd=tree, shell=True, check=True)
    assert (recipe.packages, recipe.source_roots) == (layout.packages, [layout.root])
    assert checker.imports(made.trees["base"], roots, recipe.packages) is None
    assert [file.role for file in made.change.files] == ["source"]
    assert rejection(made.change, parse(made.change.patch)) is None
    patches = split(made.clone, made.change)
    assert (bool(patches.patch), patches.test_patch) == (True, "")
    built: dict[Side, BuiltSide] = {
        side: BuiltSide(side, "0", tree, bare_python(), "e", tuple(tree / root for root in recipe.source_roots))
        for side, tree in made.trees.items()
    }
    found = [test.path for test in candidate_files(made.change, built, 5)]
    assert found[:1] == [layout.test or "tests/test_work.py"]


def test_what_only_folders_speak_for_may_be_something_else(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "__init__.py").write_text(BROKEN)
    (tmp_path / "other" / "__init__.py").write_text("")
    recipe = read_recipe(tmp_path, Repository(name="x", codebase="x"))
    checker = Checker(choose_sandbox("process"), bare_python(), 2**30, 60.0)
    assert recipe.guessed
    assert checker.imports(tmp_path, [tmp_path], recipe.packages, guessed=True) is None
    failed = checker.imports(tmp_path, [tmp_path], ["one"], guessed=True)
    assert failed is not None and failed.reason is Reason.IMPORT_FAILED


def test_a_package_keeps_its_roles_where_it_lay_before(tmp_path: Path) -> None:
    git = Git(tmp_path / "work")
    git.commit("start", {"packaging/__init__.py": "", "packaging/core.py": CODE.format("1")})
    old = git.commit("faster", {"packaging/core.py": CODE.format("n")})
    git.git("rm", "-rq", "packaging")
    moved = {"src/packaging/__init__.py": "", "src/packaging/core.py": "", **_project("packaging")}
    git.commit("move", dict(moved))  # type: ignore[arg-type]
    places = places_of(git.folder, Repository(name="x", codebase="x"))
    change = next(crawl(git.folder, STAMP, MineSettings(), only=[old], places=places))
    assert [file.role for file in change.files] == ["source"]


def test_scripts_beside_the_package_are_no_source_unless_a_test_names_them(tmp_path: Path) -> None:
    git = Git(tmp_path / "work")
    modules = [
        "lib/core.py",
        "alone/core.py",
        "bin/update-tables.py",
        "bin/ran.py",
        "bin/imported.py",
        "counted.py",
        "part.py",
    ]
    tests = "import os\nfrom lib import core\nimport lib, imported\nos.system('bin/ran.py')\ncounted = 1\n"
    files = {
        "lib/__init__.py": "# made by bin/update-tables.py\nimport part\n",
        "alone/__init__.py": "",
        "tests/test_it.py": tests,
        **_project("lib"),
    }
    git.commit("start", {**files, **dict.fromkeys(modules, CODE.format("1"))})
    git.commit("faster", dict.fromkeys(modules, CODE.format("n")))
    git.git("mv", "lib", "library")
    renamed = git.commit("another name", {**_project("library"), "library/core.py": CODE.format("n + 1")})
    repository = Repository(name="x", codebase="x")
    moved, faster, _ = crawl(git.folder, STAMP, MineSettings())
    own = with_own_roles(git.folder, repository, faster)
    beside = {"bin/update-tables.py", "counted.py"}
    assert {file.path for file in own.files if file.role != "source"} == beside
    assert moved.head_sha == renamed and with_own_roles(git.folder, repository, moved) == moved
    assert places_of(git.folder, repository)[0] == "library", "the newest layout is not the one of the older change"
