"""Packages of a tree that share a namespace with distributions of the environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perfquarry.harness.probing.prober import PROBE

# as setuptools wrote it until 2024, of the distribution `shared.other`
NSPKG = (
    "import sys, types, os;has_mfs = sys.version_info > (3, 5);"
    "p = os.path.join(sys._getframe(1).f_locals['sitedir'], *('shared',));"
    "importlib = has_mfs and __import__('importlib.util');has_mfs and __import__('importlib.machinery');"
    "m = has_mfs and sys.modules.setdefault('shared', importlib.util.module_from_spec("
    "importlib.machinery.PathFinder.find_spec('shared', [os.path.dirname(p)])));"
    "m = m or sys.modules.setdefault('shared', types.ModuleType('shared'));"
    "mp = (m or []) and m.__dict__.setdefault('__path__',[]);(p not in mp) and mp.append(p)\n"
)
PROGRAM = """
import site, sys
site.addsitedir(sys.argv[1])
sys.path.insert(0, sys.argv[2])
import perfquarry_roots
perfquarry_roots.put_first([sys.argv[3]])
import shared.mine, shared.other
assert sys.path[0] == sys.argv[3] and shared.mine.WHERE == "tree", sys.path
"""


@pytest.mark.parametrize("declared", ["", "__import__('pkg_resources').declare_namespace(__name__)\n"])
def test_a_namespace_that_the_environment_made_has_the_tree_too(tmp_path: Path, declared: str) -> None:
    environment, root = tmp_path / "site-packages", tmp_path / "tree" / "src"
    for folder in (environment / "shared", root / "shared"):
        folder.mkdir(parents=True)
    (environment / "shared.other-nspkg.pth").write_text(NSPKG)
    (environment / "shared" / "other.py").write_text("")
    (root / "shared" / "mine.py").write_text("WHERE = 'tree'\n")
    if declared:
        (root / "shared" / "__init__.py").write_text(declared)
    command = [sys.executable, "-I", "-c", PROGRAM, str(environment), str(PROBE.parent), str(root)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
