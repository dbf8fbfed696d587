"""One commit's patch, as git wrote it, into files with roles and line counts, functions and ids."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from perfquarry.data.records import FileChange, FileRole, FileStatus
from perfquarry.miners.roles import language_of, looks_generated, role_of
from perfquarry.miners.stream import SUBMODULE, Entry

_HUNK = re.compile(rb"\n@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@ ?([^\n]*)")
"""Groups: lines at the base and at the head, where they are not 1, and what stands behind."""
_INDEX = re.compile(rb"\nindex [^\n]*")
_NO_NEWLINE = re.compile(rb"\n\\ [^\n]*")
_SPACE = b" \t\n\r\v\f"
_START = b"diff --git "
_STATUS: dict[bytes, FileStatus] = {
    b"A": "added",
    b"D": "deleted",
    b"M": "modified",
    b"R": "renamed",
    b"C": "copied",
    b"T": "type_changed",
}


@dataclass(slots=True)
class Diff:
    """What one patch says; see the columns of the same names in the table `changes`."""

    files: list[FileChange] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    patch: str = ""
    patch_truncated: bool = False
    patch_id: str | None = None


def read_names(
    entries: Sequence[Entry],
    counts: dict[bytes, tuple[int, int, bool]] | None = None,
    places: tuple[str, ...] = (),
) -> list[FileChange]:
    """Files of a change whose patch is not read; `counts` are (added, deleted, binary) by path."""
    known = counts or {}
    return [_file(one, *known.get(one.path, (0, 0, False)), role_of(text(one.path), places)) for one in entries]


def read_patch(entries: Sequence[Entry], patch: bytes, limit: int, places: tuple[str, ...] = ()) -> Diff:
    """Files, functions, patch of the source files (at most `limit` bytes, whole hunks) and patch id.

    `entries` are the raw entries of the same commit: git writes both in one order. `places` are those of the
    package (`miners.roles`).
    """
    diff = Diff()
    sections = patch.split(b"\n" + _START)  # what is large is not copied first
    sections[0] = sections[0].removeprefix(_START)
    sections[-1] = sections[-1].removesuffix(b"\n")
    patch_id = PatchId()
    functions: dict[str, None] = {}
    kept: list[bytes] = []
    room = limit
    at = 0
    for entry in entries:
        # A change of type (a file that becomes a link) is written as a deletion and an addition.
        width = 2 if entry.status == b"T" else 1
        added = deleted = 0
        binary = False
        role = role_of(text(entry.path), places)
        for section in sections[at : at + width]:
            pieces = _HUNK.split(section)
            head, body = pieces[0], b"".join(pieces[4::4])
            if body:
                if b"\\" in pieces[-1] and b"\n\\" in pieces[-1]:  # the end of a file is no newline
                    body = _NO_NEWLINE.sub(b"", body)
                more, less = _added_and_deleted(pieces, body)
                added, deleted = added + more, deleted + less
                if role == "source" and looks_generated(section, len(head), more, less):
                    role = "generated"
            else:
                binary = binary or b"\nBinary files " in head
            patch_id.add(entry, head, body)
            if role == "source":
                _name_functions(functions, text(entry.path), pieces[3::4])
                if not diff.patch_truncated:
                    cut = _cut(section, len(head), room)
                    diff.patch_truncated = len(cut) < len(section)
                    if cut:
                        kept.append(_START + cut + b"\n")
                        room -= len(kept[-1])
        at += width
        diff.files.append(_file(entry, added, deleted, binary, role))
    diff.functions = list(functions)
    diff.patch = text(b"".join(kept))
    diff.patch_id = patch_id.hexdigest()
    return diff


class PatchId:
    """Identity of a diff whatever its line numbers, white space and order of files.

    That of `git patch-id --stable` (git's builtin/patch-id.c): each file's header and hunk lines without
    white space, hunk headers and `index` line are hashed (SHA-1); the sum of the hashes, byte by byte
    with carry, is the id. A file without hunks (mode change, pure rename) is hashed with the next one that
    has some. Binary files add the full ids of both blobs, where git takes the abbreviated ones of the text.
    """

    def __init__(self) -> None:
        self._sum = 0
        self._begun = bytearray()

    def add(self, entry: Entry, head: bytes, body: bytes) -> None:
        """Adds one file: its header lines (after 'diff --git ') and its hunks' lines, which are all of its contents."""
        self._begun += b"diff--git" + _INDEX.sub(b"", head, count=1).translate(None, _SPACE)
        if body:
            self._flush(body.translate(None, _SPACE))
        elif b"\nBinary files " in head:
            self._flush(entry.old_id + entry.new_id)

    def _flush(self, rest: bytes) -> None:
        digest = hashlib.sha1(self._begun, usedforsecurity=False)
        digest.update(rest)
        # git adds bytes with a carry into the next higher index: a little-endian sum, cut to its width.
        self._sum = (self._sum + int.from_bytes(digest.digest(), "little")) % (1 << 160)
        self._begun.clear()

    def hexdigest(self) -> str | None:
        """40 hexadecimal digits; null for an empty diff."""
        if self._begun:
            self._flush(b"")
        return self._sum.to_bytes(20, "little").hex() if self._sum else None


def text(raw: bytes) -> str:
    """UTF-8, with other bytes written as \\xNN."""
    return raw.decode("utf-8", "backslashreplace")


def _added_and_deleted(pieces: Sequence[bytes | None], body: bytes) -> tuple[int, int]:
    """Lines added and deleted: the headers of the hunks give both sides' lines, so that one count gives the rest."""
    lines = body.count(b"\n")
    base, head = (sum(1 if number is None else int(number) for number in pieces[side::4]) for side in (1, 2))
    return lines - base, lines - head


def _file(entry: Entry, added: int, deleted: int, binary: bool, role: FileRole) -> FileChange:
    path = text(entry.path)
    status = _STATUS.get(entry.status, "modified")
    if SUBMODULE in (entry.old_mode, entry.new_mode) and status != "type_changed":
        status = "submodule"
        role = "other"
    # Valid by construction; checking 170,000 of them would take longer than git takes to find them.
    return FileChange.model_construct(
        path=path,
        old_path=text(entry.old_path) if entry.old_path else None,
        status=status,
        added=added,
        deleted=deleted,
        binary=binary,
        role=role,
        language=language_of(path),
    )


def _cut(section: bytes, head: int, room: int) -> bytes:
    """The section, or as many of its whole hunks as fit; empty when none does."""
    if len(section) + len(_START) + 1 <= room:
        return section
    end = section.rfind(b"\n@@ -", 0, max(0, room - len(_START) - 1))
    return section[:end] if end > head else b""


def _name_functions(functions: dict[str, None], path: str, headers: Sequence[bytes]) -> None:
    for header in headers:
        name = _function_name(header) if header else ""
        if name:
            functions[f"{path}::{name}"] = None


_PYTHON_NAME = re.compile(r"\s*(?:async\s+)?(?:class|def|cdef\s+class|c?p?def\b[^(:=]*?)\s+(\w+)\s*(?:[(:\[]|$)")
_C_NAME = re.compile(r"(~?[A-Za-z_@][\w@]*(?:::~?[\w@]+)*)\s*\(")
_C_TYPE = re.compile(r"\b(?:struct|class|union|enum|namespace)\s+(\w+)")
_NOT_NAMES = frozenset(["if", "for", "while", "switch", "return", "sizeof", "defined", "NPY_NO_EXPORT"])


@lru_cache(maxsize=65536)
def _function_name(header: bytes) -> str:
    """The function or class that a hunk header's context line begins; empty where it begins none."""
    line = text(header)
    if found := _PYTHON_NAME.match(line):
        return found.group(1)
    names = [name for name in _C_NAME.findall(line) if name not in _NOT_NAMES]
    if names:
        return str(names[0])
    found = _C_TYPE.search(line)
    return found.group(1) if found else ""
