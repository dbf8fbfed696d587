"""What an installation would write, written by commands that really run, and imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perfquarry.harness.metadata.installed_files import VERSION
from perfquarry.harness.metadata.recipe import Recipe

_ASKED_OLD = """
try:
    import pkg_resources
    __version__ = pkg_resources.get_distribution("my-lib").version
except ImportError:
    import importlib.metadata as metadata
    __version__ = metadata.version("my-lib")
"""


@pytest.mark.parametrize(
    ("project", "sources", "asked"),
    [
        (
            {"pyproject.toml": '[project]\nname = "My.Lib"\ndynamic = ["version"]'},
            {"src/my_lib/__init__.py": "from importlib.metadata import version\n__version__ = version('My.Lib')\n"},
            "import my_lib; print(my_lib.__version__)",
        ),
        (
            {"setup.cfg": "[metadata]\nname = my-lib\n"},
            {"my_lib/__init__.py": "from my_lib.about import __version__\n", "my_lib/about.py": _ASKED_OLD},
            "import my_lib; print(my_lib.__version__)",
        ),
        (
            {"pyproject.toml": '[project]\nname = "my-lib"\n[tool.setuptools_scm]\nwrite_to = "my_lib/_version.py"'},
            {"my_lib/__init__.py": "from ._version import version as __version__, version_tuple  # written\n"},
            "import my_lib; print(my_lib.__version__ if my_lib.version_tuple[:2] == (4, 5) else None)",
        ),
        (
            {"setup.py": "from setuptools import setup\nsetup(name='my-lib', use_scm_version=True)"},
            {
                "my_lib/__init__.py": "from my_lib import core\n",
                "my_lib/core/__init__.py": "from ..version import (\n    short_version,  # 'x.y'\n    revision,\n)\n",
            },
            "import my_lib.core; print(my_lib.core.short_version)",
        ),
        (
            {
                "pyproject.toml": '[project]\nname = "my-lib"\ndynamic = ["version"]\n[tool.hatch.build.hooks.vcs]\n'
                'version-file = "src/_my_lib_version.py"\n[tool.hatch.build.targets.wheel]\nonly-include = ["src"]\n'
            },
            {
                "src/my_lib/__init__.py": "from _my_lib_version import version as __version__\n",
                "src/_my_lib_version.pyi": "version: str\n",
                "src/my_lib/cache.py": "import _my_lib_version\nfrom _nobodys_version import version\n",
            },
            "import my_lib; print(my_lib.__version__)",
        ),
        (
            {
                "setup.py": "setup(name='my-lib', package_dir={'': 'src'}, "
                "use_scm_version={'write_to': 'src/_my_version.py'})"
            },
            {"src/my_lib/__init__.py": "import _my_version\n"},
            "import my_lib; print(my_lib._my_version.version)",
        ),
        (
            {"pyproject.toml": '[project]\nname = "my-lib"\n[tool.setuptools_scm]\nwrite_to = "my_lib/version.py"'},
            {"my_lib/__init__.py": '"""My library.\n\n   version: 0.9\n"""\nfrom .version import version\n'},
            "import my_lib; print(my_lib.version)",
        ),
        (
            {"setup.cfg": "[metadata]\nname = my-lib\n[versioneer]\nVCS = git\n"},
            {
                "my_lib/__init__.py": "from my_lib._version import get_versions\nfound = get_versions()\n"
                "__version__ = '.'.join(str(int(one)) for one in found['version'].split('.'))\n"
                "assert found['error'] is None\n",
                "my_lib/_version.py": 'def get_keywords():\n    git_refnames = "$Format:%d$"\n'
                "def get_versions():\n    return {'version': '0+unknown'}\n",
            },
            "import my_lib; print(my_lib.__version__)",
        ),
        (
            {"pyproject.toml": '[project]\nname = "my-lib"\n[tool.versioningit.write]\nfile = "my_lib/scm.py"\n'},
            {"my_lib/__init__.py": "from .scm import __version__\n"},
            "import my_lib; print(my_lib.__version__)",
        ),
    ],
    ids=[
        "importlib.metadata",
        "pkg_resources",
        "setuptools-scm",
        "a module above",
        "hatch-vcs, beside the package",
        "setuptools-scm in setup.py, beside the package",
        "setuptools-scm, a docstring with the version",
        "versioneer",
        "a name that speaks of no version",
    ],
)
def test_what_an_installation_would_write_is_written(
    recipe: Any, tmp_path: Path, project: dict[str, str], sources: dict[str, str], asked: str
) -> None:
    made = recipe({**project, **sources})
    assert made.build
    _run(made, tmp_path, version="4.5.6")
    assert _python(made, tmp_path, asked) == "4.5.6"
    _run(made, tmp_path, version="9.9")
    assert _python(made, tmp_path, asked) in ("4.5.6", "9.9"), "commands may run twice in one tree"


@pytest.mark.parametrize("alias", ["", " as asked"])
def test_a_function_of_another_build_is_no_version(recipe: Any, tmp_path: Path, alias: str) -> None:
    """As in numpy while it had both setup.py and meson, and the import of what only meson writes may fail."""
    name = alias.rpartition(" ")[2] or "get_versions"
    text = f"""
