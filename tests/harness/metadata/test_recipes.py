from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

from perfquarry.harness.metadata.recipe import Recipe
from perfquarry.harness.rejections import LOG_BYTES, tail


def test_pyproject(recipe: Any) -> None:
    made = recipe(
        {
            "pyproject.toml": """
                [build-system]
                requires = ["hatchling"]
                build-backend = "hatchling.build"
                [project]
                name = "My.Lib"
                requires-python = ">=3.8"
                dependencies = ["attrs>=20", "Typing_Extensions; python_version < '3.10'", "my-lib"]
                optional-dependencies.test = ["pytest>=6", "hypothesis"]
                optional-dependencies.docs = ["sphinx"]
            """,
            "src/my_lib/__init__.py": "",
            "docs/conf.py": "",
            "tests/__init__.py": "",
        }
    )
    assert made.requires_python == ">=3.8"
    assert made.requirements == ["attrs>=20", "pytest", 'typing-extensions; python_version < "3.10"']
    assert made.test_requirements == ["hypothesis", "pytest>=6"]
    assert made.source_roots == ["src"]
    assert made.packages == ["my_lib"]
    assert made.build == []


def test_poetry(recipe: Any) -> None:
    made = recipe(
        {
            "pyproject.toml": """
                [tool.poetry]
                name = "lib"
                [tool.poetry.dependencies]
                python = "^3.7"
                requests = "^2.20"
                click = {version = "~8.0.1"}
                six = "*"
                rich = {version = "13.0", optional = true}
                zero = "^0.3.1"
                [tool.poetry.group.test.dependencies]
                pytest-mock = ">=3"
            """,
            "lib/__init__.py": "",
        }
    )
    assert made.requires_python == "<4,>=3.7"
    assert made.requirements == ["click<8.1,>=8.0.1", "pytest", "requests<3,>=2.20", "six", "zero<0.4,>=0.3.1"]
    assert made.test_requirements == ["pytest-mock>=3"]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("~2.7 || ^3.5", "<4,>=3.5"),
        ("^3.5 || ~2.7", "<4,>=3.5"),
        ("~2.7|^3.4", "<4,>=3.4"),
        ("2.7.*", "==2.7.*"),
        (">=2.7,<4", "<4,>=2.7"),
    ],
)
def test_poetry_knows_alternatives(recipe: Any, said: str, meant: str) -> None:
    text = f"[tool.poetry]\nname = 'lib'\n[tool.poetry.dependencies]\npython = '{said}'\none = '^1.2 || ^2.1'\n"
    made = recipe({"pyproject.toml": text, "lib/__init__.py": ""})
    assert made.requires_python == meant
    assert "one<3,>=2.1" in made.requirements, "the last; it is no version of Python"


def test_poetry_asks_for_what_some_interpreters_need(recipe: Any) -> None:
    text = """
        [tool.poetry]
        name = "lib"
        [tool.poetry.dependencies]
        python = "^3.7"
        old = {version = ">=0.2.1", python = ">=3.7,<3.9"}
        patch = {version = "*", python = "~3.7.2 || ^3.9"}
        windows = {version = "^1", platform = "win32"}
        marked = {version = "^1", markers = "python_version < '3.8'"}
        two = [{version = "<1", python = "<3.8"}, {version = ">=1", python = "^3.8"}]
    """
    made = recipe({"pyproject.toml": text, "lib/__init__.py": ""})
    assert made.requirements == [
        'marked<2,>=1; python_version < "3.8"',
        'old>=0.2.1; python_version >= "3.7" and python_version < "3.9"',
        'patch; python_full_version >= "3.7.2" and python_version < "3.8"'
        ' or python_version >= "3.9" and python_version < "4"',
        "pytest",
        'two<1; python_version < "3.8"',
        'two>=1; python_version >= "3.8" and python_version < "4"',
        'windows<2,>=1; sys_platform == "win32"',
    ]


@pytest.mark.parametrize("said", ["", "||", ",,", ">=", "3.\\n7", '3\\" or \\"', "^x || !", "== "])
def test_poetry_with_nonsense_is_read(recipe: Any, said: str) -> None:
    """A stranger's text ends no build: lines that are no requirements are left out later."""
    needed = f'one = {{version = "{said}", python = "{said}", platform = "{said}"}}\ntwo = [1, "{said}"]\nthree = []'
    text = f'[tool.poetry]\nname = "lib"\n[tool.poetry.dependencies]\npython = "{said}"\n{needed}\n'
    assert recipe({"pyproject.toml": text, "lib/__init__.py": ""}).packages == ["lib"]


