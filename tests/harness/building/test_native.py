"""Small projects that are really built: from nothing, and again from what the build before left."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from filelock import FileLock

from perfquarry.data.home import Home
from perfquarry.data.records import Reason, content_id
from perfquarry.data.registry import Repository
from perfquarry.harness.building.build_folders import build_folder_lock
from perfquarry.harness.building.native import Artifacts, NativeBuilds
from perfquarry.harness.contracts import Command, Sandbox
from perfquarry.harness.environments.environment import Environment, Environments
from perfquarry.harness.environments.interpreters import Interpreter, choose, find_interpreters
from perfquarry.harness.metadata.recipe import Recipe, read_recipe
from perfquarry.harness.rejections import Rejection
from perfquarry.harness.sandbox import BubblewrapSandbox, choose_sandbox
from perfquarry.harness.settings import BuildSettings
from perfquarry.harness.trees.checkouts import settle

DATE = datetime(2024, 2, 10, tzinfo=UTC)
Files = dict[str, str | None]


def interpreter() -> Interpreter | None:
    return choose(DATE, None, find_interpreters())


def can_compile() -> bool:
    chosen = interpreter()
    code = "import sysconfig; print(sysconfig.get_path('include'))"
    include = subprocess.check_output([chosen.path, "-c", code], text=True).strip() if chosen else ""
    return bool(shutil.which("cc")) and (Path(include) / "Python.h").exists()


needs_compiler = pytest.mark.skipif(not can_compile(), reason="no C compiler or no headers of Python")
needs_ccache = pytest.mark.skipif(not shutil.which("ccache"), reason="ccache is not installed")
needs_cargo = pytest.mark.skipif(not shutil.which("cargo"), reason="cargo is not installed")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("shared"))


class Builds:
    """Builds of one repository in a home of its own, with environments that all tests share."""

    def __init__(self, folder: Path, environments: Environments) -> None:
        self.folder, self._environments = folder, environments
        self.home = Home(folder / "home")
        self.files: dict[str, str] = {}
        self.count = 0

    def native(self, sandbox: Sandbox | None = None, **settings: int) -> NativeBuilds:
        return NativeBuilds(self.home, sandbox or choose_sandbox(), BuildSettings(timeout=300, **settings), "lib")

    def tree(self, changes: Files) -> Path:
        """The next commit's tree."""
        for name, text in changes.items():
            if text is None:
                del self.files[name]
            else:
                self.files[name] = text
        self.count += 1
        tree = self.folder / f"commit-{self.count}"
        for name, text in self.files.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text)
        settle(tree)
        return tree

    def environment(self, recipe: Recipe) -> Environment:
        chosen = interpreter()
        assert chosen
        made = self._environments.ensure(chosen, recipe.requirements, DATE, timeout=300.0)
        assert isinstance(made, Environment), made.log
        return made

    def build(self, tree: Path, recipe: Recipe | None = None, name: str = "") -> Artifacts:
        made = self.reject_or_build(tree, recipe, name)
        assert isinstance(made, Artifacts), made.log
        return made

    def reject_or_build(self, tree: Path, recipe: Recipe | None = None, name: str = "") -> Artifacts | Rejection:
        recipe = recipe or read_recipe(tree, Repository(name="lib", codebase="lib"))
        return self.native().ensure(name or tree.name, tree, recipe, self.environment(recipe), "1.0.0")

    def run(self, tree: Path, artifacts: Artifacts, code: str) -> str:
        place = self.folder / "run" / tree.name
        shutil.copytree(tree, place)
        shutil.copytree(artifacts.path, place, dirs_exist_ok=True)
        python = self.environment(read_recipe(tree, Repository(name="lib", codebase="lib"))).python
        return subprocess.check_output([python, "-c", code], cwd=place, text=True).strip()


@pytest.fixture
def builds(tmp_path: Path, shared: Home) -> Builds:
    return Builds(tmp_path, Environments(shared, choose_sandbox()))


def contents(artifacts: Artifacts) -> dict[str, bytes]:
    files = [path for path in artifacts.path.rglob("*") if path.is_file()]
    return {str(path.relative_to(artifacts.path)): path.read_bytes() for path in files}


