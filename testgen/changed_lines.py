"""Changed lines of Python files that a test can execute, on each side of a change.

What counts is a statement inside a function: the removed and modified ones on the base, the
added and modified ones on the head. A changed decorator or signature belongs to its function,
whose body stands for it. Definitions at module or class level run at import, not in a test; where
nothing else changed, the functions that use the changed names stand for them. A function that makes
what the module binds runs then, too: those that use what it made count beside it.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from perfquarry.testgen.imports import parse

Function = ast.FunctionDef | ast.AsyncFunctionDef
_CALLS = 3
"""Steps from a changed function to those that use it."""


@dataclass(frozen=True)
class Targets:
    """Changed lines of one file on one side, each with the lines whose execution counts as a hit of it."""

    path: str
    spans: Mapping[int, frozenset[int]] = field(default_factory=dict)

    def hit_by(self, executed: Iterable[int]) -> list[int]:
        """Changed lines that an execution of the given lines hits, ascending."""
        lines = frozenset(executed)
        return sorted(line for line, span in self.spans.items() if not span.isdisjoint(lines))


def differing_lines(base: bytes, head: bytes) -> tuple[set[int], set[int]]:
    """Line numbers (from 1) that only the base has and that only the head has."""
    old, new = (text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n") for text in (base, head))
    start = _common(zip(old, new, strict=False))
    end = _common(zip(reversed(old[start:]), reversed(new[start:]), strict=False))
    matcher = SequenceMatcher(None, old[start : len(old) - end], new[start : len(new) - end], autojunk=False)
    removed: set[int] = set()
    added: set[int] = set()
    for kind, low, high, new_low, new_high in matcher.get_opcodes():
        if kind != "equal":
            removed.update(range(start + low + 1, start + high + 1))
            added.update(range(start + new_low + 1, start + new_high + 1))
    return removed, added


def _common(pairs: Iterable[tuple[bytes, bytes]]) -> int:
    count = 0
    for one, other in pairs:
        if one != other:
            break
        count += 1
    return count


def in_functions(path: str, source: bytes, changed: set[int]) -> Targets:
    """The changed lines that are statements, decorators or signatures of functions; none where it does not parse."""
    tree = parse(source)
    if tree is None:
        return Targets(path)
    spans: dict[int, frozenset[int]] = {}
    for function in _functions(tree):
        body = frozenset(line for span in _body_spans(function) for line in span)
        first = min([function.lineno, *(node.lineno for node in function.decorator_list)])
        spans.update((line, body) for line in range(first, function.body[0].lineno) if line in changed)
    for function in _functions(tree):  # inner statements last: they win over an outer header
        for span in _body_spans(function):
            spans.update((line, span) for line in span if line in changed)
    makers = {one.name: one for one in definitions_in(tree.body) if isinstance(one, Function)}
    changed_makers = {name for name, one in makers.items() if any(line in spans for line in _range(one))}
    for name, users in _users_of_made(tree, changed_makers).items():
        spans.update((line, spans[line] | users) for line in _range(makers[name]) if line in spans)
    return Targets(path, spans)


def _users_of_made(tree: ast.Module, makers: Container[str]) -> dict[str, frozenset[int]]:
    """By those of the makers with which statements of the module bind names: lines of the functions that use these."""
    made: dict[str, set[str]] = {}
    for node in _statements(tree.body):
        used = _names_in(node)
        bound = {name for name, _ in bindings(node)}
        for maker in [*made, *(name for name in used if name in makers and name not in made)]:
            if maker in used or not used.isdisjoint(made[maker]):
                made.setdefault(maker, set()).update(bound)
    functions = list(named_functions(tree)) if made else []
    users = [(_names_in(function), function) for _, function in functions]
    return {
        maker: frozenset(
            line
            for used, function in users
            if not used.isdisjoint(names - {maker})
            for span in _body_spans(function)
            for line in span
        )
        for maker, names in made.items()
    }


def _statements(body: Iterable[ast.AST]) -> Iterator[ast.stmt]:
    """Simple statements of a module, those under if and try included, in their order."""
    for node in body:
        if isinstance(node, Function | ast.ClassDef):
            continue
        inner = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            yield node
        elif not isinstance(node, ast.expr):
            yield from _statements(inner)


def _names_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def standing_for(path: str, source: bytes, changed: set[int], functions: Iterable[str]) -> Targets:
    """All lines of the functions that changed definitions outside functions concern.

    Those are the methods of a class whose body or header changed, and of its subclasses, the functions
    that use a name bound by a changed statement of the module, and the given ones ('Class.method').
    """
    tree = parse(source)
    if tree is None:
        return Targets(path)
    names, changed_classes = _changed_bindings(tree, changed)
    classes = _with_subclasses(tree, changed_classes)
    wanted = set(functions)
    spans: dict[int, frozenset[int]] = {}
    for qualified, function in named_functions(tree):
        owner = qualified.rpartition(".")[0]
        if qualified in wanted or owner in classes or _names_in(function) & names:
            spans.update((line, span) for span in _body_spans(function) for line in span)
    return Targets(path, spans)


def named_functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Functions and methods with their qualified names within the file; nested functions belong to theirs."""

    def walk(body: Iterable[ast.AST], prefix: str) -> Iterator[tuple[str, Function]]:
        for node in definitions_in(body):
            if isinstance(node, Function):
                yield prefix + node.name, node
            else:
                yield from walk(node.body, f"{prefix}{node.name}.")

    return walk(tree.body, "")