def test_setup_cfg(recipe: Any) -> None:
    made = recipe(
        {
            "setup.cfg": (
                "[metadata]\nname = lib\n[options]\npython_requires = >=3.6\ninstall_requires =\n    six\n"
                "    # a remark\n    dataclasses; python_version < '3.7'\npackage_dir =\n    = source\n"
                "[options.extras_require]\ntesting =\n    mock\n"
            ),
            "setup.py": "from setuptools import setup\nsetup()\n",
            "source/lib/__init__.py": "",
        }
    )
    assert made.requires_python == ">=3.6"
    assert made.requirements == ['dataclasses; python_version < "3.7"', "pytest", "six"]
    assert made.test_requirements == ["mock"]
    assert made.source_roots == ["source"]


def test_lists_of_setup_cfg_may_be_one_line(recipe: Any) -> None:
    made = recipe(
        {
            "setup.cfg": (
                "[options]\npackages = lib, other\ninstall_requires = six; toolz>=1\n"
                "[options.extras_require]\ntest = astroid<=2.5.3; mock\n"
            ),
            "lib/__init__.py": "",
            "other/__init__.py": "",
            "third/__init__.py": "",
        }
    )
    assert (made.requirements, made.packages) == (["pytest", "six", "toolz>=1"], ["lib", "other"])
    assert made.test_requirements == ["astroid<=2.5.3", "mock"]
    of_one = recipe({"setup.cfg": "[options]\ninstall_requires = dataclasses; python_version < '3.7'\n"})
    assert of_one.requirements == ['dataclasses; python_version < "3.7"', "pytest"]


@pytest.mark.parametrize(
    ("package_dir", "root"),
    [
        ({"": "source"}, "source"),
        ({"lib": "lib"}, "."),
        ({"lib": "source/lib"}, "source"),
        ({"lib.sub": "source/lib/sub"}, "source"),
        ({"other": "source/lib"}, "."),
    ],
)
def test_folders_of_packages(recipe: Any, package_dir: dict[str, str], root: str) -> None:
    files = {f"{folder}lib/{name}": "" for folder in ("", "source/") for name in ("__init__.py", "sub/__init__.py")}
    made = recipe({"setup.py": f"setup(name='lib', package_dir={package_dir})", **files})
    assert (made.source_roots, made.packages) == ([root], ["lib"])


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"setup.py": "setup(ext_modules=[Extension('a', ['a.c'])])"}, "build_ext --inplace"),
        ({"setup.py": "from Cython.Build import cythonize\nsetup(ext_modules=cythonize('*.pyx'))"}, "build_ext"),
        ({"setup.py": "setup(configuration=configuration)"}, "build_ext"),
        ({"setup.py": "setup(ext_modules=[])"}, None),
        ({"pyproject.toml": "build-system.build-backend = 'mesonpy'"}, "builddir=build"),
        ({"pyproject.toml": "build-system.build-backend = 'maturin'"}, "pip install"),
        ({"pyproject.toml": "build-system.build-backend = 'scikit_build_core.build'"}, "pip install"),
        ({"pyproject.toml": "build-system.requires = ['setuptools-rust']", "setup.py": "setup()"}, "pip install"),
        (
            {"setup.py": "from setuptools_rust import RustExtension\nsetup(rust_extensions=[RustExtension('a')])"},
            "pip install",
        ),
        ({"pyproject.toml": "[[tool.setuptools.ext-modules]]\nname = 'a'\nsources = ['a.c']"}, "pip install"),
        ({"pyproject.toml": "build-system.build-backend = 'flit_core.buildapi'"}, None),
    ],
)
def test_native_code_is_seen(recipe: Any, files: dict[str, str], expected: str | None) -> None:
    made = recipe({**files, "lib/__init__.py": ""})
    assert (expected in made.build[0]) if expected else made.build == []
    assert {"setuptools", "setuptools-rust"}.isdisjoint(made.requirements) == (not expected)
    assert ("ninja" in made.requirements) == ("mesonpy" in str(files) or "scikit_build_core" in str(files))


