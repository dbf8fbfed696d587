"""The exact patch of a change, split into code and tests, and facts of a tree: its version and licence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from perfquarry.data.errors import GitFailed
from perfquarry.data.git import Git, git_of
from perfquarry.data.records import Change
from perfquarry.miners.blobs import EMPTY_TREE, contents_of, tree_files
from perfquarry.miners.diff import text
from perfquarry.miners.roles import role_of
from perfquarry.miners.stream import DIFF_OPTIONS, PATCH, SUBMODULE, Entry, entries_and_patch

ALL_BINARY = Path(__file__).with_name("all_binary.txt")
_DIFF = ("diff-tree", "-r", "-z", "--raw", *PATCH, "--binary", "--full-index", *DIFF_OPTIONS, "--no-renames")
_START = b"diff --git "
_LARGEST = 1024 * 1024


@dataclass(frozen=True)
class Patches:
    """Two texts in the form of `git diff --binary --full-index` that `git apply` takes at the base.

    They are always UTF-8: a file whose lines are in another encoding comes as a binary patch, exact
    all the same. Moves are written as deletions and additions, so that each text applies without the
    other. Changes of submodules are left out: trees of tasks have none.
    """

    patch: str
    """All files that are not tests."""
    test_patch: str
    """Test files (role 'test')."""


def split(clone: Path, change: Change) -> Patches:
    """The patch of a change, and that of its tests.

    Raises:
        GitFailed: objects of the base or the head are missing.
    """
    git = git_of(clone)
    sections = _sections(git, change)
    if any(not _is_utf8(section) for _, section in sections):
        exact = dict(_sections(git, change, "-c", f"core.attributesFile={ALL_BINARY}"))
        sections = [(entry, section if _is_utf8(section) else exact[entry]) for entry, section in sections]
    roles = {file.path: file.role for file in change.files}
    parts: dict[bool, list[bytes]] = {False: [], True: []}
    for entry, section in sections:
        if SUBMODULE not in (entry.old_mode, entry.new_mode):
            path = text(entry.path)
            parts[roles.get(path, role_of(path)) == "test"].append(section)
    return Patches(b"".join(parts[False]).decode(), b"".join(parts[True]).decode())


def version_at(clone: Path, sha: str) -> str:
    """The package's version as the tree at `sha` states it; empty when no file states it in plain text.

    Looked for in pyproject.toml, setup.cfg, setup.py, meson.build, then in version files and `__init__.py`
    of packages at most two folders deep.

    Raises:
        GitFailed: the tree cannot be read.
    """
    names = [name for name, _ in _VERSION_FILES]
    files = _files_at(clone, sha, "|".join(f"(?:{name})" for name in names))
    for name, pattern in _VERSION_FILES:
        named = [path for path in files if re.fullmatch(name, path)]
        for path in sorted(named, key=lambda one: (one.count("/"), len(one), one)):  # the nearest first
            version = _version_in(files[path], pattern)
            if version:
                return version
    return ""


def licence_at(clone: Path, sha: str) -> str:
    """SPDX identifier of the licence of the tree at `sha`; empty when unknown.

    That of a licence file at the root, else the one that the package's metadata name.

    Raises:
        GitFailed: the tree cannot be read.
    """
    return licence_file_at(clone, sha)[0]


def licence_file_at(clone: Path, sha: str) -> tuple[str, str]:
    """The same, with the path of the file; that of the first one whose text is not known; both empty for none.

    Raises:
        GitFailed: the tree cannot be read.
    """
    files = _files_at(clone, sha, r"(?i:(un)?licen[cs]e|copying)[\w.-]*")
    paths = sorted(files, key=lambda path: (len(path), path))
    for path in paths:
        words = " ".join(re.sub(r"[^\w.,/()-]+", " ", text(files[path])).lower().split())
        for identifier, phrases in _LICENCES:
            if all(phrase in words for phrase in phrases):
                return identifier, path
    return ("", paths[0]) if paths else _declared_licence(clone, sha)


def _declared_licence(clone: Path, sha: str) -> tuple[str, str]:
    """What the metadata of a tree without a licence file say, and where; both empty unless they name one licence."""
    for path, content in sorted(_files_at(clone, sha, r"pyproject\.toml|setup\.cfg|setup\.py").items()):
        classifiers = re.findall(r"License :: (?:OSI Approved :: )?([^\"'\n]+)", text(content))
        known = {_CLASSIFIERS.get(one.strip(), "") for one in classifiers}
        if len(known) == 1 and all(known):
            return known.pop(), path
    return "", ""


def _sections(git: Git, change: Change, *options: str) -> list[tuple[Entry, bytes]]:
    doing = f"reading the patch of change {change.change_id}"
    answer = git.output(*options, *_DIFF, change.base_sha or EMPTY_TREE, change.head_sha, doing=doing)
    if not answer:
        return []
    entries, patch = entries_and_patch(answer)
    texts = [_START + section + b"\n" for section in patch[len(_START) : -1].split(b"\n" + _START)]
    found = []
    at = 0
    for entry in entries:
        # A change of type (a file that becomes a link) is written as a deletion and an addition.
        width = 2 if entry.status == b"T" else 1
        found.append((entry, b"".join(texts[at : at + width])))
        at += width
    if at != len(texts):
        raise GitFailed(f"{doing}: git wrote {len(texts)} files where {at} changed; this git is not supported")
    return found


def _is_utf8(section: bytes) -> bool:
    try:
        section.decode()
    except UnicodeDecodeError:
        return False
    return True


def _files_at(clone: Path, sha: str, wanted: str) -> dict[str, bytes]:
    """Contents of files at most two folders deep whose whole path matches, without links and huge ones."""
    pattern = re.compile(wanted)
    near = (file for file in tree_files(clone, sha) if file.path.count("/") <= 2 and file.size <= _LARGEST)
    return contents_of(clone, [file for file in near if pattern.fullmatch(file.path)])


def _version_in(content: bytes, pattern: str) -> str:
    source = text(content)
    found = re.search(pattern, source, re.M | re.S)
    if found:
        return found.group(1)
    numbers = [re.search(rf"^{name}\s*=\s*(\d+)\s*$", source, re.M) for name in ("MAJOR", "MINOR", "MICRO")]
    return ".".join(number.group(1) for number in numbers if number) if all(numbers) else ""


_NUMBER = r"v?(\d+(?:\.\w+)*(?:[-+.]?\w+)*)"
_ASSIGNED = rf"^\s*(?:__version__|VERSION|version|short_version)\s*(?::\s*\w+\s*)?=\s*[ub]?[\"']{_NUMBER}[\"']"
_VERSION_FILES = (
    (r"pyproject\.toml", rf"^\[(?:project|tool\.poetry)\]\s*$(?:(?!^\[).)*?^version\s*=\s*[\"']{_NUMBER}[\"']"),
    (r"setup\.cfg", rf"^\[metadata\]\s*$(?:(?!^\[).)*?^version\s*=\s*{_NUMBER}\s*$"),
    (r"setup\.py", rf"^\s*(?:__version__|VERSION|version)\s*=\s*[ub]?[\"']{_NUMBER}[\"']"),
    (r"meson\.build", rf"^project\((?:(?!\)\s*$).)*?\bversion\s*:\s*'{_NUMBER}'"),
    (r"(?:[\w.-]+/){0,2}(?:_?version|__version__|release|__about__)\.py", _ASSIGNED),
    (r"(?:[\w.-]+/){0,2}__init__\.py", _ASSIGNED),
)

_REDISTRIBUTION = "redistribution and use in source and binary forms"
_LICENCES: tuple[tuple[str, tuple[str, ...]], ...] = (
    # Most particular first: later texts contain the phrases of earlier ones' families.
    ("AGPL-3.0", ("gnu affero general public license", "version 3")),
    ("LGPL-3.0", ("gnu lesser general public license", "version 3")),
    ("LGPL-2.1", ("gnu lesser general public license", "version 2.1")),
    ("Apache-2.0", ("apache license", "version 2.0")),
    ("MPL-2.0", ("mozilla public license", "2.0")),
    ("GPL-3.0", ("gnu general public license", "version 3")),
    ("GPL-2.0", ("gnu general public license", "version 2")),
    ("BSD-4-Clause", (_REDISTRIBUTION, "all advertising materials mentioning features")),
    ("BSD-3-Clause", (_REDISTRIBUTION, "endorse or promote products")),
    ("BSD-2-Clause", (_REDISTRIBUTION, "in binary form must reproduce")),
    ("MIT", ("permission is hereby granted, free of charge", "the above copyright notice and this permission notice")),
    ("ISC", ("permission to use, copy, modify, and/or distribute this software for any purpose",)),
    ("PSF-2.0", ("python software foundation license",)),
    ("Unlicense", ("this is free and unencumbered software",)),
)
_CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "GNU Affero General Public License v3": "AGPL-3.0",
    "GNU Affero General Public License v3 or later (AGPLv3+)": "AGPL-3.0",
    "GNU General Public License v2 (GPLv2)": "GPL-2.0",
    "GNU General Public License v2 or later (GPLv2+)": "GPL-2.0",
    "GNU General Public License v3 (GPLv3)": "GPL-3.0",
    "GNU General Public License v3 or later (GPLv3+)": "GPL-3.0",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0",
    "GNU Lesser General Public License v3 or later (LGPLv3+)": "LGPL-3.0",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
}
"""Trove classifiers that name one licence; "BSD License" is several."""