from my_lib._version import version
try:
    from my_lib._version_meson import get_versions{alias}
except ImportError:
    {name} = dict
found = {name}(version=version)
try:
    from importlib.metadata import version
    version("nothing")
except Exception:
    from my_lib._version import version as __version__
"""
    made = recipe({"setup.py": "from setuptools import setup\nsetup(name='my-lib')", "my_lib/__init__.py": text})
    _run(made, tmp_path, version="4.5.6")
    assert _python(made, tmp_path, "import my_lib; print(my_lib.found['version'])") == "4.5.6"


@pytest.mark.parametrize(
    "project",
    [
        {"pyproject.toml": "[project]\nname = 'lib'\n[project.entry-points.'lib.plugins']\none = 'lib:ONE'"},
        {"pyproject.toml": "[tool.poetry]\nname = 'lib'\n[tool.poetry.plugins.'lib.plugins']\none = 'lib:ONE'"},
        {"setup.cfg": "[metadata]\nname = lib\n[options.entry_points]\nlib.plugins =\n    one = lib:ONE\n"},
        {"setup.cfg": "[metadata]\nname = lib\n[entry_points]\nlib.plugins =\n    # one\n    one = lib:ONE\n"},
        {"setup.py": "from setuptools import *\nsetup(name='lib', entry_points={'lib.plugins': ['one = lib:ONE']})"},
    ],
    ids=["pyproject", "poetry", "setup.cfg", "pbr", "setup.py"],
)
def test_plugins_are_found_by_their_entry_points(recipe: Any, tmp_path: Path, project: dict[str, str]) -> None:
    source = "from importlib.metadata import entry_points\nONE = 1\n"
    made = recipe({**project, "lib/__init__.py": source})
    _run(made, tmp_path)
    asked = "import lib; print([one.load() for one in lib.entry_points(group='lib.plugins')])"
    assert _python(made, tmp_path, asked) == "[1]"


@pytest.mark.parametrize(
    ("source", "asks"),
    [
        ("import pbr.version\n", True),
        ("from pbr import version\n", True),
        ("from stevedore import driver\n", True),
        ("import stevedore\n", True),
        ("from .pbr import versions\nstevedores = 'stevedore'\n", False),
    ],
)
def test_libraries_that_look_for_metadata_in_its_place(recipe: Any, source: str, asks: bool) -> None:
    """bandit: its version by pbr, its plugins by stevedore."""
    made = recipe({"setup.cfg": "[metadata]\nname = lib\n", "lib/__init__.py": source})
    assert bool(made.build) == asks


def test_a_plugin_of_pytest_brings_its_fixtures_to_its_own_tests(recipe: Any, tmp_path: Path) -> None:
    project = "[project]\nname = 'lib'\n[project.entry-points]\npytest11 = {lib = 'lib.plugin'}"
    plugin = "import pytest\n@pytest.fixture\ndef value(): return 1\n"
    files = {"pyproject.toml": project, "lib/__init__.py": "", "lib/plugin.py": plugin}
    made = recipe(files)
    _run(made, tmp_path)
    test = tmp_path / "test_it.py"
    test.write_text("def test_it(value): assert value == 1")
    asked = f"import pytest; print(pytest.main(['-qq', '-p', 'no:cacheprovider', {str(test)!r}]).name)"
    assert _python(made, tmp_path, asked).endswith("OK")


@pytest.mark.parametrize(
    "sources",
    [
        {"lib/__init__.py": "__version__ = '1'\nfrom . import core\n", "lib/core.py": "from . import __version__\n"},
        {"lib/__init__.py": "from .version import version\n", "lib/version.py": "version = '1'\n"},
        {"lib/__init__.py": "import pkg_resources\nHERE = pkg_resources.resource_filename('lib', 'data')\n"},
        {"lib/__init__.py": "from packaging.version import Version\nimport six.version\n"},
        {"lib/__init__.py": "", "lib/x.py": "from lib import version\n", "lib/version/__init__.py": ""},
        {"lib/__init__.py": "from _lib_version import version\n"},
        {"lib.egg-info/PKG-INFO": "Name: lib", "lib/__init__.py": "import importlib.metadata\n"},
    ],
)
def test_a_tree_that_has_all_is_used_as_it_is(recipe: Any, sources: dict[str, str]) -> None:
    assert recipe({"pyproject.toml": "[project]\nname = 'lib'", **sources}).build == []


def test_names_of_strangers_are_no_shell(recipe: Any, tmp_path: Path) -> None:
    project = {
        "pyproject.toml": "[project]\nname = 'lib; touch hacked'\n[project.entry-points.'$(touch hacked)']\na = 'b'"
    }
    source = (
        "import importlib.metadata\nfrom ._version import x; touch_hacked\nfrom .my_version import $(touch hacked)\n"
    )
    for text in (source, source.replace("from", "#")):
        made = recipe({**project, "lib/__init__.py": text})
        _run(made, tmp_path)
    made = recipe(
        {"pyproject.toml": project["pyproject.toml"].replace("; touch hacked", ""), "lib/__init__.py": source}
    )
    _run(made, tmp_path)
    assert "$(touch hacked)" in (tmp_path / "lib.egg-info/entry_points.txt").read_text()
    assert not list(tmp_path.rglob("hacked"))


def _run(made: Recipe, tree: Path, version: str = "1.2") -> None:
    for command in made.build:
        subprocess.run(["/bin/sh", "-c", command], cwd=tree, check=True, env={**os.environ, VERSION: version})


def _python(made: Recipe, tree: Path, code: str) -> str:
    roots = os.pathsep.join(str(tree / root) for root in made.source_roots)
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": roots, "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "text",
    [
        "pkg_resources " * 70_000,
        "from . import (\n" * 60_000,
        "from " + "." * 900_000 + " x",
        "importlib import " * 60_000,
        "from .a" + "version" * 100_000 + "! import",
        "".join(f"from .version{number} import x\n" for number in range(30_000)),
        "from .version import " + ", ".join(f"x{number}" for number in range(100_000)),
        ("from ._version import " + ", ".join(f"x{number}" for number in range(99)) + "\n") * 1_400,
        "x as " * 200_000 + "\nfrom ._version import x" + "(" * 9 + "x " * 9_000 + "(",
        "from ." + "a." * 400 + "version import x\nfrom ." + "version" * 200 + " import x\n",
        "version_file" * 80_000 + " = '" + "a/" * 90_000,
        "from " + "." * 50 + "version import x\nfrom ....version import x\nfrom ._version import class, None, x\n",
    ],
    ids=[
        "asks",
        "brackets",
        "dots",
        "imports",
        "name",
        "modules",
        "names",
        "again",
        "aliases",
        "long",
        "file",
        "above",
    ],
)
def test_what_strangers_write_keeps_nobody_busy(recipe: Any, tmp_path: Path, text: str) -> None:
    made = recipe({"pyproject.toml": "[project]\nname = 'lib'", "lib/__init__.py": text})
    assert len(made.build) <= 2 and all(len(command) < 2_000 for command in made.build)
    _run(made, tmp_path)
    assert not [path for above in tmp_path.parents for path in above.glob("*version*.py")]


@pytest.mark.parametrize("value", ["a\\u0000b", "a\\nb", "x" * 100_000], ids=["NUL", "two lines", "long"])
def test_entry_points_that_fit_on_no_line_are_left_out(recipe: Any, tmp_path: Path, value: str) -> None:
    project = f'[project]\nname = "lib"\n[project.entry-points.plugins]\none = "{value}"'
    made = recipe({"pyproject.toml": project, "lib/__init__.py": "import importlib.metadata"})
    _run(made, tmp_path)
    assert [path.name for path in (tmp_path / "lib.egg-info").iterdir()] == ["PKG-INFO"]


def test_links_out_of_the_tree_are_not_read(
    recipe: Any, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "one.py").write_text("import importlib.metadata\nfrom lib._version import x\n")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "linked").symlink_to(outside)
    assert recipe({"pyproject.toml": "[project]\nname = 'lib'", "lib/__init__.py": ""}).build == []
