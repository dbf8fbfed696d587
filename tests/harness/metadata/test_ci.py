from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfquarry.data.registry import Repository
from perfquarry.harness.metadata.ci import Ci, read_ci, read_conda, versions_of_tox
from perfquarry.harness.metadata.recipe import Recipe, read_recipe


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def files(contents: dict[str, str]) -> Path:
        for name, text in contents.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    return files


TRAVIS = """
language: python
python: [2.7, &newest 3.10, "3.6", pypy3, nightly, 3.11-dev]
addons: {apt: {packages: [libffi-dev, gfortran, "bad name"]}}
matrix:
  include:
    - {python: *newest, env: TOXENV=py38-full}
  allow_failures:
    - python: 3.12
before_install:
  - sudo apt-get update && sudo apt-get install -y -q libxml2-dev
install:
  - if [[ $TRAVIS_PYTHON_VERSION == 2* ]]; then travis_retry pip install futures; fi
  - pip install -U pip 'mock>=1.0' $EXTRA -r requirements/test.txt -c limits.txt
  - python -m pip install -e ".[dev,test]"
  - "pip install \\\\\\n  --pre hypothesis"
script: pytest -v
after_success: pip install codecov
"""


def test_travis(write: Any) -> None:
    assert read_ci(write({".travis.yml": TRAVIS})) == Ci(
        pythons=["2.7", "3.10", "3.6", "3.8"],
        requirements=["futures", "pip", "mock>=1.0", "hypothesis"],
        files=["requirements/test.txt"],
        extras=["dev", "test"],
        system_packages=["libffi-dev", "gfortran", "libxml2-dev"],
    )


def test_github_and_circle(write: Any) -> None:
    tree = write(
        {
            ".github/workflows/tests.yml": """
                on: push
                jobs:
                  test:
                    strategy:
                      matrix:
                        python-version: [3.9, 3.10, "3.12.0-rc.1", pypy-3.9]
                        include: [{python: "3.11", tox_env: py37}]
                        exclude: [{python-version: 3.6}]
                    steps:
                      - uses: actions/setup-python@v4
                        with: {python-version: "${{ matrix.python-version }}"}
                      - run: |
                          python -m pip install --upgrade pip
                          pip install ".[test]" pytest-cov https://x.invalid/y.whl  # why
            """,
            ".github/workflows/lint.yaml": "jobs: {a: {steps: [{with: {python-version: '3.13'}}]}}",
            ".circleci/config.yml": "jobs: {a: {docker: [image: 'cimg/python:3.8.2'], steps: [run: pip install nose]}}",
        }
    )
    found = read_ci(tree)
    assert found.pythons == ["3.8", "3.9", "3.10", "3.11", "3.7"]
    assert (found.requirements, found.extras) == (["nose", "pip", "pytest-cov"], ["test"])


SCRIPT = """#!/bin/sh -e
REQUIREMENTS="requirements.txt"
if [ -z "$GITHUB_ACTIONS" ]; then
    PIP="$VENV/bin/pip"
else
    PIP="pip"
fi
"$PIP" install -U pip
"$PIP" install -r "$REQUIREMENTS"
"""
MAKEFILE = """PIP = python -m pip
deps: venv
\t@$(PIP) install -r dev.txt
\t-$(PIP) install ${EXTRA} 'hypothesis'
venv:
\t$(PIP) install never
"""


@pytest.mark.parametrize(
    ("command", "files", "requirements"),
    [
        ("scripts/install", ["requirements.txt"], ["pip"]),
        ("sh ./scripts/install --fast && pytest", ["requirements.txt"], ["pip"]),
        ("make deps test", ["dev.txt"], ["hypothesis"]),
        ("scripts/nowhere; ../outside/install; scripts/program; make", [], []),
    ],
)
def test_scripts_and_targets_that_the_ci_calls_are_read(
    write: Any, command: str, files: list[str], requirements: list[str]
) -> None:
    workflow = f"jobs: {{tests: {{steps: [{{run: '{command}'}}]}}}}"
    tree = write(
        {
            "tree/.github/workflows/test-suite.yml": workflow,
            "tree/scripts/install": SCRIPT,
            "tree/scripts/program": "#!/usr/bin/env python3\npip install no-shell\n",
            "tree/Makefile": MAKEFILE,
            "outside/install": SCRIPT,
        }
    )
    assert read_ci(tree / "tree") == Ci(files=files, requirements=requirements)


