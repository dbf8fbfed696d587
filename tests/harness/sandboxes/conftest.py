"""Each kind of sandbox that works here."""

from __future__ import annotations

from pathlib import Path

import pytest
from in_sandbox import backend

from perfquarry.harness.contracts import Sandbox

BACKENDS = ("bubblewrap", "docker", "process")


@pytest.fixture(params=BACKENDS)
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    found = backend(request.param)
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture
def bubblewrap() -> Sandbox:
    found = backend("bubblewrap")
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"