def by_hand(*commands: str) -> Recipe:
    return Recipe(build=list(commands), source_roots=["."])


FAST = """
#include <Python.h>
#include "answer.h"
int twice(int);
static PyObject *answer(PyObject *self, PyObject *none) { return PyLong_FromLong(twice(ANSWER)); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_fast", "", -1, methods};
PyMODINIT_FUNC PyInit__fast(void) { return PyModule_Create(&module); }
"""
SETUP = """
from glob import glob
from Cython.Build import cythonize
from setuptools import Extension, setup
fast = Extension("lib._fast", sorted(glob("lib/*fast.c")), include_dirs=["lib"])
setup(name="lib", packages=["lib"], ext_modules=[fast, *cythonize(["lib/*_cy.pyx"])])
"""
CYTHON: Files = {
    "pyproject.toml": 'build-system.requires = ["setuptools", "cython"]\n',
    "setup.py": SETUP,
    "README.md": "a library\n",
    "lib/__init__.py": "",
    "lib/answer.h": "#define ANSWER 21\n",
    "lib/fast.c": FAST,
    "lib/twice_fast.c": "int twice(int x) { return 2 * x; }\n",
    "lib/sum_cy.pyx": "cdef int total = start + 1\ndef sum_of(): return total\n",
    "lib/sum_cy.pxd": "cdef enum: start = 10\n",
}
MESON: Files = {
    "pyproject.toml": """
        [build-system]
        requires = ["meson-python", "cython"]
        build-backend = "mesonpy"
        [project]
        name = "lib"
        version = "1.0"
    """,
    "meson.build": """
        project('lib', 'c', 'cython', version: '1.0')
        py = import('python').find_installation(pure: false)
        py.install_sources('lib/__init__.py', subdir: 'lib')
        py.extension_module('_fast', 'lib/fast.c', 'lib/twice_fast.c', subdir: 'lib', install: true)
        py.extension_module('sum_cy', 'lib/sum_cy.pyx', subdir: 'lib', install: true)
    """,
    **{name: text for name, text in CYTHON.items() if name not in ("pyproject.toml", "setup.py")},
}
ANSWERS = "from lib import _fast, sum_cy; print(_fast.answer(), sum_cy.sum_of())"
MORE = "def more(): return 1\n"
CHANGES = [
    ({"lib/answer.h": "#define ANSWER 25\n"}, "incremental", "50 11"),
    *(
        pytest.param(*one, marks=pytest.mark.slow)
        for one in [
            ({"lib/twice_fast.c": "int twice(int x) { return 3 * x; }\n"}, "incremental", "63 11"),
            ({"lib/sum_cy.pyx": "cdef int total = start + 5\ndef sum_of(): return total\n"}, "incremental", "42 15"),
            ({"README.md": "a better library\n", "lib/new.py": "x = 1\n"}, "incremental", "42 11"),
            ({"lib/sum_cy.pxd": "cdef enum: start = 20\n"}, "full: lib/sum_cy.pxd", "42 21"),
        ]
    ),
]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("cc -Ivendor/http-parser: http_parser.h: No such file or directory", Reason.SUBMODULE_MISSING),
        ("fast.c:3: error: unknown type name", Reason.BUILD_FAILED),
    ],
)
def test_an_absent_submodule_is_the_reason_only_if_the_build_speaks_of_it(
    builds: Builds, said: str, reason: Reason
) -> None:
    modules = "".join(f'[submodule "{path}"]\n\tpath = {path}\n' for path in ("vendor/http-parser", "doc/theme"))
    tree = builds.tree({".gitmodules": modules, "lib/__init__.py": ""})
    for path in ("vendor/http-parser", "doc/theme"):
        (tree / path).mkdir(parents=True)
    rejected = builds.reject_or_build(tree, by_hand(f"echo '{said}'; exit 1"))
    assert isinstance(rejected, Rejection) and rejected.reason == reason and said in rejected.log