def test_extras_of_the_package_in_a_list_of_requirements(write: Any) -> None:
    """Starlette's: its conftest needs httpx, of the extra `full`, and says so in an error of its own."""
    project = "[project]\nname = 'lib'\n[project.optional-dependencies]\nfull = ['httpx>=0.22', 'jinja2']\n"
    files = {
        "pyproject.toml": project,
        "requirements.txt": "-e .[full]\npytest==8.3\nmkdocs==1.6\n-e .\n",
        "lib/__init__.py": "",
        "tests/test_lib.py": "import lib\n",
    }
    tree = write(files)
    made = recipe(tree)
    assert made.test_requirements == ["httpx>=0.22", "jinja2", "pytest"]
    assert {"httpx>=0.22", "jinja2"} <= {*made.declared}
    write({"requirements.txt": "six==1.10\n"})
    assert "six==1.10" not in recipe(tree).test_requirements, "of whoever uses it"


def test_workflows_about_other_things_count_where_there_is_no_other(write: Any) -> None:
    assert read_ci(write({".github/workflows/lint.yml": "python-version: '3.13'"})).pythons == ["3.13"]


NESTED = "a: " + "[" * 20_000
LAUGHS = "a0: &a0 [pip install x]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]\n" for n in range(1, 40))
MERGES = "b0: &b0 {run: pip install six}\n" + "".join(
    f"b{n}: &b{n} {{<<: [{f'*b{n - 1}, ' * 9}]}}\n" for n in range(1, 40)
)


TAGGED = "run: !!python/object/apply:os.abort []"


@pytest.mark.timeout(30)
@pytest.mark.parametrize("text", [NESTED, LAUGHS, MERGES, TAGGED, "- \t@", "a: &a [*a]", "", "3"])
def test_hostile_configuration(write: Any, text: str) -> None:
    found = read_ci(write({".travis.yml": text, "environment.yml": text}))
    assert found.pythons == []
    read_conda(write({}))


def test_conda(write: Any) -> None:
    text = "dependencies: [python=3.9, cython>=0.29, numpydoc=1.1, numpy 1.19.*, libffi, {pip: [attrs, 3]}, {x: y}]"
    assert read_conda(write({"environment.yml": text})) == Ci(
        pythons=["3.9"],
        requirements=["cython>=0.29", "numpydoc==1.1.*", "numpy==1.19.*", "libffi", "attrs", "3"],
    )


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("py27,py36", ["2.7", "3.6"]),
        ("lint,py{38,39,310,py3}-{full,}", ["3.8", "3.9", "3.10"]),
        ("{py34,py35}-x\npypy\npy3", ["3.4", "3.5"]),
    ],
)
def test_environments_of_tox(text: str, versions: list[str]) -> None:
    assert versions_of_tox(text) == versions


def recipe(tree: Path) -> Recipe:
    return read_recipe(tree, Repository(name="lib", codebase="lib"))


def test_recipe_of_a_tree_with_ci(write: Any) -> None:
    made = recipe(
        write(
            {
                ".travis.yml": "python: [3.6, 3.7]\ninstall: [pip install pytest-mock twisted, apt install libpq-dev]",
                "tox.ini": "[tox]\nenvlist = py38\n[testenv]\ndeps =\n  py27: futures\n[testenv:x]\ndeps = nose2\n",
                "environment.yml": "dependencies: [python=3.5, scipy]",
                "requirements/extra.txt": "simplejson<3\n",
                "setup.py": "setup(name='lib', classifiers=['Programming Language :: Python :: 3.4'])",
                "lib/__init__.py": "",
                "conftest.py": "import pytest_mpl\nimport trio\npytest_plugins = ['pytest_asyncio', 'lib.plugin']\n",
            }
        )
    )
    assert made.tested == ["3.6", "3.7", "3.8"]
    assert made.test_requirements == ["pytest-asyncio", "pytest-mock", "pytest-mpl", "trio"]
    assert {"futures", "nose2", "scipy", "simplejson<3", "twisted"} <= set(made.declared)
    assert made.system_packages == ["libpq-dev"]
    assert made.requirements == ["pytest"]


def test_other_sources_of_tested_versions(write: Any) -> None:
    language = "Programming Language :: Python ::"
    classified = f"[metadata]\nclassifiers =\n  {language} 3.8\n  {language} 3.10\n  {language} :: 3\n"
    assert recipe(write({"setup.cfg": classified})).tested == ["3.8", "3.10"]
    assert recipe(write({"environment.yml": "dependencies: [python=3.7]"})).tested == ["3.7"]
