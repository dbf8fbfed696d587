"""Facts of Python files, by `ast`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from perfquarry.testgen.calls.facts import ALL, OBJECT, SELF, SUPER, UNKNOWN, Bound, Definition, Facts
from perfquarry.testgen.imports import ByContent, parse

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_ARGUMENTLESS = {"staticmethod"}


def _facts(content: bytes) -> Facts:
    tree = parse(content)
    try:
        return _Reader().read(tree) if tree is not None else Facts()
    except RecursionError:  # an expression nested as no person writes it
        return Facts()


class _Reader:
    """Collects the facts of one syntax tree."""

    def __init__(self) -> None:
        self._definitions: dict[str, Definition] = {}
        self._imports: dict[str, Bound] = {}
        self._stars: list[Bound] = []
        self._aliases: dict[str, str] = {}
        self._exports: set[str] | None = None
        self._from: list[str] = []
        self._open = False

    def read(self, tree: ast.Module) -> Facts:
        self._body(tree.body, "")
        return Facts(
            self._definitions,
            self._imports,
            tuple(self._stars),
            self._aliases,
            None if self._exports is None else frozenset(self._exports),
            tuple(self._from),
            self._open,
        )

    def _body(self, body: Iterable[ast.AST], owner: str) -> None:
        for node in body:
            if isinstance(node, _Function):
                self._function(node, owner)
            elif isinstance(node, ast.ClassDef):
                self._class(node, owner)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node)
            elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
                self._assign(node, owner)
            elif isinstance(node, ast.Expr):
                self._call(node.value)
            elif isinstance(node, ast.stmt | ast.ExceptHandler):  # definitions under if, try and with
                self._body(ast.iter_child_nodes(node), owner)

    def _add(self, definition: Definition) -> None:
        known = self._definitions.get(definition.name)
        self._definitions[definition.name] = known.joined(definition) if known else definition

    def _function(self, node: _Function, owner: str) -> None:
        receiver = _receiver(node) if owner else ""
        locals_ = _locals(node, receiver)
        uses = _references(node.body, locals_) | _references([*node.decorator_list, node.args], {})
        returns = next(iter(_annotated(node.returns)), "")
        self._add(Definition(f"{owner}{node.name}", "function", frozenset(uses), returns=returns))
        for inner in ast.walk(node):
            if isinstance(inner, ast.ImportFrom | ast.Import):
                self._import(inner, late=True)
            elif receiver and isinstance(inner, ast.Assign | ast.AnnAssign):
                self._attribute(inner, owner, locals_)

    def _class(self, node: ast.ClassDef, owner: str) -> None:
        plain = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
        bases = tuple(text for base in plain if (text := _dotted(base, {})))
        uses = _references([*node.decorator_list, *node.keywords], {})
        self._add(Definition(f"{owner}{node.name}", "class", frozenset(uses), bases))
        self._body(node.body, f"{owner}{node.name}.")

    def _import(self, node: ast.Import | ast.ImportFrom, late: bool = False) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                bound = Bound(alias.name if alias.asname else alias.name.partition(".")[0], 0)
                name = alias.asname or bound.module
            elif alias.name == "*":
                self._stars.append(Bound(node.module or "", node.level))
                continue
            else:
                bound, name = Bound(node.module or "", node.level, alias.name), alias.asname or alias.name
            if late:
                self._imports.setdefault(name, bound)
            else:
                self._imports[name] = bound

    def _assign(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, owner: str) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        stored = [part for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
        names = [part.id for part in stored if isinstance(part.ctx, ast.Store)]
        if ALL in names and not owner:
            if not isinstance(node, ast.AugAssign):
                self._exports, self._from, self._open = set(), [], False
            self._export(node.value)
            return
        reference = _dotted(node.value, {}) if node.value is not None else ""
        uses = _references([node.value], {}) if node.value is not None else set()
        for name in names:
            if reference:
                self._aliases[f"{owner}{name}"] = reference
            self._add(Definition(f"{owner}{name}", "variable", frozenset(uses)))

    def _attribute(self, node: ast.Assign | ast.AnnAssign, owner: str, known: Mapping[str, str]) -> None:
        """The class of what a method puts into an attribute of its object."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        value = _dotted(node.value, known) if node.value is not None else ""
        if isinstance(node, ast.AnnAssign):
            value = next((text + OBJECT for text in _annotated(node.annotation)), value)
        for target in targets:
            name = _dotted(target, known)
            if name.startswith(f"{SELF}.") and name.count(".") == 1 and value and not value.startswith(UNKNOWN):
                self._aliases.setdefault(owner + name.removeprefix(f"{SELF}."), value)

    def _call(self, node: ast.expr) -> None:
        """`__all__.extend(…)` and `__all__.append(…)`; what else a module calls at import is of no name."""
        if isinstance(node, ast.Call) and _dotted(node.func, {}) in (f"{ALL}.extend", f"{ALL}.append"):
            for argument in node.args:
                self._export(argument)

    def _export(self, value: ast.expr | None) -> None:
        """Names that an expression adds to `__all__`."""
        self._exports = self._exports if self._exports is not None else set()
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            self._exports.add(value.value)
        elif isinstance(value, ast.List | ast.Tuple | ast.Set):
            for part in value.elts:
                self._export(part)
        elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.BitOr):
            self._export(value.left)
            self._export(value.right)
        elif isinstance(value, ast.Call) and _dotted(value.func, {}) in ("list", "set", "sorted", "tuple"):
            for part in value.args:
                self._export(part)
        elif isinstance(value, ast.Attribute) and value.attr == ALL:
            self._from.append(_dotted(value.value, {}))
        else:
            self._open = True


