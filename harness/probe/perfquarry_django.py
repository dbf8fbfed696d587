"""The settings of Django that a tree's tests run with, where a runner of the tree names them.

pytest-django takes settings from pytest's configuration or from the environment alone. Trees whose tests are run by
`manage.py test`, `django-admin test` or a script of their own name them there. Python 3.6 to 3.14, standard library
only.
"""

import glob
import os
import re
import runpy
import sys
from importlib.util import find_spec

_FILES = (
    ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
    + tuple(
        folder + name
        for folder in ("", "test*/", "*/test*/")
        for name in ("runtests.py", "run_tests.py", "runtests.sh", "run_tests.sh", "manage.py", "quicktest.py")
    )
    + ("Makefile", "justfile", "noxfile.py", "setup.py", ".travis.yml", ".github/workflows/*.yml")
)
_NAMED = re.compile(
    r"DJANGO_SETTINGS_MODULE[\"']?\]?[ \t]*[,:=]+[ \t]*[\"']?([A-Za-z_][\w.]*)"
    r"|--(?:settings|ds)(?:=|[ \t]+|[\"'][ \t]*,[ \t]*)[\"']?([A-Za-z_][\w.]*)"
)
_CONFIGURED = re.compile(
    r"^(?:if not settings\.configured:[ \t]*\n(?:[ \t]+\S.*\n|[ \t]*\n)*?[ \t]+)?settings\.configure\(", re.M
)
_MOST = 20
"""Names of settings in one file, folders of tests, files of a pattern; a stranger's tree may have any number."""
_GUARD = re.compile(r"^if __name__ ?==", re.M)


def settings_of_tests(tree):
    """(name of the module, folder to import it from) or None: of those that exist, one that is about tests first."""
    found = []
    inner = sorted(glob.glob(os.path.join(glob.escape(tree), "test*", "")))[:_MOST]
    for path, text in _texts(tree):
        names = [match.group(1) or match.group(2) for match in _NAMED.finditer(text)]
        for name in list(dict.fromkeys(names))[:_MOST]:
            for folder in [tree, os.path.dirname(path)] + inner:
                place = os.path.join(folder, *name.split("."))
                if os.path.isfile(place + ".py") or os.path.isfile(os.path.join(place, "__init__.py")):
                    found.append((name, os.path.normpath(folder), os.path.relpath(place, tree)))
                    break
    found.sort(key=lambda one: "test" not in one[2])  # stable: as the files are listed
    return found[0][:2] if found else None


def options_of_django(tree):
    """Options of pytest by which pytest-django finds the tree's settings; configures Django where a script does."""
    if os.environ.get("DJANGO_SETTINGS_MODULE") or not (find_spec("pytest_django") and find_spec("django")):
        return []
    named = settings_of_tests(tree)
    if named:
        sys.path.append(named[1])
        return ["--ds=" + named[0]]
    for path, text in _texts(tree):
        if path.endswith(".py") and _CONFIGURED.search(text) and _GUARD.search(text):
            sys.path.append(os.path.dirname(path))
            try:
                runpy.run_path(path, run_name="settings_of_tests")
            except Exception:
                from django.conf import settings

                if not settings.configured:  # else the runner that it imports next is of another version of Django
                    raise
            break
    return []


def _texts(tree):
    for pattern in _FILES:
        for path in sorted(glob.glob(os.path.join(glob.escape(tree), pattern)))[:_MOST]:
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    yield path, file.read(1 << 17).decode("utf-8", "replace")
