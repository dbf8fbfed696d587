"""Hand-made changes for the judge's tests."""

from __future__ import annotations

from datetime import UTC, datetime

from perfquarry.data.records import Change, FileChange, FileRole, change_id_of

WHEN = datetime(2024, 1, 1, tzinfo=UTC)
ROLES: dict[str, FileRole] = {"tests/": "test", "docs/": "docs", "benchmarks/": "test", "setup.py": "build"}
LANGUAGES = {".py": "python", ".c": "c", ".pyx": "cython"}


def change(
    title: str, diffs: dict[str, str] | None = None, body: str = "", *, sha: str = "b" * 40, merge: bool = False
) -> Change:
    """A change whose `diffs` map a path to hunk lines ('-', '+' or ' ' first)."""
    diffs = {"lib/core.py": "-a = 1\n+a = 2"} if diffs is None else diffs
    files, patch = [], []
    for path, lines in diffs.items():
        role = next((role for start, role in ROLES.items() if path.startswith(start)), "source")
        added = sum(line.startswith("+") for line in lines.split("\n"))
        deleted = sum(line.startswith("-") for line in lines.split("\n"))
        language = LANGUAGES.get("." + path.rpartition(".")[2])
        files.append(
            FileChange(path=path, status="modified", added=added, deleted=deleted, role=role, language=language)
        )
        if role == "source" and lines:
            patch.append(
                f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,9 +1,9 @@ def work(items):\n{lines}\n"
            )
    return Change(
        repo="hand-made", stage_version="1", config_hash="0", change_id=change_id_of("hand-made", "a" * 40, sha),
        kind="merge" if merge else "commit", base_sha="a" * 40, head_sha=sha, authored_at=WHEN, merged_at=WHEN,
        title=title, message=f"{title}\n\n{body}".strip(), files=files, functions=["lib/core.py::work"],
        patch="".join(patch),
    )  # fmt: skip
