"""A small repository with a builder over it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from perfquarry.data.home import Home
from perfquarry.data.records import Change, FileChange, Stamp, change_id_of
from perfquarry.data.registry import Repository
from perfquarry.harness.building.builder import Builder, BuiltChange
from perfquarry.harness.contracts import BuiltSide
from perfquarry.harness.sandbox import choose_sandbox
from perfquarry.harness.settings import BuildSettings

DATE = datetime(2024, 2, 10, tzinfo=UTC)
STAMP = Stamp(repo="lib", stage_version="1", config_hash="test")


@dataclass
class History:
    """A repository with a builder over it."""

    clone: Path
    home: Home
    registered: dict[str, Any] = field(default_factory=dict)
    """Of the repository's entry."""
    settings: BuildSettings = field(default_factory=lambda: BuildSettings(timeout=300.0))
    options: dict[str, Any] = field(default_factory=dict)
    """Of the builder."""

    def git(self, *arguments: str) -> str:
        command = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *arguments]
        return subprocess.run(command, cwd=self.clone, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, files: dict[str, str | None]) -> str:
        for name, text in files.items():
            path = self.clone / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink()
            else:
                path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "change")
        return self.git("rev-parse", "HEAD")

    def change(self, base: str, head: str, date: datetime = DATE) -> Change:
        names = self.git("diff", "--name-status", "--no-renames", base, head).splitlines()
        status: dict[str, Any] = {"A": "added", "D": "deleted", "M": "modified"}
        files = [FileChange(path=line[2:], status=status[line[0]], added=1, deleted=1, role="source") for line in names]
        return Change(
            **STAMP.fields(), change_id=change_id_of("lib", base, head), kind="commit", base_sha=base, head_sha=head,
            authored_at=date, merged_at=date, title="", message="", files=files,
        )  # fmt: skip

    def builder(self) -> Builder:
        repository = Repository(name="lib", codebase="lib", **self.registered)
        return Builder(self.home, self.clone, repository, choose_sandbox(), self.settings, STAMP, **self.options)

    def build(self, base: str, head: str) -> BuiltChange:
        return self.builder().build(self.change(base, head))


def run(side: BuiltSide, code: str) -> str:
    paths = ":".join(map(str, side.source_roots))
    return subprocess.check_output([side.python, "-B", "-c", code], env={"PYTHONPATH": paths}, text=True).strip()


def both(built: BuiltChange) -> tuple[BuiltSide, BuiltSide]:
    assert built.base and built.head, built.rows[0].log
    return built.base, built.head


def reasons(built: BuiltChange) -> list[str | None]:
    assert built.base is None and built.head is None
    assert {row.status for row in built.rows} == {"rejected"}
    return [row.reason for row in built.rows]