def test_c_files_that_a_makefile_would_make_are_made_first(recipe: Any) -> None:
    """aio-libs: `make cythonize`, then a setup.py that knows of the C files only."""
    script = "setup(ext_modules=[Extension('lib.fast', ['lib/fast.c']), Extension('lib.own', ['lib/own.cpp'])])"
    files = {"lib/__init__.py": "", "lib/fast.pyx": "", "lib/own.cpp": "", "lib/own.pyx": "", "setup.py": script}
    inplace = "python setup.py build_ext --inplace"
    made = recipe(files)
    assert made.build == ["python -m cython -o lib/fast.c lib/fast.pyx", inplace]
    assert "cython" in made.requirements
    assert (
        recipe({"Makefile": "lib/%.c: lib/%.pyx\n\tcython -3 -o $@ $<\n"}).build[0].startswith("python -m cython -3 ")
    )
    assert recipe({"setup.py": f"from Cython.Build import cythonize\n{script}"}).build == [inplace]
    by_variable = (
        "ext = '.pyx' if os.getenv('CYTHON') else '.c'\nsetup(ext_modules=[Extension('f', ['lib/fast' + ext])])"
    )
    assert recipe({"Makefile": "", "setup.py": by_variable}).build == made.build


def test_cython_that_a_setup_script_does_without_in_silence_is_installed(recipe: Any) -> None:
    """ezdxf: without Cython nothing is compiled, and its twin in Python is timed."""
    script = "try:\n    from Cython.Build import cythonize\n    found = [Extension('lib.fast', ['lib/fast.pyx'])]\n"
    script += "except ImportError:\n    found = []\nsetup(ext_modules=found)\n"
    files = {"lib/__init__.py": "", "lib/fast.pyx": "", "setup.py": script}
    assert "cython" in recipe(files).requirements
    compiles_python = script.replace("found = []", "found = [Extension(one) for one in glob('*.py')]")
    assert "cython" not in recipe({"setup.py": compiles_python}).requirements, "falcon: no line of it would be seen"
    recipe(files)
    declared = recipe({"pyproject.toml": "build-system.requires = ['Cython<3']"}).requirements
    assert "cython<3" in declared and "cython" not in declared
    assert "cython" not in recipe({"pyproject.toml": "", "lib/fast.cpp": ""}).requirements, "made of it, and committed"


def test_static_libraries_of_a_setup_script_are_made_before_its_extensions(recipe: Any) -> None:
    script = "setup(libraries=[c], ext_modules=[Extension('a', ['a.c'])])  # after python setup.py build_clib"
    made = recipe({"setup.py": script, "lib/__init__.py": "", "a.c": ""})
    assert made.build == ["python setup.py build_clib build_ext --inplace"]
    assert recipe({"setup.py": f"from numpy.distutils.core import setup\n{script}"}).build == [
        "python setup.py build_ext --inplace"
    ]


@pytest.mark.parametrize("backend", ["mesonpy", "maturin", "setuptools.build_meta"])
def test_commands_of_the_registry_end_with_their_era(recipe: Any, backend: str) -> None:
    command = "python setup.py build_ext --inplace -j 2"
    made = recipe(
        {"pyproject.toml": f"build-system.build-backend = {backend!r}", "setup.py": "", "lib/__init__.py": ""},
        packages=["lib"],
        build=[command],
        requirements=["cython<3"],
    )
    if backend == "setuptools.build_meta":
        assert made.build == [command] and "cython<3" in made.requirements
    else:
        assert "pip install" in made.build[0] and "cython<3" not in made.requirements


def test_the_tree_says_the_versions_of_what_the_registry_names_for_tests(recipe: Any) -> None:
    tree = {"setup.py": "", "test_requirements.txt": "Hypothesis==6.81.1\nmypy==1.0\nattrs<22\n"}
    made = recipe(tree, test_requirements=["hypothesis", "typing_extensions", "attrs>=20"])
    assert made.test_requirements == ["attrs>=20", "hypothesis==6.81.1", "typing-extensions"]


