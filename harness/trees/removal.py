"""Removes folders in which strangers' programs could write."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

from perfquarry.data.children import environment


def remove(folder: Path) -> None:
    """Removes a folder, whatever was made of it: without rights, or nested more deeply than paths and Python reach."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if os.path.lexists(folder):
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*command, "--", str(folder)], env=environment(), stderr=subprocess.DEVNULL, check=False)