def _receiver(node: _Function) -> str:
    """What a method calls its object or class."""
    names = {_dotted(part, {}) for part in node.decorator_list}
    arguments = [*node.args.posonlyargs, *node.args.args]
    return arguments[0].arg if arguments and not names & _ARGUMENTLESS else ""


def _locals(function: _Function, receiver: str) -> dict[str, str]:
    """Names bound in a function, each with the reference of what it holds; '?' where nothing is known."""
    known: dict[str, str] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            known.setdefault(node.arg, next((text + OBJECT for text in _annotated(node.annotation)), UNKNOWN))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            known.setdefault(node.id, UNKNOWN)
        elif isinstance(node, _Function | ast.ClassDef) and node is not function:
            known.setdefault(node.name, UNKNOWN)
        elif isinstance(node, ast.Global):
            known.update((name, name) for name in node.names)
    if receiver:
        known[receiver] = SELF
    single = [
        (node.targets[0].id, node.value)
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    ]
    for name, value in single:
        if known.get(name) == UNKNOWN and (text := _dotted(value, known)) and not text.startswith(UNKNOWN):
            known[name] = text
    return known


def _annotated(node: ast.expr | None) -> list[str]:
    """References of the classes an annotation names, texts of forward references included."""
    if node is None:
        return []
    found = []
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            found.append(part.value.strip())
        elif isinstance(part, ast.Name | ast.Attribute):
            found.append(_dotted(part, {}))
    return [text for text in found if text and text.replace(".", "").isidentifier() and text not in _NO_CLASSES]


_NO_CLASSES = frozenset(
    [
        "Optional",
        "Union",
        "List",
        "Dict",
        "Tuple",
        "Set",
        "Any",
        "str",
        "int",
        "bytes",
        "bool",
        "float",
        "None",
        "typing",
        "Type",
        "Callable",
    ]
)


def _dotted(node: ast.AST | None, known: Mapping[str, str]) -> str:
    """A reference, local names replaced by what they hold; '' for what is none."""
    parts: list[str] = []
    called = ""
    while True:
        if isinstance(node, ast.Call):
            called, node = "()", node.func
            if isinstance(node, ast.Call):  # decorator(…)(…)
                return ""
        elif isinstance(node, ast.Attribute):
            parts.append(node.attr + called)
            called, node = "", node.value
        elif isinstance(node, ast.Await):
            node = node.value
        else:
            break
    if isinstance(node, ast.Name):
        held = known.get(node.id, node.id)
        root = SUPER if held == "super" and called else held + called
    elif parts:
        root = UNKNOWN
    else:
        return ""
    return ".".join([root, *reversed(parts)])


def _references(nodes: Sequence[ast.AST], known: Mapping[str, str]) -> set[str]:
    """All references in some code, only the longest of each chain, and those in its calls' arguments."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Attribute | ast.Name | ast.Call):
            text = _dotted(node, known)
            if text and text not in (UNKNOWN, f"{UNKNOWN}()", SELF):
                found.add(text)
            found.update(_named(node))
            waiting += _beside(node) if text else ast.iter_child_nodes(node)
        else:
            waiting += ast.iter_child_nodes(node)
    return found


def _named(node: ast.AST) -> list[str]:
    """Attributes got by their name, as in `getattr(items, "sort")` and `_wrapfunc(items, "sort")`."""
    arguments = node.args[1:2] if isinstance(node, ast.Call) else []
    texts = [one.value for one in arguments if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return [f"{UNKNOWN}.{text}" for text in texts if text.isidentifier()]


def _beside(node: ast.AST) -> list[ast.AST]:
    """What a chain of attributes and calls holds besides itself: arguments, and a root that is no name."""
    rest: list[ast.AST] = []
    while isinstance(node, ast.Attribute | ast.Call | ast.Await):
        if isinstance(node, ast.Call):
            rest += [*node.args, *node.keywords]
            node = node.func
        else:
            node = node.value
    return rest if isinstance(node, ast.Name) else [*rest, node]


python_facts = ByContent(_facts, 20_000)
"""Facts of a Python file's content; none for what this Python cannot parse."""
