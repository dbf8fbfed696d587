"""What is read of a setup.py, which is never run, and of the files of requirements that metadata names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def test_setup_py_is_read_but_never_run(recipe: Any, tmp_path: Path) -> None:
    script = f"""
import sys, os
open({str(tmp_path / "ran")!r}, "w").close()
base = ["certifi"]
kwargs = {{}}
if sys.version_info < (3, 2):
    base.append("backports.ssl_match_hostname")
else:
    base += ["six>=1"]
kwargs["python_requires"] = ">= 3.5"
setup(name="lib" + os.environ.get("X", ""), install_requires=base + ["attrs"], tests_require="mock",
      classifiers=["Programming Language :: Python :: 3"], packages=["lib", "lib.sub"], **kwargs)
"""
    made = recipe({"setup.py": script, "lib/__init__.py": "", "other/__init__.py": ""})
    assert made.requirements == ["attrs", "certifi", "pytest", "six>=1"]
    assert made.test_requirements == ["mock"]
    assert made.requires_python == ">=3.5"
    assert made.packages == ["lib"]
    assert made.build == []
    assert not (tmp_path / "ran").exists()


CHOICES = """
import os, platform, sys
from setuptools import setup
OLD = sys.version_info[0] == 2
WINDOWS = os.name == "nt" or platform.system() == "Windows"
setup(
    name="lib",
    install_requires=[
        "munkres~=1.0" if sys.version_info < (3, 5) else "munkres!=1.1" if sys.version_info < (3, 6) else "munkres",
        "pathlib" if OLD else "certifi",
        "discogs" if sys.version_info[1] < 5 else "python3-discogs",
    ]
    + (["colorama"] if WINDOWS or sys.platform == "win32" else ["attrs"])
    + (["inotify"] if sys.platform != "win32" and not WINDOWS and not OLD else [])
    + (["flask"] if os.environ.get("FLASK") else ["bottle"]),
)
"""


CELERY = """
import codecs, os, sys
from setuptools import setup
PY3 = sys.version_info[0] == 3
JYTHON = sys.platform.startswith("java")
def reqs(*f):
    return [line.strip() for line in open(os.path.join(os.getcwd(), "requirements", *f)).readlines()]
install_requires = reqs("default.txt") + reqs("new.txt" if PY3 else "old.txt")
if JYTHON:
    install_requires.extend(reqs("jython.txt"))
setup(name="lib", install_requires=install_requires, long_description=open("README.txt").read())
"""
LOOP = """
from setuptools import setup
found = ["six"]
with open("deps/run.in") as file:
    for line in file:
        found.append(line.strip())
setup(name="lib", install_requires=found)
"""
FUNCTION = """
from setuptools import setup
def found():
    with open("requirements/base.txt") as file:
        return file.read().splitlines()
setup(name="lib", install_requires=found())
"""
OUTSIDE = """
from setuptools import setup
setup(install_requires=[*open("../outside.txt"), *open("\\0.txt"), *open("*.txt"), *open("x" * 9 + "/" * 999 + ".txt")])
"""


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {
                "setup.py": CELERY,
                "requirements/default.txt": "pytz>dev\nkombu>=3 # queues\n",
                "requirements/new.txt": "vine",
            }
            | {"requirements/old.txt": "unittest2", "requirements/jython.txt": "threadpool", "README.txt": "words"},
            ["kombu>=3", "pytz", "vine"],
        ),
        ({"setup.py": LOOP, "deps/run.in": "attrs\n"}, ["attrs", "six"]),
        ({"setup.py": FUNCTION, "requirements/base.txt": "attrs\n"}, ["attrs"]),
        ({"setup.py": OUTSIDE, "a.txt": "attrs\n"}, []),
        ({"setup.py": "setup(setup_requires=['pbr'], pbr=True)", "requirements.txt": "attrs\n"}, ["attrs"]),
        ({"setup.cfg": "[options]\ninstall_requires = file: a.txt, b.txt\n", "b.txt": "attrs\n"}, ["attrs"]),
        (
            {"pyproject.toml": "[tool.setuptools.dynamic]\ndependencies = {file = ['run.txt']}\n", "run.txt": "attrs"},
            ["attrs"],
        ),
        (
            {"pyproject.toml": "[tool.hatch.metadata.hooks.requirements_txt]\nfiles = ['a/b.txt']", "a/b.txt": "attrs"},
            ["attrs"],
        ),
    ],
)
def test_requirements_in_the_files_that_the_metadata_reads(
    recipe: Any, files: dict[str, str], expected: list[str]
) -> None:
    made = recipe({"lib/__init__.py": "", **files})
    assert made.requirements == sorted([*expected, "pytest"])


def test_requirements_that_depend_on_the_interpreter_and_the_platform(recipe: Any) -> None:
    made = recipe({"setup.py": CHOICES, "lib/__init__.py": ""})
    assert made.requirements == ["attrs", "certifi", "inotify", "munkres", "pytest"]


@pytest.mark.parametrize("script", ["print 'old'", "\0", "(" * 5000, "setup(install_requires=[" + "1+" * 5000 + "1])"])
def test_hostile_setup_scripts(recipe: Any, script: str) -> None:
    made = recipe({"setup.py": script, "lib/__init__.py": ""})
    assert made.requirements == ["pytest"]
    assert made.packages == ["lib"]