def test_what_absent_submodules_hold_is_switched_off(recipe: Any, tmp_path: Path) -> None:
    files = {
        ".gitmodules": '[submodule "fast"]\n\tpath = vendor/fast\n\turl = u\n[submodule "x"]\n\tpath = ../..\n',
        "setup.py": "setup(ext_modules=[Extension('a', ['a.c'])])",
        "lib/__init__.py": "",
        "vendor/fast/empty": "",
    }
    registered = {"build_env": {"A": "1"}, "without_submodules": {"vendor/fast": {"NO_FAST": "1"}}}
    assert recipe(files, **registered).variables == {"A": "1"}
    del files["vendor/fast/empty"]
    (tmp_path / "vendor/fast/empty").unlink()
    made = recipe(files, **registered)
    assert made.variables == {"A": "1", "NO_FAST": "1"}
    assert any(note.startswith("submodules that are missing in the clone: vendor/fast (") for note in made.notes)


def test_python_two_only(recipe: Any) -> None:
    made = recipe({"setup.py": "setup(classifiers=['Programming Language :: Python :: 2 :: Only'])"})
    assert not SpecifierSet(made.requires_python or "").contains("3.6")


def test_requirement_files(recipe: Any) -> None:
    made = recipe(
        {
            "setup.py": "setup(install_requires=open('requirements.txt').read().split())",
            "requirements.txt": "-r more.txt\nsix==1.10 \\\n  --hash=sha256:00\n-e .\n--index-url https://x.invalid\n",
            "more.txt": "attrs # why\n-r ../../etc/passwd\n-r requirements.txt\n",
            "requirements-test.txt": "nose\nflake8==3.0\ntox\n",
            "tox.ini": (
                "[testenv]\ndeps =\n    mock\n    py27: unittest2\n    {env:X}\n    -r{toxinidir}/tox.txt\n"
                "[pytest]\naddopts = -v\n    --cov=lib\n"
            ),
            "tox.txt": "pretend\n",
            "lib/__init__.py": "",
        }
    )
    assert made.requirements == ["attrs", "pytest", "six==1.10"]
    assert made.test_requirements == ["mock", "nose", "pretend", "pytest-cov"]


def test_a_list_of_what_developers_had_installed_is_ignored(recipe: Any) -> None:
    made = recipe({"setup.py": "setup(name='lib')", "requirements.txt": "sphinx==1.0\n", "lib/__init__.py": ""})
    assert made.requirements == ["pytest"]
    assert any("requirements.txt ignored" in note for note in made.notes)


def test_imports_of_tests_are_installed_only_when_known(recipe: Any) -> None:
    test = "import yaml\nimport helper_of_ours\nfrom hypothesis import given\ntry:\n    import numpy\nexcept E: pass\n"
    made = recipe(
        {"lib/__init__.py": "", "tests/test_a.py": test, "six/__init__.py": "", "tests/test_b.py": "import six"}
    )
    assert made.test_requirements == ["hypothesis", "pyyaml"]


def test_what_cannot_be_used_is_noted(recipe: Any) -> None:
    made = recipe(
        {
            "setup.py": "setup(install_requires=['six', 'no such thing ==', 'x @ file:///etc', 'y @ git+ssh://h/y'],"
            "python_requires='three')",
            "pyproject.toml": "not toml [",
            "lib/__init__.py": "",
        }
    )
    assert made.requirements == ["pytest", "six"]
    assert made.requires_python is None
    assert len(made.notes) == 5


@pytest.mark.parametrize(
    ("wanted", "kept"), [("pytest==2.9.1", "pytest"), ("pytest<4", "pytest<4"), ("pytest>=9", "pytest>=9")]
)
def test_pytest_is_never_older_than_the_probe_can(recipe: Any, wanted: str, kept: str) -> None:
    assert recipe({"setup.py": f"setup(tests_require=[{wanted!r}])"}).test_requirements == [kept]


def test_what_was_pinned_with_an_old_pytest_does_not_keep_it(recipe: Any) -> None:
    pins = "pytest==2.9.2\nhypothesis-pytest==0.18.1\npluggy==0.3.1\npy==1.4.31\npytest-cov==2.3.0\npytz==2016.1\n"
    made = recipe({"requirements-test.txt": pins, "lib/__init__.py": ""})
    assert made.test_requirements == ["hypothesis-pytest", "pluggy", "py", "pytest", "pytest-cov", "pytz==2016.1"]


def test_the_registry_says_it_better(recipe: Any) -> None:
    made = recipe(
        {
            "setup.py": "setup(name='lib', ext_modules=[x], python_requires='>=3.6', install_requires=['six'])",
            "lib/__init__.py": "",
            "python/lib/__init__.py": "",
        },
        packages=["lib"],
        source_dirs=["gone", "python"],
        python="<3.12",
        requirements=["cython"],
        test_requirements=["mock"],
    )
    assert made.requires_python == "<3.12,>=3.6"
    assert made.requirements == ["cython", "pytest", "six"]
    assert made.test_requirements == ["mock"]
    assert made.source_roots == ["python"]
    assert made.build == []


