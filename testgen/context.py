"""What a model is shown of a change: message, diff, changed functions, who calls them, and the tests near them.

Every part is cut to its share of the tokens, whole pieces first, the most relevant before the others; what a part
leaves goes to the next one. All of it is strangers' text: templates put it out through fences only.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from perfquarry.data.records import Change, Side
from perfquarry.llm.fences import Piece, fit
from perfquarry.llm.tokens import about_tokens
from perfquarry.testgen.apis import apis_of
from perfquarry.testgen.case import Case
from perfquarry.testgen.changed_lines import Function, named_functions
from perfquarry.testgen.definitions import definitions_of
from perfquarry.testgen.imports import parse
from perfquarry.testgen.traced import Trace, candidate_files, content_of, path_at

SHARES = {"message": 0.1, "apis": 0.05, "diff": 0.3, "functions": 0.3, "examples": 0.25}
"""Of the tokens, in this order."""
APIS = 12
"""Public names that reach the change."""
EXAMPLE_FILES = 8
"""Test files that are read for examples."""
_IMPORTED = 0.5
"""Relevance of a file's imports beside its best example's."""


def context_of(case: Case, tokens: int, sides: Sequence[Side]) -> dict[str, str]:
    """The parts of a prompt about a change, by the names of `SHARES`: together at most `tokens` (`about_tokens`).

    Nothing of it depends on who judged the change: the same change is the same question.

    Args:
        sides: whose versions of the changed functions are shown: the base's, or both.
    """
    apis = apis_of(case, APIS)
    pieces = {
        "message": [
            Piece(f"{text}\n", -float(at)) for at, text in enumerate(case.change.message.strip().split("\n\n"))
        ],
        "apis": [Piece(f"{api.name}: {api.why}", -float(at)) for at, api in enumerate(apis)],
        "diff": _hunks(case.change, case.trace),
        "functions": [piece for side in sides for piece in _functions(case, side)],
        "examples": _examples(case, [api.name for api in apis]),
    }
    shown: dict[str, str] = {}
    spare = 0
    for name, share in SHARES.items():
        granted = int(share * tokens) + spare
        shown[name] = fit(pieces[name], granted)
        spare = granted - about_tokens(shown[name])
    return shown


def _hunks(change: Change, trace: Trace) -> list[Piece]:
    """Hunks of the diff; those that change more executable lines are more relevant."""
    lines = {side: {one.path: one.spans for one in trace.of(side)} for side in ("base", "head")}
    try:
        patch = PatchSet(change.patch)
    except UnidiffParseError:
        return [Piece(change.patch, 0.0)]
    pieces = []
    for file in patch:
        names = f"--- {file.source_file}\n+++ {file.target_file}\n"
        old, new = (name.split("/", 1)[-1] for name in (file.source_file, file.target_file))
        executable = (lines["base"].get(old, {}), lines["head"].get(new, {}))
        for hunk in file:
            changed = [(line.source_line_no, line.target_line_no) for line in hunk if not line.is_context]
            hits = sum(before in executable[0] or after in executable[1] for before, after in changed)
            pieces.append(Piece(names + str(hunk).rstrip("\n"), hits + min(len(changed), 50) / 100, file.path))
    return pieces


def _functions(case: Case, side: Side) -> Iterator[Piece]:
    """Functions with changed lines in full, methods below the head of their class."""
    spans = {target.path: target.spans for target in case.trace.of(side)}
    for path in dict.fromkeys(path_at(file, side) for file in case.change.files):
        source = content_of(case.sides[side].tree, path)
        module = parse(source) if path in spans else None
        if module is None:
            continue
        text = source.decode(errors="replace").splitlines()
        classes = {node.name: text[node.lineno - 1] for node in ast.walk(module) if isinstance(node, ast.ClassDef)}
        for name, function in named_functions(module):
            first = min([function.lineno, *(node.lineno for node in function.decorator_list)])
            last = function.end_lineno or first
            hits = sum(first <= line <= last for line in spans[path])
            if hits:
                title = f"# {path} at the {side}, line {first}: {name}"
                owner = classes.get(name.rpartition(".")[0].rpartition(".")[2])
                lines = [title, *([owner] if owner else []), *text[first - 1 : last], ""]
                yield Piece("\n".join(lines), hits + (side == "base"), name)


def _examples(case: Case, apis: Sequence[str]) -> list[Piece]:
    """Functions of the base's tests that call by name what changed or what reaches it, those that call more first."""
    changed = [*case.trace.functions, *(f"{function.path}::{function.name}" for function in case.verdict.functions)]
    names = {part for one in changed for part in one.rpartition("::")[2].split(".")}
    names |= {api.rpartition(".")[2] for api in apis}
    pieces: list[Piece] = []
    for test in candidate_files(case.change, case.sides, EXAMPLE_FILES):
        source = content_of(case.base.tree, test.path)
        module, definitions = parse(source), definitions_of(source)
        if module is None or definitions is None:
            continue
        text = source.decode(errors="replace").splitlines()
        found = []
        for name, function in named_functions(module):
            calls = Counter(called for called in definitions.called_names(tuple(name.split("."))) if called in names)
            if calls:
                title = f"# {test.path}: {name}"
                relevance = len(calls) / (1 + test.distance)
                found.append(Piece("\n".join([title, *_lines(text, function), ""]), relevance, name))
        imports = [
            line for node in module.body if isinstance(node, ast.Import | ast.ImportFrom) for line in _lines(text, node)
        ]
        if found and imports:
            best = max(piece.relevance for piece in found)
            pieces.append(Piece("\n".join([f"# {test.path}", *imports, ""]), best + _IMPORTED, test.path))
        pieces += found
    return pieces


def _lines(text: Sequence[str], node: Function | ast.stmt) -> Sequence[str]:
    return text[node.lineno - 1 : node.end_lineno or node.lineno]
