"""Source of unit tests, from the text of their file; found by indentation, so in any Python's syntax."""

from __future__ import annotations

import re
from collections.abc import Sequence


def test_source(content: str, node: str) -> str:
    """Text of the function that a pytest node id names, decorators included; empty where the file does not define it.

    Of several of one name in a class or module the last counts, as in Python.
    """
    lines = content.splitlines()
    start, end = 0, len(lines)
    for name in node.partition("::")[2].partition("[")[0].split("::"):
        head = re.compile(rf"(\s*)(?:async\s+def|def|class)\s+{re.escape(name)}\b")
        places = [(len(found[1]), -i) for i in range(start, end) if (found := head.match(lines[i]))]
        if not places:
            return ""
        indent, place = min(places)
        start, end = -place, _end_of(lines, -place, end, indent)
    while start and lines[start - 1].strip().startswith("@"):
        start -= 1
    block = lines[start:end]
    margin = len(block[0]) - len(block[0].lstrip())
    return "\n".join(line[margin:] if not line[:margin].strip() else line for line in block).rstrip()


def _end_of(lines: Sequence[str], place: int, end: int, indent: int) -> int:
    opened = not lines[place].rstrip().endswith(":")  # the head itself may be many lines long
    for number in range(place + 1, end):
        line = lines[number]
        if opened and line.rstrip().endswith(":"):
            opened = False
            continue
        if line.strip() and len(line) - len(line.lstrip()) <= indent and not line.lstrip().startswith((")", "#")):
            return number
    return end