def test_a_project_below_the_top_is_built_and_tested_there(recipe: Any) -> None:
    files = {
        "native/pyproject.toml": "[build-system]\nrequires = ['meson-python']\nbuild-backend = 'mesonpy'\n"
        "[project]\nname = 'lib'\ndependencies = ['six']\noptional-dependencies.test = ['pytest-asyncio']\n",
        "native/lib/__init__.py": "",
        "native/lib/core.py": "",
        "other/setup.py": "setup(name='other', install_requires=['attrs'])",
        "other/other.py": "",
        ".github/workflows/tests.yml": "jobs: {a: {steps: [{run: pip install -r native/ci.txt}]}}",
        "native/ci.txt": "mock\nhttps://host.example/a/ParamIt/tarball/all\ngit+https://host.example/a/b#egg=six_two\n"
        + f"x://{'#&' * 50_000}\na{' ' * 50_000}b @ c://d\n",  # of strangers: it keeps nobody busy
    }
    made = recipe(files)
    assert (made.packages, made.source_roots) == (["lib"], ["native"])
    assert "six" in made.requirements and "attrs" not in made.requirements
    assert made.test_requirements == ["pytest-asyncio"]
    assert {"mock", "paramit", "six-two"} <= {*made.declared}  # the index may have what has an address here
    (command,) = made.build
    assert command.startswith("cd native && ") and " --target ../.perfquarry-site " in command
    named = recipe(files, project_dir="other")
    assert (named.packages, named.source_roots, named.build) == (["other"], ["other"], [])
    assert "attrs" in named.requirements


def test_of_a_workspace_what_a_change_needs(recipe: Any) -> None:
    """opentelemetry-python: a root that is no package, projects that require each other, tests with their own."""
    project = "[build-system]\nrequires = ['hatchling']\nbuild-backend = 'hatchling.build'\n[project]\nname = '{}'\n{}"
    packages = "[tool.hatch.build.targets.wheel]\npackages = ['src/tele']\n"
    asks = "import importlib.metadata\n"
    files = {
        "pyproject.toml": "[project]\nname = 'whole'\ndependencies = ['nothing']\n[tool.uv]\npackage = false\n",
        "api/pyproject.toml": project.format("tele-api", "dependencies = ['six']\n" + packages),
        "api/src/tele/trace/__init__.py": asks,
        "sdk/pyproject.toml": project.format("tele-sdk", "dependencies = ['tele_api == 1.dev', 'attrs']\n" + packages),
        "sdk/src/tele/sdk/trace/__init__.py": "",
        "sdk/src/tele/sdk/logs.py": "",
        "sdk/test-requirements.txt": "mock\n-e tests/util\n-e sdk\n-e ../outside\n",
        "tests/util/pyproject.toml": project.format("tele-test", "dependencies = ['pretend']\n" + packages),
        "tests/util/src/tele/test/__init__.py": "",
        "more/exporter/pyproject.toml": project.format("exporter", "dependencies = ['lxml']\n"),
        "more/exporter/exporter.py": "",
        "more/exporter/other.py": "",
    }
    made = recipe(files, needed_for=["sdk/src/tele/sdk/trace/__init__.py"])
    assert made.source_roots == ["sdk/src", "api/src", "tests/util/src"]
    assert made.packages == ["tele.sdk", "tele.trace", "tele.test"]
    assert made.requirements == ["attrs", "pretend", "pytest", "six"]
    assert made.test_requirements == ["mock"]
    assert [re.findall(r"Name: ([\w-]+)", command) for command in made.build] == [
        ["tele-sdk"],
        ["tele-api"],
        ["tele-test"],
    ]
    again = recipe(files, needed_for=made.source_roots)
    assert (again.source_roots, again.build) == (made.source_roots, made.build)

    one = recipe(files, needed_for=["more/exporter/exporter.py"])
    assert (one.source_roots, one.requirements, one.build) == (["more/exporter"], ["lxml", "pytest"], [])
    both = recipe(files, needed_for=["more/exporter/exporter.py", "api/src/tele/trace/__init__.py", "docs/conf.py"])
    assert (both.source_roots, both.packages[-1]) == (["more/exporter", "api/src"], "tele.trace")
    for top in ("[tool.poetry]\npackage-mode = false\n", "[tool.poetry]\nname = 'all'\nversion = '0'\n"):
        alone = {**files, "pyproject.toml": top + "[build-system]\nrequires = ['poetry']\n"}
        assert recipe(alone, needed_for=["more/exporter/exporter.py"]).requirements == ["lxml", "pytest"]
    assert recipe({**alone, "all/__init__.py": ""}, needed_for=["more/exporter/exporter.py"]).packages == ["all"]
    native = {"pyproject.toml": "[project]\nname = 'fast'\n", "examples/one/setup.py": "setup(name='one')"}
    assert recipe({**native, "examples/one/one.py": ""}, needed_for=["examples/one/one.py"]).source_roots == ["."]
    named = recipe(files, needed_for=["more/exporter/exporter.py"], project_dir="api")
    assert named.source_roots == ["api/src"]


