"""A virtual environment that starts in a fraction of the time of ours."""

from __future__ import annotations

import atexit
import compileall
import shutil
import subprocess
import sys
import venv
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from tempfile import mkdtemp

from packaging.requirements import Requirement


def everybodys_python() -> Path | None:
    """An interpreter like ours that users without rights can run; None: there is none."""
    minor = f"python3.{sys.version_info[1]}"
    found = [Path(sys.executable).resolve(), *(Path(place) / minor for place in ("/usr/local/bin", "/usr/bin"))]
    return next((path for path in found if path.exists() and _open_to_all(path.resolve())), None)


def _open_to_all(path: Path) -> bool:
    return all(one.stat().st_mode & 0o005 == 0o005 for one in (path, *path.parents))


def make_bare_python(folder: Path, *more: str, interpreter: Path | None = None) -> Path:
    """The interpreter of a new virtual environment with copies of our pytest, of `more`, and of what they need.

    It is made of our own interpreter, or of another of the same version.

    They are compiled: a sandboxed process may write no bytecode, so that each would compile pytest anew. Ours has
    plugins (hypothesis, anyio), with which each process starts three times as slowly.
    """
    if interpreter is None:
        venv.create(folder, symlinks=True)
    else:
        subprocess.run([interpreter, "-m", "venv", "--without-pip", "--symlinks", folder], check=True)
    minor = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    copy_distributions(folder / "lib" / minor / "site-packages", "pytest", *more)
    return folder / "bin" / "python"


def copy_distributions(site: Path, *names: str) -> Path:
    """Copies what is installed here, and what it needs, into a folder, and compiles it."""
    site.mkdir(exist_ok=True)
    waiting = list(names)
    for name in waiting:
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            source = Path(str(found.locate_file(top)))
            if source.is_dir():
                shutil.copytree(source, site / top)
            else:
                shutil.copy2(source, site / top)
        requirements = map(Requirement, found.requires or ())
        needed = [one.name for one in requirements if one.marker is None or one.marker.evaluate({"extra": ""})]
        waiting += [one for one in needed if one not in waiting]
    compileall.compile_dir(site, quiet=1)
    return site


@cache
def bare_python() -> Path:
    """The one of this process, for sides that no fixture makes."""
    return make_bare_python(_of_this_process() / "bare")


@cache
def bare_tools() -> Path:
    """A folder as our command makes it beside each environment, with coverage and yappi."""
    return copy_distributions(_of_this_process() / "tools", "coverage", "yappi")


@cache
def _of_this_process() -> Path:
    folder = Path(mkdtemp(prefix="pq-bare-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
