"""Types of what is read from a stranger's release and becomes a path, an option, an address or a name here.

A value that does not fit is refused with the reason when the record is made, before anything is run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, ValidationError

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SCP_LIKE = re.compile(r"[\w.][\w.-]*@[\w.][\w.-]*:[^\s:-][^\s:]*")
_SCHEMES = ("https", "http", "ssh", "git")


def _matching(pattern: str, what: str) -> AfterValidator:
    expression = re.compile(pattern, re.ASCII)

    def check(value: str) -> str:
        return _require(expression.fullmatch(value) is not None and ".." not in value, value, what)

    return AfterValidator(check)


def _checked(fits: Callable[[str], bool], what: str) -> AfterValidator:
    return AfterValidator(lambda value: _require(fits(value), value, what))


def _require(fits: bool, value: str, what: str) -> str:
    if not fits:
        shown = repr(value if len(value) <= 80 else f"{value[:80]}…")
        raise ValueError(f"{shown} is no {what}")
    return value


def _is_pinned(text: str) -> bool:
    """Whether it is 'name==version' or 'name[extra]==version', and nothing else that installers understand."""
    from packaging.requirements import InvalidRequirement, Requirement  # only who opens a release needs it
    from packaging.version import InvalidVersion, Version

    try:
        requirement = Requirement(text)
        [clause] = requirement.specifier
        Version(clause.version)
    except (InvalidRequirement, InvalidVersion, ValueError):
        return False
    plain = requirement.url is None and requirement.marker is None and clause.operator == "=="
    return plain and re.fullmatch(r"[A-Za-z0-9][\w.-]*(\[[\w.,-]+\])?==[\w.!+-]+", text, re.ASCII) is not None


def _is_inside(text: str) -> bool:
    """Whether it is a path that stays in its folder, and no option."""
    parts = text.removesuffix("/").split("/")
    begins_well = not text.startswith(("-", "~")) and bool(text)
    return begins_well and not _CONTROL.search(text) and "\\" not in text and not {"", ".."} & set(parts)


def _is_folder(text: str) -> bool:
    return _is_inside(text) and not re.search(r"[:;]", text)


def _is_code(text: str) -> bool:
    """Whether the part before '::' is a path that stays in its folder."""
    path, _, name = text.partition("::")
    return _is_inside(path) and not _CONTROL.search(name)


def _is_title(text: str) -> bool:
    """Whether it is one line that no program takes for an option."""
    return 0 < len(text) <= 200 and not text.startswith("-") and not _CONTROL.search(text)


def _is_address(text: str) -> bool:
    """Whether git can clone from it without a command, a file or a password; empty for none."""
    if not text or _SCP_LIKE.fullmatch(text):
        return True
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return False
    whole = re.fullmatch(r"[\w.-]+", host, re.ASCII) and not host.startswith("-") and not re.search(r"\s", text)
    return bool(whole) and parts.scheme in _SCHEMES and parts.password is None and not _CONTROL.search(text)


Name = Annotated[str, _matching(r"\w[\w.+-]{0,199}", "name of a file")]
"""Becomes a file or a folder."""
Codebase = Annotated[str, _checked(_is_title, "name of a repository")]
ObjectId = Annotated[str, _matching(r"[0-9a-f]{40}([0-9a-f]{24})?", "id of a git object")]
"""A commit or a tree, never another way to name one."""
Pinned = Annotated[str, _checked(_is_pinned, "'name==version' (extras only as 'name[extra]==version')")]
"""A requirement: no address, option, path, marker or range."""
Interpreter = Annotated[str, _matching(r"\d{1,3}\.\d{1,3}\.\d{1,3}([abrc]{1,2}\d{1,3})?\+?", "version X.Y.Z of Python")]
BuildVersion = Annotated[str, _matching(r"(\d[\w.!+-]{0,99})?", "version of a package")]
"""Becomes an environment variable; may be empty."""
Folder = Annotated[str, _checked(_is_folder, "folder within the tree")]
"""Becomes an entry of PYTHONPATH."""
CodePlace = Annotated[str, _checked(_is_code, "'path::name' within the tree")]
"""A node id of a test or the place of a function; becomes an argument of pytest."""
Address = Annotated[str, _checked(_is_address, "https, http, ssh or git address without a password")]
DebianPackage = Annotated[str, _matching(r"[a-z0-9][a-z0-9+.-]{0,99}", "name of a Debian package")]
ImageDigest = Annotated[str, _matching(r"(sha256:[0-9a-f]{64})?", "digest of an image")]

ImageReference = Annotated[
    str, _matching(r"[a-zA-Z0-9.\[\]:-]+(/[a-z0-9]+([._-]+[a-z0-9]+)*)+@sha256:[0-9a-f]{64}", "image by digest")
]
"""'registry/name@sha256:…'."""
Sha256 = Annotated[str, _matching(r"[0-9a-f]{64}", "SHA-256")]


def public_address(url: str) -> str:
    """The address, empty where it is of this machine alone."""
    return url if _is_address(url) else ""


def validation_message(error: ValidationError) -> str:
    """What does not fit, and why, in one line."""
    found = [f"{'.'.join(map(str, one['loc']))}: {one['msg'].removeprefix('Value error, ')}" for one in error.errors()]
    more = f" (and {len(found) - 3} more)" if len(found) > 3 else ""
    return "; ".join(found[:3]) + more
