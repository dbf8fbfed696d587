"""Two trees that differ by a change, with the rows that the stages before would have written."""

from __future__ import annotations

import textwrap
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from perfquarry.data.records import Change, FileChange, Side, Stamp, TouchedFunction, Verdict, change_id_of
from perfquarry.harness.contracts import BuiltSide
from perfquarry.harness.probing.prober import Prober
from perfquarry.miners.roles import language_of
from perfquarry.testgen.pytest_config import DEFAULT_PATTERNS, is_test_path
from tests.bare_python import bare_python

STAMP = Stamp(repo="demo", stage_version="1", config_hash="0")
Files = dict[str, str]


class TwoTrees:
    """Two trees that differ by a change."""

    def __init__(self, folder: Path, base: Files, changed: Files, prober: Prober, root: str = ".") -> None:
        self.prober = prober
        self.built: dict[Side, BuiltSide] = {}
        texts: dict[Side, Files] = {"base": base, "head": base | changed}
        for side, files in texts.items():
            tree = folder / f"tree-{side}"
            for path, text in files.items():
                (tree / path).parent.mkdir(parents=True, exist_ok=True)
                (tree / path).write_text(textwrap.dedent(text))
            roots = ((tree / root).resolve(),)
            self.built[side] = BuiltSide(side, side * 10, tree, bare_python(), "environment", roots)
        self.change = change(base, changed)
        self.verdict = verdict(self.change)


def change(base: Files, changed: Files) -> Change:
    status: dict[bool, Literal["modified", "added"]] = {True: "modified", False: "added"}
    files = [
        FileChange(
            path=path,
            status=status[path in base],
            added=1,
            deleted=1,
            role="test" if is_test_path(path, DEFAULT_PATTERNS) else "source",
            language=language_of(path),
        )
        for path in changed
    ]
    return Change(
        **STAMP.fields(),
        change_id=change_id_of("demo", "base", "head"),
        kind="commit",
        base_sha="base",
        head_sha="head",
        authored_at=datetime(2024, 1, 1, tzinfo=UTC),
        merged_at=datetime(2024, 1, 1, tzinfo=UTC),
        title="Faster",
        message="Faster",
        files=files,
    )


def verdict(of: Change, *functions: TouchedFunction) -> Verdict:
    return Verdict(
        **STAMP.fields(),
        change_id=of.change_id,
        judge="heuristic",
        is_performance="yes",
        probability=0.9,
        functions=list(functions),
    )
