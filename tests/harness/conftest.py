"""The strongest sandbox here, and an environment that starts in a third of the time of ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from histories import History

from data.home import Home
from harness.contracts import Sandbox
from harness.sandbox import choose_sandbox
from tests.bare_python import make_bare_python


@pytest.fixture(scope="session")
def sandbox() -> Sandbox:
    """Bubblewrap where it works, else plain processes."""
    return choose_sandbox()


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a virtual environment that holds copies of our pytest and what it needs."""
    return make_bare_python(tmp_path_factory.mktemp("bare"))


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