@needs_compiler
@pytest.mark.parametrize(
    ("change", "how", "answers"),
    [
        *CHANGES,
        pytest.param(
            {"lib/twice_fast.c": None, "lib/answer.h": "#define ANSWER 1\nstatic int twice(int x) { return 4 * x; }\n"},
            "full: lib/twice_fast.c was deleted", "4 11", marks=pytest.mark.slow),
        pytest.param({"lib/more_cy.pyx": MORE}, "full: lib/more_cy.pyx was added", "42 11", marks=pytest.mark.slow),
        ({"setup.py": SETUP.replace("include_dirs=", "define_macros=[('ANSWER', '5')], include_dirs="),
          "lib/answer.h": ""}, "full: setup.py differs", "10 11"),
    ],
)  # fmt: skip
def test_setuptools_and_cython(builds: Builds, change: Files, how: str, answers: str) -> None:
    compare(builds, CYTHON, change, how, answers)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "how", "answers"),
    [
        *CHANGES,
        ({"lib/more_cy.pyx": MORE,
          "meson.build": f"{MESON['meson.build']}\npy.extension_module('more_cy', 'lib/more_cy.pyx',install: true)"},
         "full: lib/more_cy.pyx was added", "42 11"),
    ],
)  # fmt: skip
def test_meson_python(builds: Builds, change: Files, how: str, answers: str) -> None:
    compare(builds, MESON, change, how, answers)


def compare(builds: Builds, start: Files, change: Files, how: str, answers: str) -> None:
    """An incremental build gives what a full one at the same place gives, to the byte, and what the sources say."""
    first = builds.tree(start)
    base = builds.build(first)
    assert base.how == "full: no build is left"
    assert builds.run(first, base, ANSWERS) == "42 11"
    second = builds.tree(change)
    head = builds.build(second)
    assert head.how.startswith(how), head.log
    shutil.rmtree(builds.home.compiled)
    again = builds.build(second, name="again")
    assert again.how == "full: no build is left"
    assert contents(head) == contents(again)
    assert builds.run(second, head, ANSWERS) == answers


@needs_compiler
def test_what_did_not_change_is_not_made_again(builds: Builds) -> None:
    base = builds.build(builds.tree(CYTHON))
    head = builds.build(builds.tree({"lib/answer.h": "#define ANSWER 25\n"}))
    assert "Cythonizing lib/sum_cy.pyx" in base.log
    assert head.how.startswith("incremental") and "Cythonizing" not in head.log


@needs_compiler
@needs_cargo
def test_rust_by_setuptools_rust(builds: Builds) -> None:
    rust = """
        #[no_mangle] pub extern "C" fn answer() -> i32 { if cfg!(debug_assertions) { 0 } else { ANSWER } }
    """
    start: Files = {
        "pyproject.toml": 'build-system.requires = ["setuptools", "setuptools-rust"]\n',
        "setup.py": "from setuptools import setup\nfrom setuptools_rust import Binding, RustExtension\n"
        "setup(name='lib', version='1.0', packages=['lib'],\n"
        "      rust_extensions=[RustExtension('lib._rust', binding=Binding.NoBinding)])\n",
        "Cargo.toml": '[package]\nname = "rust"\nversion = "1.0.0"\nedition = "2021"\n[lib]\ncrate-type = ["cdylib"]\n',
        "rust-toolchain.toml": '[toolchain]\nchannel = "1.0.0"\n',
        "src/lib.rs": rust.replace("ANSWER", "42"),
        "lib/__init__.py": "",
    }
    code = "import ctypes, glob; print(ctypes.CDLL(glob.glob('lib/_rust*')[0]).answer())"
    first = builds.tree(start)
    assert builds.run(first, builds.build(first), code) == "42"
    second = builds.tree({"src/lib.rs": rust.replace("ANSWER", "43")})
    head = builds.build(second)
    assert head.how.startswith("incremental")
    assert builds.run(second, head, code) == "43"
    assert not any("cargo" in name for name in contents(head))


def test_a_build_without_git_finds_its_version(builds: Builds) -> None:
    recipe = by_hand('basename "$PWD" > made', "git rev-parse --git-dir || echo none >> made")
    subprocess.run(["git", "init", "-q", str(builds.folder)], check=True)
    made = builds.build(builds.tree({"setup.cfg": "[versioneer]\nparentdir_prefix = lib-\n"}), recipe)
    assert contents(made)["made"] == b"lib-1.0.0\nnone\n"


