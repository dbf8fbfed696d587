"""A virtual environment that starts in a third of the time of ours."""

from __future__ import annotations

import shutil
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement


def make_bare_python(folder: Path) -> Path:
    """The interpreter of a new virtual environment that holds copies of our pytest and what it needs."""
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
