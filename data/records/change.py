"""Table `changes`: one commit, merge or pull request with a base and a head."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import Field

from perfquarry.data.records.row import Record, Row, content_id

ChangeKind = Literal["commit", "merge", "pull_request"]
FileRole = Literal["source", "test", "docs", "build", "generated", "other"]
FileStatus = Literal["added", "deleted", "modified", "renamed", "copied", "type_changed", "submodule"]


class FileChange(Record):
    """One file of a change."""

    path: str = Field(description="Path at the head (at the base for deletions); bytes that are not UTF-8 as \\xNN.")
    old_path: str | None = Field(default=None, description="Path at the base where it differs (renames, copies).")
    status: FileStatus
    added: int = Field(description="Lines added; 0 for binary files.")
    deleted: int = Field(description="Lines deleted; 0 for binary files.")
    binary: bool = False
    role: FileRole
    language: str | None = Field(default=None, description="Lower-case language name from the file's ending.")


class Change(Row):
    """A base and a head of the default branch, with what the crawl could see without running anything."""

    TABLE: ClassVar[str] = "changes"
    KEY: ClassVar[tuple[str, ...]] = ("change_id",)

    change_id: str = Field(description="Content address of repo, base and head (`change_id_of`).")
    kind: ChangeKind = Field(description="merge: several parents; pull_request: squash-merged, '(#12)' in the title.")
    base_sha: str = Field(description="First parent; empty for a root commit.")
    head_sha: str
    parents: list[str] = Field(default_factory=list)
    authored_at: datetime
    merged_at: datetime = Field(description="Committer date: when the change reached the branch.")
    title: str
    message: str = Field(description="Whole message, title included; bytes that are not UTF-8 as \\xNN.")
    files: list[FileChange] = Field(default_factory=list)
    functions: list[str] = Field(
        default_factory=list, description="'path::function' from hunk headers: approximate; exact ones in verdicts."
    )
    patch: str = Field(default="", description="Unified diff of source files, cut after whole hunks at the limit.")
    patch_bytes: int = Field(default=0, description="Size of the whole diff, bytes.")
    patch_truncated: bool = False
    patch_id: str | None = Field(default=None, description="Equal for equal diffs whatever their place and spacing.")
    pull_number: int | None = None
    issues: list[int] = Field(default_factory=list, description="Numbers of issues the message refers to.")


def change_id_of(repo: str, base_sha: str, head_sha: str) -> str:
    """The `change_id` of a base and a head of a repository."""
    return content_id("change", repo, base_sha, head_sha)