def definitions_in(body: Iterable[ast.AST]) -> Iterator[Function | ast.ClassDef]:
    """Functions and classes directly in a body, those under if and try included."""
    for node in body:
        if isinstance(node, Function | ast.ClassDef):
            yield node
        elif not isinstance(node, ast.expr):
            yield from definitions_in(ast.iter_child_nodes(node))


def functions_around(source: bytes, lines: Container[int]) -> set[str]:
    """Qualified names of the functions any of whose lines is given; 'outer.inner' for nested ones, and 'outer', too."""
    return {name for name, function in _nested(source) if any(line in lines for line in _range(function))}


def owners_of(source: bytes, lines: Container[int]) -> dict[int, str]:
    """Qualified name of the innermost function around each of the given lines that has one."""
    return {line: name for name, function in _nested(source) for line in _range(function) if line in lines}


def callers_of(source: bytes, names: Iterable[str]) -> set[str]:
    """Bare names of the file's functions that use functions of it ('Class.method'), without the given ones.

    What begins with an underscore is followed on to who uses that.
    """
    tree = parse(source)
    functions = list(named_functions(tree)) if tree is not None else []
    uses = {name: _used_names(function) for name, function in functions}
    known = {name for name in names if name in uses}
    found: set[str] = set()
    new = set(known)
    for _ in range(_CALLS):
        words = {part for name in new for part in name.split(".") if not part.startswith("__")}
        new = {name for name, used in uses.items() if name not in known and used & words}
        found |= {name.rpartition(".")[2] for name in new}
        known |= new
        new = {name for name in new if name.rpartition(".")[2].startswith("_")}
    return {name for name in found if not name.startswith("_")}


def _used_names(function: Function) -> set[str]:
    return _names_in(function) | {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}


def _nested(source: bytes) -> Iterator[tuple[str, Function]]:
    """All functions with their qualified names, those inside others after them."""

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, Function | ast.ClassDef):
                inner = f"{prefix}{child.name}."
            if isinstance(child, Function):
                yield inner[:-1], child
            yield from walk(child, inner)

    tree = parse(source)
    return walk(tree, "") if tree is not None else iter(())


def _functions(tree: ast.Module) -> list[Function]:
    """Outer functions before the ones nested in them."""
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def _body_spans(function: Function) -> Iterator[frozenset[int]]:
    """Lines of each statement of a function; of compound ones the header; without docstrings and inner bodies."""
    for node in (inner for statement in function.body for inner in ast.walk(statement)):
        runs = isinstance(node, ast.stmt) and not is_text(node) and not isinstance(node, Function | ast.ClassDef)
        if runs or isinstance(node, ast.ExceptHandler | ast.match_case):
            yield _lines_of(node)


def _lines_of(node: ast.AST) -> frozenset[int]:
    """A statement's own lines: up to its first inner statement."""
    inner = [child.lineno for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt | ast.ExceptHandler)]
    first = node.pattern.lineno if isinstance(node, ast.match_case) else getattr(node, "lineno", 0)
    last = getattr(node, "end_lineno", None) or first
    return frozenset(range(first, max(first, min(inner) - 1 if inner else last) + 1))


def is_text(node: ast.stmt) -> bool:
    """Whether it is a docstring, or another literal that stands alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _changed_bindings(tree: ast.Module, changed: set[int]) -> tuple[set[str], set[str]]:
    """Names bound by changed statements of the module, and qualified names of classes changed outside methods."""
    names: set[str] = set()
    classes: set[str] = set()

    def visit(node: ast.AST, owner: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, Function):
                continue
            if isinstance(child, ast.ClassDef):
                qualified = f"{owner}.{child.name}".lstrip(".")
                if changed & _lines_of(child) or any(changed & set(_range(part)) for part in child.decorator_list):
                    classes.add(qualified)
                visit(child, qualified)
            elif isinstance(child, ast.stmt) and not is_text(child) and changed & set(_range(child)):
                if owner:
                    classes.add(owner)
                else:
                    names.update(name for name, _ in bindings(child))

    visit(tree, "")
    return names, classes


def _with_subclasses(tree: ast.Module, classes: set[str]) -> set[str]:
    """Classes of the module, and those at its top that are made of them."""
    found = set(classes)
    for node in definitions_in(tree.body):  # a class stands after its bases
        if isinstance(node, ast.ClassDef) and any(isinstance(one, ast.Name) and one.id in found for one in node.bases):
            found.add(node.name)
    return found


def _range(node: ast.stmt | ast.expr) -> range:
    decorators = node.decorator_list if isinstance(node, Function | ast.ClassDef) else []
    first = min([node.lineno, *(part.lineno for part in decorators)])
    return range(first, (node.end_lineno or node.lineno) + 1)


def bindings(node: ast.stmt) -> list[tuple[str, ast.AST]]:
    """Names that a statement binds, each with what binds it: of an import, only its own part."""
    if isinstance(node, Function | ast.ClassDef):
        return [(node.name, node)]
    if isinstance(node, ast.ImportFrom):
        parts = [(alias, ast.ImportFrom(node.module, [alias], node.level)) for alias in node.names]
        return [(alias.asname or alias.name, part) for alias, part in parts]
    stores = [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
    aliases = [part for part in ast.walk(node) if isinstance(part, ast.alias)]
    return [(name, node) for name in [*stores, *((alias.asname or alias.name).split(".")[0] for alias in aliases)]]
