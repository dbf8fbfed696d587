"""What of the fix a problem's text gives away, judged by the patch alone: a release has no trees."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

from perfquarry.curation.problems.leaks import Fix
from perfquarry.curation.problems.texts import EXEMPT

_CODE_LIKE = re.compile(r"[A-Za-z]_?[a-z0-9]*[_A-Z0-9]\w*|_\w+")
_SHORTEST_LINE = 12
_OF_PYTHON = frozenset([*keyword.kwlist, *keyword.softkwlist, *dir(builtins)])


def changed_text(patch: str) -> str:
    """Lines that a patch adds or removes, without their signs, in patches too that no tool would apply."""
    return "\n".join(line[1:] for line in patch.splitlines() if re.match(r"[+-](?!\+\+ |-- )", line))


def fix_in(problem: str, patch: str, message: str, targets: Iterable[str]) -> list[str]:
    """What of the fix a problem's text reveals: lines the patch adds, names that only they have, the message's words.

    `targets` are the task's functions at the base: what they name is no news. A name counts when it looks
    like code (an underscore, a digit or a capital within it), for plain words such as 'cache' stand in many
    texts by chance.
    """
    added: list[str] = []
    others: list[str] = []
    for line in patch.splitlines():
        (added if re.match(r"\+(?!\+\+ )", line) else others).append(" ".join(line[1:].split()))
    known = set(re.findall(r"\w+", "\n".join([*others, *targets])))
    names = {name for line in added for name in re.findall(r"\w+", line)} - known - _OF_PYTHON
    fix = Fix(
        title=message.partition("\n")[0],
        message=message,
        identifiers=frozenset(name for name in names if len(name) > 3 and _CODE_LIKE.fullmatch(name)),
        lines=frozenset(line for line in added if len(line) >= _SHORTEST_LINE and _is_distinctive(line)),
    )
    return fix.leaks_in(problem, EXEMPT)


def _is_distinctive(line: str) -> bool:
    """Whether a line has two names that are not Python's: 'raise ValueError(' and 'return result' stand anywhere."""
    return len(set(re.findall(r"[^\W\d]\w*", line)) - _OF_PYTHON) >= 2
