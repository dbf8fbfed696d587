"""The strongest sandbox here, and an environment that starts in a third of the time of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from histories import History

from perfquarry.data.home import Home
from perfquarry.data.registry import Repository
from perfquarry.harness.contracts import Sandbox
from perfquarry.harness.metadata.recipe import Recipe, read_recipe
from perfquarry.harness.sandbox import choose_sandbox
from tests.grader_parts import load_part


@pytest.fixture(scope="session")
def sandbox() -> Sandbox:
    """Bubblewrap where it works, else plain processes."""
    return choose_sandbox()


@pytest.fixture
def busy_core() -> Iterator[int]:
    """A core that three others compete for: whoever runs there gets a quarter of it."""
    if not Path("/proc/self/schedstat").exists():
        pytest.skip("this kernel does not say how long processes wait for a processor")
    core = max(os.sched_getaffinity(0))
    burn = f"import os\nos.sched_setaffinity(0, [{core}])\nprint(flush=True)\nwhile True: pass"
    # each in a session of its own: kernels that share processors among sessions give all of them equal shares
    others = [
        subprocess.Popen([sys.executable, "-c", burn], stdout=subprocess.PIPE, start_new_session=True) for _ in range(3)
    ]
    try:
        for one in others:
            assert one.stdout and one.stdout.readline()
        yield core
    finally:
        for one in others:
            one.kill()
            one.communicate()


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


@pytest.fixture(scope="module")
def part() -> Iterator[Any]:
    """`part(name)` loads a module of the grader."""
    with load_part() as load:
        yield load


@pytest.fixture
def recipe(tmp_path: Path) -> Any:
    def make(files: dict[str, str], needed_for: Sequence[str] = (), **registered: Any) -> Recipe:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return read_recipe(tmp_path, Repository(name="lib", codebase="lib", **registered), needed_for)

    return make
