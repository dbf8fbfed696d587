"""A solver's patch on its way to the grader, and the walls around the grader's sides."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perfquarry.harness.contracts import Completed, Exceeded
from perfquarry.harness.grading.host import outcome, patched_copy
from perfquarry.harness.sandbox.bubblewrap import prefix

TEXT = "def f(x):\n    return x + 1\n"
FASTER = "--- a/pkg/m.py\n+++ b/pkg/m.py\n@@ -1,2 +1,2 @@\n def f(x):\n-    return x + 1\n+    return 1 + x"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    tree = tmp_path / "base"
    (tree / "pkg").mkdir(parents=True)
    (tree / "pkg" / "m.py").write_text(TEXT)
    return tree


@pytest.mark.parametrize(
    "patch",
    [FASTER, FASTER + "\n", "explanation\n\n" + FASTER, FASTER.replace("    return", "  return")],
    ids=["without its last newline", "whole", "after words", "with other white space"],
)
def test_a_patch_is_applied_to_a_copy(base: Path, tmp_path: Path, patch: str) -> None:
    assert patched_copy(base, patch, tmp_path / "copy")
    assert "1 + x" in (tmp_path / "copy" / "pkg" / "m.py").read_text()
    assert (base / "pkg" / "m.py").read_text() == TEXT and not (tmp_path / "copy" / ".git").exists()


def _new(path: str, text: str, mode: str = "100644") -> str:
    return f"diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{text}\n"


@pytest.mark.parametrize(
    "patch",
    [
        "no patch at all",
        FASTER.replace("x + 1", "x + 2"),
        _new("../outside", "x"),
        _new("/outside", "x"),
        _new(".git/config", "[core] fsmonitor = touch outside"),
        _new("way", "..", "120000").replace("\n+..\n", "\n+..\n\\ No newline at end of file\n")
        + _new("way/outside", "x"),
    ],
    ids=["words", "another base", "above", "absolute", "git's own", "through a link"],
)
def test_what_does_not_apply_or_leads_out_changes_nothing(base: Path, tmp_path: Path, patch: str) -> None:
    place = tmp_path / "place"
    place.mkdir()
    assert not patched_copy(base, patch, place / "copy")
    assert [path.name for path in place.iterdir()] == ["copy"] and not Path("/outside").exists()
    files = [path.relative_to(place / "copy") for path in (place / "copy").rglob("*") if path.is_file()]
    assert files == [Path("pkg/m.py")] and (place / "copy" / "pkg" / "m.py").read_text() == TEXT


@pytest.mark.parametrize(
    ("exceeded", "reward", "fault"),
    [
        ("memory", 0, ""),
        ("processes", 0, ""),
        ("time", None, "the grading did not end within 9 s"),
        ("", None, "the grader ended without a report: so it is"),
    ],
)
def test_who_is_greedy_fails_and_who_is_slow_is_not_graded(
    tmp_path: Path, exceeded: Exceeded, reward: int | None, fault: str
) -> None:
    done = outcome(Completed(1, None, b"so ", b"it is", False, 1.0, 1.0, exceeded), tmp_path / "none", 9)
    assert (done.reward, done.fault) == (reward, fault)
    assert done.facts.get("seconds") == (1.0 if reward == 0 else None)


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed (apt-get install bubblewrap)")
def test_a_side_sees_what_it_is_shown_and_writes_where_it_may(tmp_path: Path) -> None:
    home, out, shown = (tmp_path / name for name in ("home", "out", "home/shown"))
    shown.mkdir(parents=True)
    out.mkdir()
    for path in (home / "expert.patch", tmp_path / "predictions.jsonl", shown / "text"):
        path.write_text("secret\n")
    private = (home, tmp_path / "predictions.jsonl")
    words = prefix(Path(sys.executable), (str(shown),), ("{out}",), str(shown), private, tmp_path / "filter")
    script = (
        f"cat {home}/expert.patch; cat {tmp_path}/predictions.jsonl; cat text; echo x > {out}/made; echo x > text; pwd"
    )
    done = subprocess.run(
        [word.replace("{out}", str(out)) for word in words] + ["/bin/sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["secret", str(shown)], done.stderr
    assert (out / "made").exists() and (shown / "text").read_text() == "secret\n"
    network = [*words, sys.executable, "-c", "import socket; print(len(socket.if_nameindex()))"]
    seen = subprocess.run(
        [word.replace("{out}", str(out)) for word in network], capture_output=True, text=True, check=False
    )
    assert seen.stdout == "1\n", seen.stderr
