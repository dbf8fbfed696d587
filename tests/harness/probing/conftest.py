"""A tree, and the probe on it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import coverage
import pytest
from probed import Probe

from perfquarry.harness.contracts import BuiltSide, Limits, ProbeMode, ProbeReport, ProbeRequest, Sandbox
from perfquarry.harness.probing.prober import Prober

OVERLAY = Path(coverage.__file__).parents[1]
"""Our own site-packages: coverage and yappi for an interpreter of our own version."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


@pytest.fixture
def probe(sandbox: Sandbox, folder: Path, tmp_path: Path, bare_python: Path) -> Probe:
    """Writes files of a tree ('path', text, ...) and probes it: the first file, unless `arguments` says otherwise."""
    prober = Prober(sandbox, tmp_path / "scratch", overlay=lambda built: [OVERLAY])

    def run(
        *files: str,
        mode: ProbeMode = "check",
        wall: float = 60.0,
        hash_seed: int = 0,
        core: int | None = None,
        writable_tree: bool = False,
        **asked: object,
    ) -> ProbeReport:
        for path, text in zip(files[::2], files[1::2], strict=True):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(textwrap.dedent(text))
        request = ProbeRequest.model_validate({"mode": mode, "arguments": [files[0]], "max_calls": 5, **asked})
        built = BuiltSide("base", "sha", folder, bare_python, "e", (folder,), writable_tree=writable_tree)
        return prober.run(built, request, limits=Limits(wall_seconds=wall), hash_seed=hash_seed, core=core)

    return run
