"""Signals in the code itself: kinds of rewriting that usually exist to save time.

Each compares how often a form of code (`forms`) stands among the removed and among the added
lines; lines that only moved are in neither. None of them proves a gain; together with the
shape of the change they find improvements whose messages never speak of speed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from perfquarry.miners.judge.diff import Hunk, JudgedDiff
from perfquarry.miners.judge.finding import JudgeFinding, quote
from perfquarry.miners.judge.forms import LOOP, PYTHON, Form
from perfquarry.miners.judge.native import NATIVE

_EXIT = re.compile(r"^[ \t]*(?:el)?if\b[^\n]*\n[ \t]*(?:return|continue|break|yield|goto)\b", re.M)
_IMPORT = re.compile(r"\s+(?:from [\w.]+ )?import \w")
_CALL = re.compile(r"\w\(")
_FAST_NAME = re.compile(r"fast|quick|cached|lazy|optimi[sz]ed|speedup|memo_|buffered|unsafe|trusted|_inplace|hashable")
_CONSTANT = re.compile(
    r"_?[A-Z][A-Z_\d]{2,40}(?:: [^\n=]{1,40})? = [\w({\[]|_\w{2,40} = (?:frozenset|set|dict|\{|re\.|\(|object\.)"
)


def find(diff: JudgedDiff) -> Iterator[JudgeFinding]:
    """The kinds of rewriting a diff shows."""
    for form in PYTHON + NATIVE if diff.native else PYTHON:
        if not form.python_only or diff.python:
            yield from _traded(form, diff)
    yield from _balance(diff)
    for name, lines in _BY_HUNK:
        line = next((line for hunk in diff.hunks for line in lines(hunk)), None)
        if line is not None:
            yield JudgeFinding(name, 1.0, f"+ {line.strip()[:80]}")


def _traded(form: Form, diff: JudgedDiff) -> Iterator[JudgeFinding]:
    evidence = ""
    if form.drop is not None:
        first = form.drop.search(diff.removed)
        if first is None or (form.gain is None and not _more(form.drop, diff.removed, diff.added)):
            return
        evidence = "- " + quote(diff.removed, first.start())
    if form.gain is not None:
        first = form.gain.search(diff.added)
        if first is None or not _more(form.gain, diff.added, diff.removed):
            return
        if form.drop is not None and not _more(form.drop, diff.removed, diff.added):
            return
        evidence = "+ " + quote(diff.added, first.start())
    yield JudgeFinding(form.name, 1.0, evidence)


def _more(pattern: re.Pattern[str], here: str, there: str) -> bool:
    return len(pattern.findall(here)) > len(pattern.findall(there))


def _balance(diff: JudgedDiff) -> Iterator[JudgeFinding]:
    removed, added = diff.removed, diff.added
    if _more(LOOP, removed, added) and (loop := LOOP.search(removed)):
        yield JudgeFinding("loop_removed", 1.0, "- " + quote(removed, loop.start()))
    if _more(_EXIT, added, removed) and (leave := _EXIT.search(added)):
        yield JudgeFinding("early_exit", 1.0, "+ " + quote(added, leave.end()))
    calls = len(_CALL.findall(removed)) - len(_CALL.findall(added))
    if calls > 0 and added:
        yield JudgeFinding("fewer_calls", min(calls, 3) / 3, f"{calls} calls fewer")
    lower = added.lower()
    name = _FAST_NAME.search(lower)
    if name and _more(_FAST_NAME, lower, removed.lower()):
        yield JudgeFinding("fast_name", 1.0, "+ " + quote(added, name.start()))


def _hoisted(hunk: Hunk) -> Iterator[str]:
    """Lines that stood inside a loop and now stand before it, less indented."""
    inside = {line.strip(): _indent(line) for line in hunk.removed if len(line.strip()) > 4}
    if not inside or not hunk.added:
        return
    loop_follows = False
    for sign, text in reversed(hunk.lines):
        stripped = text.strip()
        if sign != "-" and stripped.startswith(("for ", "while ", "for(", "while(", "async for ")):
            loop_follows = True
        elif sign == "+" and loop_follows and inside.get(stripped, -1) > _indent(text):
            yield text


def _extracted(hunk: Hunk) -> Iterator[str]:
    """Assignments of an expression to a name, where the expression stood in removed code."""
    removed = "\n".join(hunk.removed)
    for line in hunk.added if removed else ():
        name, equals, expression = line.partition(" = ")
        expression = expression.strip().rstrip(";")
        if not equals or len(expression) < 5 or not name.rpartition(" ")[2].isidentifier():
            continue
        worth_keeping = "." in expression or "(" in expression or "[" in expression
        if worth_keeping and expression in removed and f"= {expression}" not in removed:
            yield line


def _constants(hunk: Hunk) -> Iterator[str]:
    """Private names and constants that are new at module level, in a hunk that also removes code."""
    return (line for line in hunk.added if hunk.python and hunk.removed and _CONSTANT.match(line))


def _lazy_imports(hunk: Hunk) -> Iterator[str]:
    return (line for line in hunk.added if hunk.python and _IMPORT.match(line))


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


_BY_HUNK: tuple[tuple[str, Callable[[Hunk], Iterator[str]]], ...] = (
    ("out_of_loop", _hoisted),
    ("computed_once", _extracted),
    ("module_constant", _constants),
    ("lazy_import", _lazy_imports),
)
