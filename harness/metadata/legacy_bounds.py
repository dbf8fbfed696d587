"""Bounds of requirements that were no versions even then, as setuptools took them before PEP 440."""

from __future__ import annotations

import contextlib
import re

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

_NAMED = re.compile(r"\s*[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?\s*(?:\[[^\]]*\])?\s*")
_BOUND = re.compile(r"\s*(?:[<>=!~]=?|===)\s*[^\s<>=!~]+\s*")


def readable(line: str) -> str:
    """A requirement without the bounds that are no versions, as of 'pytz (>=2011k,<2020)'; empty: it is none."""
    head, separator, marker = line.partition(";")
    named = _NAMED.match(head)
    bounds = head[named.end() :].strip(" ()").split(",") if named else []
    known = f"{named[0]}{','.join(filter(_is_version, bounds))} {separator}{marker}" if named else ""
    for text in (line, known if all(map(_BOUND.fullmatch, bounds)) else ""):
        with contextlib.suppress(InvalidRequirement):
            return str(Requirement(text.strip()))
    return ""


def _is_version(bound: str) -> bool:
    try:
        return bool(SpecifierSet(bound))
    except InvalidSpecifier:
        return False