def test_a_failed_incremental_build_is_made_in_full(builds: Builds) -> None:
    recipe = by_hand("test ! -e made && cp lib.c made")
    builds.build(builds.tree({"lib.c": "1"}), recipe)
    head = builds.build(builds.tree({"lib.c": "2"}), recipe)
    assert head.how == "full: the incremental one failed"
    assert contents(head) == {"made": b"2"}


def test_a_failed_build_leaves_nothing(builds: Builds) -> None:
    recipe = by_hand("grep -q good lib.c && touch made")
    builds.build(builds.tree({"lib.c": "good"}), recipe)
    failed = builds.reject_or_build(builds.tree({"lib.c": "bad"}), recipe)
    assert isinstance(failed, Rejection) and failed.reason is Reason.BUILD_FAILED
    assert builds.build(builds.tree({"lib.c": "good again"}), recipe).how == "full: no build is left"


@pytest.mark.parametrize(
    ("recipe", "version"),
    [
        (Recipe(build=["cat lib.c > made"], source_roots=["."], variables={"X": "1"}), "1.0.0"),
        (by_hand("cp lib.c made"), "1.0.0"),
        (by_hand("cat lib.c > made"), "2.0.0"),
    ],
)
def test_other_circumstances_mean_a_full_build(builds: Builds, recipe: Recipe, version: str) -> None:
    builds.build(builds.tree({"lib.c": "1"}), by_hand("cat lib.c > made"))
    made = builds.native().ensure("x", builds.tree({"lib.c": "2"}), recipe, builds.environment(recipe), version)
    assert isinstance(made, Artifacts)
    assert made.how == "full: environment, commands, version or compilers are others"


@pytest.mark.parametrize("name", ["one.pyx", "one.c.src"])
def test_sources_that_others_include_mean_a_full_build(builds: Builds, name: str) -> None:
    recipe = by_hand("touch made")
    builds.build(builds.tree({name: "1", f"two.{name}": f'#include "sub/{name}"\n'}), recipe)
    assert builds.build(builds.tree({name: "2"}), recipe).how == f"full: {name} differs and is included by another file"
    assert builds.build(builds.tree({f"two.{name}": "3"}), recipe).how.startswith("incremental")


def test_links_that_a_build_left_are_not_followed(builds: Builds, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "secret").write_text("secret")
    (outside / "deep").chmod(0o700)
    recipe = by_hand(f"rm -rf lib .perfquarry-site && ln -s {outside} lib && ln -s {outside} .perfquarry-site")
    first = builds.build(builds.tree({"lib/secret": "", "lib/a.c": "1", "b.c": "1"}), recipe)
    second = builds.build(builds.tree({"lib/a.c": "2"}), recipe)
    assert second.how == "full: the last build replaced lib/a.c"
    third = builds.build(builds.tree({"b.c": "2"}), recipe)
    assert third.how.startswith("incremental")
    assert [contents(one) for one in (first, second, third)] == [{}, {}, {}]
    assert sorted(path.name for path in outside.iterdir()) == ["deep", "secret"]
    assert (outside / "deep").stat().st_mode & 0o777 == 0o700


def test_a_build_knows_how_many_processes_it_may_use(builds: Builds) -> None:
    names = "$JOBS $MAKEFLAGS $NPY_NUM_BUILD_JOBS $CMAKE_BUILD_PARALLEL_LEVEL $CARGO_BUILD_JOBS"
    recipe = by_hand(f"echo {names} -j 2 --parallel=4 -json 5 > made")
    tree = builds.tree({"a": ""})
    made = builds.native(jobs=3).ensure("jobs", tree, recipe, builds.environment(recipe), "1.0.0")
    assert isinstance(made, Artifacts)
    assert contents(made)["made"] == b"3 -j3 3 3 3 -j3 --parallel=3 -json 5\n"
    assert BuildSettings(jobs=3).config_hash() == BuildSettings().config_hash()
    assert BuildSettings(timeout=3.0).config_hash() != BuildSettings().config_hash()


def test_a_setting_younger_than_homes_counts_only_when_it_is_used():
    older = BuildSettings.model_fields.keys() - BuildSettings.ADDED - BuildSettings.UNHASHED
    known = {name: getattr(BuildSettings(), name) for name in older}
    assert BuildSettings().config_hash() == content_id("BuildSettings", known)
    assert BuildSettings(repair_model="openai:m").config_hash() != BuildSettings().config_hash()


