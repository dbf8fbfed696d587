"""The meter of disk, where the file system says little, and where the program took its folder away."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import time
from pathlib import Path

import pytest

from perfquarry.harness.sandbox.disk import DiskMeter

MEBI = 1024**2


def test_what_others_free_hides_nothing(tmp_path: Path) -> None:
    """The file system has more room than before, although the folder is over its limit."""
    folder, others = tmp_path / "work", tmp_path / "others"
    folder.mkdir()
    others.write_bytes(bytes(256 * MEBI))
    meter = DiskMeter([folder], 16 * MEBI)
    (folder / "file").write_bytes(bytes(32 * MEBI))
    others.unlink()
    until = time.monotonic() + 60
    while not (found := meter.exceeded(list)) and time.monotonic() < until:
        time.sleep(0.05)
    assert found


def test_a_removed_folder_holds_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "file").touch()
    meter = DiskMeter([folder], 0)
    assert meter.exceeded(list)
    shutil.rmtree(folder)
    assert not meter.exceeded(list)


@pytest.mark.timeout(120)
def test_who_makes_files_as_fast_as_they_are_listed_keeps_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "file").touch()
    meter = DiskMeter([folder], 16 * MEBI)
    with os.scandir(folder) as entries:
        entry = next(entries)
    monkeypatch.setattr(os, "scandir", lambda path: contextlib.nullcontext(itertools.repeat(entry)))
    monkeypatch.setattr(meter, "_due", 0.0)
    assert meter.exceeded(list)
