"""A sandbox and an interpreter for the checks that run code; a small release."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from release_parts import sample_release

from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.sandbox import choose_sandbox


@pytest.fixture(scope="module")
def prober(tmp_path_factory: pytest.TempPathFactory) -> Prober:
    return Prober(choose_sandbox(), tmp_path_factory.mktemp("scratch"))


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_release(tmp_path_factory.mktemp("release"))


@pytest.fixture
def copy(release: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(release, tmp_path / "copy"))