def cache_hits(builds: Builds) -> int:
    env = {**os.environ, "CCACHE_DIR": str(builds.home.compiled / "lib" / "ccache")}
    facts = subprocess.check_output(["ccache", "--print-stats"], env=env, text=True)
    counts = dict(line.split("\t") for line in facts.splitlines())
    return int(counts["direct_cache_hit"]) + int(counts["preprocessed_cache_hit"])


def test_a_long_build_holds_up_no_other(builds: Builds) -> None:
    recipe = by_hand("touch made")
    builds.environment(recipe)
    folder = builds.home.compiled / "lib"
    folder.mkdir(parents=True)
    with FileLock(build_folder_lock(folder / "build-0")), ThreadPoolExecutor(1) as pool:
        made = pool.submit(builds.build, builds.tree({"a": ""}), recipe).result(timeout=120)
    assert set(contents(made)) == {"made"}


@needs_compiler
@needs_ccache
def test_what_was_compiled_once_comes_from_the_cache(builds: Builds) -> None:
    first = builds.build(builds.tree(CYTHON))
    shutil.rmtree(builds.home.compiled / "lib" / "build-0")
    again = builds.build(builds.tree({"setup.py": f"{SETUP}\n# changed\n"}))
    assert again.how == "full: no build is left"
    assert contents(again) == contents(first)
    assert cache_hits(builds) == 3


@needs_compiler
@needs_ccache
@pytest.mark.parametrize("sandbox", ["bubblewrap", "process"])
def test_the_cache_serves_other_environments_with_the_same_headers(builds: Builds, sandbox: str) -> None:
    """Folders of the environment are given to the compiler, as numpy's headers are."""
    setup = SETUP.replace('include_dirs=["lib"]', 'include_dirs=["lib", os.path.dirname(cffi.__file__)]')
    files = {
        name: f'#include <stddef.h>\n#include "parse_c_type.h"\n{CYTHON[name]}'
        for name in ("lib/fast.c", "lib/twice_fast.c")
    }
    project = 'build-system.requires = ["setuptools", "cython", "cffi"]\n'
    tree = builds.tree({**CYTHON, **files, "pyproject.toml": project, "setup.py": f"import os, cffi\n{setup}"})
    recipe = read_recipe(tree, Repository(name="lib", codebase="lib"))
    more = recipe.model_copy(update={"requirements": [*recipe.requirements, "six"]})
    native = builds.native(choose_sandbox(sandbox, private=(builds.home.compiled,)))
    for name, one in (("first", recipe), ("other", more)):
        made = native.ensure(name, tree, one, builds.environment(one), "1.0.0")
        assert isinstance(made, Artifacts), made.log
        assert made.how.startswith("full: ")
    assert builds.environment(recipe).python != builds.environment(more).python
    assert cache_hits(builds) == 3


@pytest.fixture
def visible() -> Callable[[Sandbox, Path, tuple[Path, ...]], list[str]]:
    def look(sandbox: Sandbox, folder: Path, writable: tuple[Path, ...] = ()) -> list[str]:
        done = sandbox.run(Command(("/bin/ls", str(folder)), Path("/"), writable=writable, readable=(folder.parent,)))
        assert done.ok, done.stderr
        return done.stdout.decode().split()

    return look


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed: nothing can be hidden")
def test_only_builds_see_caches_and_build_trees(builds: Builds, visible: Callable[..., list[str]]) -> None:
    compiled = builds.home.compiled
    sandbox = choose_sandbox("bubblewrap", private=(compiled,))
    assert isinstance(sandbox, BubblewrapSandbox)
    recipe = by_hand("touch made")
    tree = builds.tree({"a": ""})
    made = builds.native(sandbox).ensure("hidden", tree, recipe, builds.environment(recipe), "1.0.0")
    assert isinstance(made, Artifacts) and set(contents(made)) == {"made"}
    assert (compiled / "lib/build-0/tree/made").exists()
    assert visible(sandbox, compiled) == []
    assert "lib" in visible(sandbox, compiled, (compiled / "lib/build-0",))
