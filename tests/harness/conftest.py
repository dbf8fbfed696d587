"""The strongest sandbox here, and an environment that starts in a third of the time of ours."""

from __future__ import annotations

import shutil
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest
from histories import History
from packaging.requirements import Requirement

from data.home import Home
from harness.contracts import Sandbox
from harness.sandbox import choose_sandbox


@pytest.fixture(scope="session")
def sandbox() -> Sandbox:
    """Bubblewrap where it works, else plain processes."""
    return choose_sandbox()


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a virtual environment that holds copies of our pytest and what it needs."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    site = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    waiting = ["pytest"]
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
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("home"))


@pytest.fixture
def history(tmp_path: Path, home: Home) -> History:
    """An empty repository."""
    clone = tmp_path / "clone"
    clone.mkdir()
    made = History(clone, home)
    made.git("init", "-q")
    return made
