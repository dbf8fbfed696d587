"""Signals in the code itself: kinds of rewriting that usually exist to save time.

Each compares how often a form of code (`forms`) stands among the removed and among the added
lines; lines that only moved are in neither. None of them proves a gain; together with the
shape of the change they find improvements whose messages never speak of speed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from miners.judge.diff import Diff, Hunk
from miners.judge.finding import Finding, quote
from miners.judge.forms import LOOP, PYTHON, Form
from miners.judge.native import NATIVE

_EXIT = re.compile(r"^[ \t]*(?:el)?if\b[^\n]*\n[ \t]*(?:return|continue|break|yield|goto)\b", re.M)
_IMPORT = re.compile(r"\s+(?:from [\w.]+ )?import \w")
_CALL = re.compile(r"\w\(")
_ARROW = re.compile(r"->\w")
_LOOP_HEADS = ("for ", "while ", "for(", "while(", "async for ")
_ASKED_EACH_TIME = ("for (", "for(", "while")
_FAST_NAME = re.compile(r"fast|quick|cached|lazy|optimi[sz]ed|speedup|memo_|buffered|unsafe|trusted|_inplace|hashable")
_CONSTANT = re.compile(
    r"_?[A-Z][A-Z_\d]{2,40}(?:: [^\n=]{1,40})? = [\w({\[]|_\w{2,40} = (?:frozenset|set|dict|\{|re\.|\(|object\.)"
)


def find(diff: Diff) -> Iterator[Finding]:
    """The kinds of rewriting a diff shows."""
    for form in PYTHON + NATIVE if diff.native else PYTHON:
        if not form.python_only or diff.python:
            yield from _traded(form, diff)
    yield from _balance(diff)
    for name, lines in _BY_HUNK:
        line = next((line for hunk in diff.hunks for line in lines(hunk)), None)
        if line is not None:
            yield Finding(name, 1.0, f"+ {line.strip()[:80]}")


def _traded(form: Form, diff: Diff) -> Iterator[Finding]:
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
    yield Finding(form.name, 1.0, evidence)


def _more(pattern: re.Pattern[str], here: str, there: str) -> bool:
    return len(pattern.findall(here)) > len(pattern.findall(there))


def _balance(diff: Diff) -> Iterator[Finding]:
    removed, added = diff.removed, diff.added
    if _more(LOOP, removed, added) and (loop := LOOP.search(removed)):
        yield Finding("loop_removed", 1.0, "- " + quote(removed, loop.start()))
    if _more(_EXIT, added, removed) and (leave := _EXIT.search(added)):
        yield Finding("early_exit", 1.0, "+ " + quote(added, leave.end()))
    calls = len(_CALL.findall(removed)) - len(_CALL.findall(added))
    if calls > 0 and added:
        yield Finding("fewer_calls", min(calls, 3) / 3, f"{calls} calls fewer")
    arrows = len(_ARROW.findall(removed)) - len(_ARROW.findall(added)) if diff.native else 0
    if arrows > 0 and added:
        yield Finding("fewer_dereferences", min(arrows, 3) / 3, f"{arrows} accesses through pointers fewer")
    lower = added.lower()
    name = _FAST_NAME.search(lower)
    if name and _more(_FAST_NAME, lower, removed.lower()):
        yield Finding("fast_name", 1.0, "+ " + quote(added, name.start()))


def _nested(hunk: Hunk) -> Iterator[tuple[str, str, int]]:
    """(sign, text, loops seen around it) of each line; what a loop's head asks at each turn is inside the loop."""
    loops: dict[str, list[int]] = {"-": [], "+": []}
    for sign, text in hunk.lines:
        stripped, depth, level = text.strip(), _indent(text), 0
        if stripped[:1] in ("", "{", "#"):
            continue
        for side in "-+" if sign == " " else sign:
            while loops[side] and loops[side][-1] >= depth:
                loops[side].pop()
            level = len(loops[side])
            if stripped.startswith(_LOOP_HEADS):
                loops[side].append(depth)
                level += stripped.startswith(_ASKED_EACH_TIME)
        yield sign, text, level


def _hoisted(hunk: Hunk) -> Iterator[str]:
    """Lines before a loop that stood, or whose expression stood, inside of it; they may have become declarations."""
    lines = list(_nested(hunk)) if hunk.removed and hunk.added else []
    before: dict[str, int] = {}
    texts = [""] * (1 + max((level for _, _, level in lines), default=0))
    for sign, text, level in lines:
        if sign == "-" and level and len(text.strip()) > 4:
            before[_statement(text)] = max(level, before.get(_statement(text), 0))
            texts[level] += text + "\n"
    loop_follows = False
    for sign, text, level in reversed(lines):
        if sign != "-" and text.strip().startswith(_LOOP_HEADS):
            loop_follows = True
        elif sign == "+" and loop_follows:
            expression = text.partition(" = ")[2].strip().rstrip(";")
            deeper = _worth_keeping(expression) and any(expression in inside for inside in texts[level + 1 :])
            if before.get(_statement(text), 0) > level or deeper:
                yield text


def _statement(text: str) -> str:
    """A line of code without indentation and without the type it declares."""
    name, equals, expression = text.strip().partition(" = ")
    return f"{_declared(name)}{equals}{expression}" if equals else name


def _declared(target: str) -> str:
    return target.rpartition(" ")[2].lstrip("*&")


def _worth_keeping(expression: str) -> bool:
    return len(expression) > 4 and any(mark in expression for mark in (".", "(", "[", "->"))


def _inner_loop(hunk: Hunk) -> Iterator[str]:
    """Added lines inside a loop of native code that also loses lines."""
    if not hunk.native:
        return
    inside: dict[str, str] = {}
    for sign, text, level in _nested(hunk):
        if level and not text.strip().startswith(_LOOP_HEADS):
            inside.setdefault(sign, text)
    if "-" in inside and "+" in inside:
        yield inside["+"]


def _extracted(hunk: Hunk) -> Iterator[str]:
    """Assignments of an expression to a name, where the expression stood in removed code."""
    removed = "\n".join(hunk.removed)
    for line in hunk.added if removed else ():
        name, equals, expression = line.partition(" = ")
        expression = expression.strip().rstrip(";")
        if not equals or not _worth_keeping(expression) or not _declared(name).isidentifier():
            continue
        if expression in removed and f"= {expression}" not in removed:
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
    ("inner_loop", _inner_loop),
    ("computed_once", _extracted),
    ("module_constant", _constants),
    ("lazy_import", _lazy_imports),
)
