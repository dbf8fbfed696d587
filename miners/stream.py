"""One streaming pass of `git log` over given commits: raw bytes in, one `RawCommit` a commit out.

The output is cut by position, never by searching for a word that a commit could contain: the header's
fields and the raw entries end with NUL, which neither messages nor paths can hold; inside a patch every
line begins with a space, +, -, @, a backslash or a letter of git's own, so "newline, \\x01" ends it.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, NamedTuple

from perfquarry.data.git import Git, given

PATCH = ("-p", "-U3")
"""Ask for patches, whatever `diff.context` says. Either of them alone does: a count of lines must have neither."""
DIFF_OPTIONS = ("--no-ext-diff", "--no-textconv", "--no-color", "-M", "--src-prefix=a/", "--dst-prefix=b/")
READ = 1 << 20
SUBMODULE = b"160000"
"""Mode of an entry that names a commit of another repository."""
FORMAT = "--format=tformat:%x01%H%x00%P%x00%at%x00%ct%x00%B%x00"
WALK = (
    "log",
    "--stdin",
    "--no-walk=unsorted",
    "--diff-merges=first-parent",
    "--raw",
    "--no-abbrev",
    "-z",
    "--no-notes",
)
PATCHES = (*WALK, *PATCH, *DIFF_OPTIONS, FORMAT)
"""Every commit against its first parent, with renames found and the whole patch."""
NAMES = (*WALK, "--no-renames", FORMAT)
"""The same without reading any blob."""
HEADERS = (*WALK[:3], "-s", "-z", "--no-notes", FORMAT)
"""The same without reading any tree."""
NAMES_OF_TREES = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "-M", "-l1000")
"""The raw entries between two commits."""

_HEADER = re.compile(rb"\x01([0-9a-f]+)\0([0-9a-f ]*)\0([^\0]*)\0([^\0]*)\0([^\0]*)\0\0")
_PATHS = rb"(?:[RC]\d+\0([^\0]+)\0|[ABD-QS-Z]\d*\0)([^\0]+)\0"
_ENTRY = re.compile(rb":(\d{6}) (\d{6}) ([0-9a-f]+) ([0-9a-f]+) (?=(.))" + _PATHS, re.S)
_BLOCK = re.compile(rb"(?:" + _ENTRY.pattern + rb")*+", re.S)


class Entry(NamedTuple):
    """One file of a raw diff; modes are six octal digits, an id of zeros stands for "not there"."""

    old_mode: bytes
    new_mode: bytes
    old_id: bytes
    new_id: bytes
    status: bytes
    """A, D, M, T (type), R (rename), C (copy), U, X."""
    old_path: bytes
    """Empty unless renamed or copied."""
    path: bytes


def parse_entries(raw: bytes) -> list[Entry]:
    """The entries of one raw diff written with -z."""
    return [Entry(*groups) for groups in _ENTRY.findall(raw)]


def entries_and_patch(raw: bytes) -> tuple[list[Entry], bytes]:
    """What `git diff-tree` wrote with -z: raw entries, and the patch, which two NULs and its first header begin."""
    end = raw.find(b"\0\0diff --git ")
    return (parse_entries(raw), b"") if end < 0 else (parse_entries(raw[: end + 1]), raw[end + 2 :])


@dataclass(slots=True)
class RawCommit:
    """One commit as git wrote it."""

    sha: str
    parents: list[str]
    authored: bytes
    committed: bytes
    message: bytes
    entries: list[Entry] = field(default_factory=list)
    patch: bytes = b""
    patch_bytes: int = 0
    oversized: bool = False
    """The patch was longer than the limit: counted, not kept."""
    incomplete: bool = False
    """Objects of the base or the head are not in the clone, or cannot be read."""


class LogReader:
    """Runs one git process over `shas` and yields its whole commits in that order.

    Ends silently where git died: `failed` then says why, and the commit that was under way is not
    yielded. Memory is bounded by `limit` (bytes of one patch) plus one commit's header and names.
    """

    def __init__(self, git: Git, arguments: Sequence[str], shas: Sequence[str], limit: int) -> None:
        self._limit = limit
        self._pending = bytearray()
        self._at = 0
        self._ended = False
        self.failed = ""
        with given(shas) as istream:
            self._git = git  # what it reads stays as long as this reads it
            process = self._process = git.start(*arguments, istream=istream)
        assert process.stdout is not None and process.stderr is not None
        self._pipe = process.stdout
        self._stdout = self._pipe.fileno()
        _widen(self._stdout)
        self._stderr = _Tail(process.stderr)

    def __iter__(self) -> Iterator[RawCommit]:
        try:
            while self._available(1):
                commit = self._header()
                if commit is None or not self._entries(commit) or not self._patch(commit):
                    break
                yield commit
        finally:
            self.close()

    def close(self) -> None:
        """Ends the process, whether or not it was read to its end."""
        if self._pipe.closed:
            return
        if not self._ended:
            self._process.kill()
        code = self._process.wait()
        said = self._stderr.close()
        self._pipe.close()
        if code and self._ended:
            self.failed = said or f"exit code {code}"

    def _fill(self) -> bool:
        """Reads more; as much again as is pending, so that re-reading stays linear."""
        if self._at:
            del self._pending[: self._at]
            self._at = 0
        if self._ended:
            return False
        wanted = max(READ, len(self._pending))
        while wanted > 0:
            chunk = os.read(self._stdout, min(wanted, READ))
            if not chunk:
                self._ended = True
                self._process.wait()
                return False
            self._pending += chunk
            wanted -= len(chunk)
            if len(chunk) < READ:
                break
        return True

    def _available(self, count: int) -> bool:
        while len(self._pending) - self._at < count:
            if not self._fill():
                return len(self._pending) - self._at >= count
        return True

    def _header(self) -> RawCommit | None:
        while True:
            found = _HEADER.match(self._pending, self._at)
            if found is not None:
                break
            if not self._fill():
                return None
        sha, parents, authored, committed, message = found.groups()
        self._at = found.end()
        return RawCommit(
            sha.decode(), bytes(parents).decode().split(), bytes(authored), bytes(committed), bytes(message)
        )

    def _entries(self, commit: RawCommit) -> bool:
        """Reads the raw entries; false where git died before their end."""
        if not self._available(1):
            return self._clean_end()
        if self._pending[self._at] != 0x0A:
            return True
        while True:
            start = self._at + 1
            found = _BLOCK.match(self._pending, start)
            end = found.end() if found else start
            if end < len(self._pending) and self._pending[end] != 0x3A:
                break
            if not self._fill():
                start, end = self._at + 1, end - start + self._at + 1  # what was read before is gone
                if end < len(self._pending) or not self._clean_end():
                    return False
                break
        commit.entries = parse_entries(bytes(self._pending[start:end]))
        self._at = end
        return True

    def _patch(self, commit: RawCommit) -> bool:
        """Reads the patch up to the next commit or the end; false where git died inside it."""
        if not self._available(1):
            return self._clean_end()
        if self._pending[self._at] != 0:
            return True
        self._at += 1
        seen = self._at
        dropped = 0
        while (end := self._next_commit(seen)) < 0:
            if len(self._pending) - self._at > self._limit:
                commit.oversized = True
                dropped += len(self._pending) - self._at - 1
                self._at = len(self._pending) - 1
            seen = max(len(self._pending) - 1, self._at) - self._at
            if not self._fill():
                if not self._clean_end():
                    return False
                end = len(self._pending) - 1
                break
        commit.patch_bytes = dropped + end + 1 - self._at
        commit.oversized = commit.oversized or commit.patch_bytes > self._limit
        if not commit.oversized:
            commit.patch = bytes(memoryview(self._pending)[self._at : end + 1])
        self._at = end + 1
        return True

    def _next_commit(self, seen: int) -> int:
        """Where "newline, \\x01" begins, looked for from `seen` on; -1 where it does not."""
        at = self._pending.find(b"\x01", seen + 1)  # one byte is found thirty times as fast as two
        if at < 0 or self._pending[at - 1] == 0x0A:
            return max(at - 1, -1)
        return self._pending.find(b"\n\x01", at)

    def _clean_end(self) -> bool:
        return self._ended and self._process.wait() == 0


class _Tail:
    """Reads a stream in a thread, so that the process never waits for it, and keeps its end."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._kept = b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while chunk := self._stream.read1(65536):  # type: ignore[attr-defined]
            self._kept = (self._kept + chunk)[-4096:]

    def close(self) -> str:
        """The end of what was written, after the writer ended."""
        self._thread.join()
        self._stream.close()
        return " ".join(self._kept.decode(errors="replace").split())


def _widen(pipe: int) -> None:
    """A wider pipe lets git work ahead while we parse; where the system has none, nothing is lost but time."""
    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, READ)
    except (OSError, AttributeError):
        return
