"""Models that are known everywhere."""

from __future__ import annotations

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

EXPERT, HALF, NOP = "expert", "half", "nop"
"""The expert's patch, every other hunk of it, and none."""


_SOURCES = (".py", ".pyx", ".pxd", ".pyi", ".c", ".cc", ".cpp", ".h", ".hpp")


def half_of(patch: str) -> str:
    """The sources' hunks of a patch without every second one, the first kept; empty where there is but one.

    It may not apply, or break tests: half of a change often does.
    """
    try:
        files = list(PatchSet(patch))
    except UnidiffParseError:
        return ""
    files = [file for file in files if file.path.endswith(_SOURCES)]
    hunks = [hunk for file in files for hunk in file]
    if len(hunks) < 2 or any(file.is_rename or file.is_binary_file for file in files):
        return ""
    kept = {id(hunk) for hunk in hunks[::2]}
    parts = []
    for file in files:
        mine = [str(hunk) for hunk in file if id(hunk) in kept]
        if mine:
            parts.append(f"--- {file.source_file}\n+++ {file.target_file}\n{''.join(mine)}")
    return "".join(parts)
