"""Tests that only a plugin runs: Django's, with the settings that the tree's runner names, and pytest-describe's."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest
from probed import uv

from perfquarry.harness.contracts import BuiltSide, Limits, ProbeRequest
from perfquarry.harness.metadata.test_requirements import django_needs
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.sandbox import choose_sandbox

SETTINGS = """\
    DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
    INSTALLED_APPS = ["django.contrib.contenttypes", "shop"]
    """
SHOP = {
    "shop/__init__.py": "",
    "shop/models.py": """\
        from django.db import models

        class Item(models.Model):
            name = models.CharField(max_length=10)
        """,
}
USES = """\
    from django.test import TestCase
    from shop.models import Item

    class Items(TestCase):
        def test_rows(self):
            Item.objects.create(name="one")
            self.assertEqual(Item.objects.count(), 1)
    """
MANAGE = """\
    import os
    import sys

    if __name__ == "__main__":
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "%s")
        from django.core.management import execute_from_command_line

        execute_from_command_line(sys.argv)
    """
CONFIGURES = """\
    import sys
    from django.conf import settings

    if not settings.configured:
        # what the tests need

        settings.configure(
            **dict(
                DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
                INSTALLED_APPS=["django.contrib.contenttypes", "shop"],
            )
        )

    from django.test.simple import run_tests

    def run():
        sys.exit("the tests were run")

    if __name__ == "__main__":
        run()
    """
Tree = dict[str, str]
TREES: dict[str, Tree] = {
    "runtests.py names them": {
        **{f"src/{path}": text for path, text in SHOP.items()},
        "runtests.py": MANAGE % "tests.settings",
        "tests/__init__.py": "",
        "tests/settings.py": SETTINGS,
        "tests/test_shop.py": USES,
    },
    "manage.py within the tests": {
        **SHOP,
        "tests/manage.py": MANAGE % "settings",
        "tests/settings.py": SETTINGS,
        "tests/mine/__init__.py": "",
        "tests/mine/tests.py": USES,
    },
    "an example is no settings of tests": {
        **SHOP,
        "manage.py": MANAGE % "example.settings",
        "example/settings.py": "raise RuntimeError('not these')",
        "tox.ini": "[testenv]\ncommands = coverage run -m django test --settings tests.settings {posargs}\n",
        "tests/__init__.py": "",
        "tests/settings/__init__.py": SETTINGS,
        "tests/test_shop.py": USES,
    },
    "a script configures them, and imports what is gone": {
        **SHOP,
        "shop/tests/runtests.py": CONFIGURES,
        "shop/tests/test_shop.py": USES,
    },
}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plugins") / "env"
    uv("venv", "-q", "--python", sys.executable, str(folder))
    uv("pip", "install", "-q", "--python", str(folder / "bin/python"), "django", "pytest-django", "pytest-describe")
    return folder / "bin" / "python"


def outcomes(tmp_path: Path, python: Path, files: Tree, test: str) -> dict[str, str]:
    """What became of the tests of a file, in a process that checks them and in one that takes turns."""
    tree = tmp_path / "tree"
    for path, text in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(textwrap.dedent(text))
    roots = (tree / "src",) if (tree / "src").exists() else (tree,)
    built = BuiltSide("base", "sha", tree, python, "e", roots)
    prober, limits = Prober(choose_sandbox(), tmp_path / "scratch"), Limits(wall_seconds=100.0)
    report = prober.run(built, ProbeRequest(mode="check", arguments=[test]), limits=limits)
    assert report.outcome == "finished", report.output
    assert not report.collect_errors
    with prober.open(built, ProbeRequest(mode="turns", arguments=[test]), limits=limits) as partner:
        partner.ready()
        for item in report.items:
            assert partner.warm(item.node, 2)
            assert len(partner.turn(item.node, 1, [0.5])) == 1
    return {item.node: item.outcome for item in report.items}


@pytest.mark.parametrize("kind", TREES)
def test_django_has_the_settings_that_the_runner_of_the_tree_names(kind: str, tmp_path: Path, python: Path) -> None:
    files = TREES[kind]
    [test] = [path for path in files if files[path] is USES]
    assert outcomes(tmp_path, python, files, test) == {f"{test}::Items::test_rows": "passed"}
    assert django_needs(tmp_path / "tree") == ["pytest-django", "django"]


def test_functions_within_those_of_pytest_describe_are_tests(tmp_path: Path, python: Path) -> None:
    """graphql-core's."""
    text = "def describe_sums():\n    def adds():\n        assert 1 + 1 == 2\n    def _helps(): ...\n"
    found = outcomes(tmp_path, python, {"test_sums.py": text}, "test_sums.py")
    assert found == {"test_sums.py::describe_sums::adds": "passed"}
    assert django_needs(tmp_path / "tree") == []
