"""What of the fix a problem's text gives away, told from the patch alone: a release has no trees."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_CODE_LIKE = re.compile(r"[A-Za-z]_?[a-z0-9]*[_A-Z0-9]\w*|_\w+")
_SHORTEST_LINE = 12
_SHORTEST_WORDS = 4


def changed_lines(patch: str) -> str:
    """Lines that a patch adds or removes, without their signs; binary files have none."""
    return "\n".join(line[1:] for line in patch.splitlines() if re.match(r"[+-](?!\+\+ |-- )", line))


def fix_in(problem: str, patch: str, message: str, targets: Iterable[str]) -> list[str]:
    """What of the fix a problem's text tells: lines the patch adds, names that only they have, the message's words.

    `targets` are the task's functions at the base: what they name is no news. A name counts when it looks
    like code (an underscore, a digit or a capital within it), for plain words such as 'cache' stand in many
    texts by chance.
    """
    added = [line[1:].strip() for line in patch.splitlines() if line.startswith("+") and not line.startswith("+++ ")]
    others = [line for line in patch.splitlines() if not line.startswith("+") or line.startswith("+++ ")]
    told = [line for line in added if len(line) >= _SHORTEST_LINE and line in problem]
    known = set(re.findall(r"\w+", "\n".join([*others, *targets])))
    new = {name for line in added for name in re.findall(r"\w+", line)} - known
    words = set(re.findall(r"\w+", problem))
    told += sorted(name for name in new & words if len(name) > 3 and _CODE_LIKE.fullmatch(name))
    said = _plain(problem)
    told += [words for words in map(_plain, _sentences(message)) if words in said]
    return list(dict.fromkeys(told))


def _sentences(message: str) -> Iterator[str]:
    for sentence in re.split(r"(?<=[.!?])\s+|\n+", message):
        if len(sentence.split()) >= _SHORTEST_WORDS:
            yield sentence


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