def test_an_empty_tree_has_a_recipe(recipe: Any) -> None:
    assert recipe({}) == Recipe(requirements=["pytest"], source_roots=["."])


def test_one_module(recipe: Any) -> None:
    made = recipe(
        {"setup.py": "setup(py_modules=['single'])", "single.py": "", "conftest.py": "", "test_single.py": ""}
    )
    assert made.packages == ["single"]


def test_tail_keeps_the_end_within_its_bytes() -> None:
    assert tail("short") == "short"
    cut = tail("é" * LOG_BYTES + "end")
    assert len(cut.encode()) <= LOG_BYTES
    assert cut.startswith("[...]") and cut.endswith("end")


def test_tail_keeps_lines_that_report_an_error() -> None:
    failed = "      FAILED: [code=1] npyv.o\nsort.hpp:3:10: fatal error: npyv.h: No such file or directory\n"
    noise = "warning: maybe uninitialized\n"
    cut = tail(noise * 5000 + failed + noise * 5000 + "ninja: build stopped")
    assert cut.startswith("[...]\n" + failed + "[...]\n") and cut.endswith("ninja: build stopped")
    for flood in ("é error: " * 100_000 + "\nx", "FAILED: é\n" * 100_000, " error: \n" * 1_000_000):
        assert len(tail(flood).encode()) <= LOG_BYTES


@pytest.mark.parametrize(
    "files",
    [
        {"pyproject.toml": "[dependency-groups]\ntest = ['mock', {include-group = 'more'}]\nmore = ['pretend']"},
        {
            "pyproject.toml": "[project]\noptional-dependencies.checks = ['mock', 'pretend']",
            "tox.ini": "[testenv]\nextras = checks\n",
        },
        {
            "pyproject.toml": "[dependency-groups]\nchecks = ['mock', 'pretend']",
            "tox.ini": "[testenv]\ndependency_groups =\n    checks\n",
        },
        {"pyproject.toml": "[tool.pdm.dev-dependencies]\ntest = ['mock', 'pretend']"},
        {"pyproject.toml": "[tool.uv]\ndev-dependencies = ['mock', 'pretend']"},
        {"pyproject.toml": "[tool.hatch.envs.default]\ndependencies = ['mock', 'pretend']"},
        {
            "pyproject.toml": "[project]\noptional-dependencies.x = ['pretend']\n"
            "[tool.hatch.envs.test]\ndependencies = ['mock']\nfeatures = ['x']"
        },
        {
            "noxfile.py": "import nox\n@nox.session(python=['3.11'])\ndef tests(session):\n"
            "    session.install('-r', 'needs/of-tests.txt')\n    session.run('pytest')\n"
            "@nox.session\ndef docs(session):\n    session.install('-r', 'docs.txt')\n",
            "needs/of-tests.txt": "mock\npretend\n",
            "docs.txt": "sphinx-of-theirs\n",
        },
        {"tox.ini": "[testenv]\ndeps =\n    -r needs/of-tests.txt\n", "needs/of-tests.txt": "mock\npretend\n"},
    ],
)  # fmt: skip
def test_where_projects_say_what_their_tests_need(recipe: Any, files: dict[str, str]) -> None:
    made = recipe({**files, "lib/__init__.py": ""})
    assert made.test_requirements == ["mock", "pretend"]
    assert made.tested == (["3.11"] if "noxfile.py" in files else [])
