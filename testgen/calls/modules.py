"""The modules of a tree: where a dotted name leads, and what a module's names stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Literal, NamedTuple

from perfquarry.testgen.calls.facts import SELF, SUPER, UNKNOWN, Bound, Definition, Facts, bare

_DEPTH = 12
"""Steps from alias to alias followed."""


class Node(NamedTuple):
    """A definition: its file, and its qualified name within it."""

    path: str
    name: str


class Value(NamedTuple):
    """What a reference stands for."""

    kind: Literal["module", "native", "definition", "instance"]
    """native: a module without Python source, `path` being its dotted name; instance: an object of a class."""
    path: str
    name: str = ""

    @property
    def node(self) -> Node:
        """The definition, or the instance's class."""
        return Node(self.path, self.name)


class Modules:
    """Names of a tree's modules resolved, through imports, re-exports, aliases and inheritance.

    Args:
        facts: Python and Cython modules by path.
        source_roots: folders of the tree on sys.path, relative to it.
        natives: native names by Python name; asked for what modules without Python source hold.
    """

    def __init__(self, facts: Mapping[str, Facts], source_roots: tuple[str, ...], natives: Mapping[str, list[Node]]):
        self.facts = facts
        self._natives = natives
        self._native_modules = {name.partition(".")[0] for name in natives} - {""}
        self.source_roots = source_roots
        self._looked: dict[tuple[str, str], Value | None] = {}
        self._lineages: dict[Node, tuple[Node, ...]] = {}

    @cached_property
    def dotted(self) -> dict[str, str]:
        """Dotted name of each file's module."""
        return {path: self._module_name(path) for path in self.facts}

    @cached_property
    def _paths(self) -> dict[str, str]:
        """File of each dotted name; Python before Cython, and that before its declarations."""
        order = sorted(self.facts, key=lambda path: (not path.endswith(".py"), not path.endswith(".pyx"), path))
        return {self.dotted[path]: path for path in reversed(order)}

    def _module_name(self, path: str) -> str:
        folders = path.split("/")[:-1]
        top = len(folders)
        while top and any("/".join([*folders[:top], f"__init__{end}"]) in self.facts for end in (".py", ".pyx")):
            top -= 1
        for root in self.source_roots:  # what lies below a root may be a package without __init__
            parts = [part for part in root.split("/") if part not in ("", ".")]
            if parts and folders[: len(parts)] == parts:
                top = min(top, len(parts))
        stem = path.rpartition("/")[2].partition(".")[0]
        return ".".join([*folders[top:], *([] if stem == "__init__" else [stem])])

    @cached_property
    def _tops(self) -> set[str]:
        return {name.partition(".")[0] for name in self._paths}

    @cached_property
    def heirs(self) -> dict[Node, list[Node]]:
        """All classes below each class."""
        found: dict[Node, list[Node]] = {}
        for path, facts in self.facts.items():
            for definition in facts.definitions.values():
                if definition.kind == "class":
                    for base in self.lineage(Node(path, definition.name))[1:]:
                        found.setdefault(base, []).append(Node(path, definition.name))
        return found

    def definition(self, node: Node) -> Definition | None:
        """What is known of a definition; None for those of C, and for names that only stand for others."""
        facts = self.facts.get(node.path)
        return facts.definitions.get(node.name) if facts else None

    def find(self, name: str) -> Value | None:
        """What a dotted name leads to from outside: 'numpy.linalg.norm'."""
        parts = name.split(".")
        for end in range(len(parts) - 1, 0, -1):
            if (path := self._paths.get(".".join(parts[:end]))) is not None:
                value: Value | None = Value("module", path)
                for part in parts[end:]:
                    value = value and self.attribute(value, part)
                return value
        return None

    def module(self, bound: Bound, importer: str) -> Value | None:
        """The module that an import names."""
        name = bound.module
        if bound.level:
            package = self.dotted.get(importer, "").split(".")
            cut = len(package) - bound.level + importer.endswith(("/__init__.py", "/__init__.pyx"))
            name = ".".join([*package[: max(0, cut)], *([name] if name else [])])
        return self._named(name, importer)

    def _named(self, name: str, importer: str) -> Value | None:
        if name in self._paths:
            return Value("module", self._paths[name])
        if importer.endswith(".py"):  # Python 2's implicit relative imports
            package = self.dotted.get(importer, "").rpartition(".")[0]
            if package and f"{package}.{name}" in self._paths:
                return Value("module", self._paths[f"{package}.{name}"])
        return Value("native", name) if name.partition(".")[0] in self._tops else None

    def lookup(self, path: str, name: str) -> Value | None:
        """What a name of a module is."""
        key = (path, name)
        if key not in self._looked:
            self._looked[key] = None  # what a circle of imports ends with
            with suppress(RecursionError):  # aliases of aliases, hundreds of them
                self._looked[key] = self._look(path, name)
        return self._looked[key]

    def _look(self, path: str, name: str) -> Value | None:
        facts = self.facts[path]
        alias = facts.aliases.get(name)
        if alias and bare(alias.partition(".")[0]) != name:
            value = self.resolve(path, "", alias)
            if value is not None:
                return value
        definition = facts.definitions.get(name)
        if definition is not None and (definition.kind != "variable" or name not in facts.imports):
            return Value("definition", path, name)
        if name in facts.imports:
            return self._imported(facts.imports[name], path)
        if path.endswith(("__init__.py", "__init__.pyx")):
            submodule = self._submodule(path, name)
            if submodule:
                return submodule
        return next(self._starred(path, name), None)

    def _imported(self, bound: Bound, path: str) -> Value | None:
        module = self.module(bound, path)
        return module if module is None or bound.original is None else self.attribute(module, bound.original)

    def _starred(self, path: str, name: str) -> Iterator[Value]:
        if name.startswith("_"):
            return
        for star in self.facts[path].stars:
            module = self.module(star, path)
            if module is not None and module.path != path and (value := self.attribute(module, name)) is not None:
                yield value

    def attribute(self, value: Value, name: str, depth: int = 0) -> Value | None:
        """What `value.name` is."""
        if value.kind == "module":
            return self.lookup(value.path, name) or self._submodule(value.path, name)
        if value.kind == "native":
            if f"{value.path}.{name}" in self._paths:
                return Value("module", self._paths[f"{value.path}.{name}"])
            found = self._natives.get(f"{value.path.rpartition('.')[2]}.{name}") or self._natives.get(f".{name}")
            return Value("definition", *found[0]) if found else None
        member = self.member(value.node, name)
        if member is None:
            return None
        alias = self.facts[member.path].aliases.get(member.name)
        if alias and depth < _DEPTH and member.path in self.facts:
            owner = member.name.rpartition(".")[0]
            return self.resolve(member.path, owner, alias, depth + 1) or Value("definition", *member)
        return Value("definition", *member)

    def _submodule(self, path: str, name: str) -> Value | None:
        dotted = f"{self.dotted[path]}.{name}"
        if dotted in self._paths:
            return Value("module", self._paths[dotted])
        return Value("native", dotted) if name in self._native_modules else None

    def member(self, owner: Node, name: str, after: bool = False) -> Node | None:
        """Where a class gets an attribute from; `after`: without itself, as `super()` does."""
        for one in self.lineage(owner)[int(after) :]:
            facts = self.facts.get(one.path, Facts())
            if (key := f"{one.name}.{name}") in facts.definitions or key in facts.aliases:
                return Node(one.path, key)
        return None

    def lineage(self, owner: Node) -> tuple[Node, ...]:
        """A class and all those it inherits from in this tree, nearest first."""
        if owner not in self._lineages:
            self._lineages[owner] = (owner,)
            found = [owner]
            definition = self.definition(owner)
            for base in definition.bases if definition else ():
                value = self.resolve(owner.path, owner.name.rpartition(".")[0], base)
                if value and value.kind == "definition" and value.path in self.facts:
                    found += [one for one in self.lineage(value.node) if one not in found]
            self._lineages[owner] = tuple(found)
        return self._lineages[owner]

    def resolve(self, path: str, owner: str, reference: str, depth: int = 0) -> Value | None:
        """What a reference in a file, and in a class of it, stands for; None for what is not of this tree."""
        if depth > _DEPTH:
            return None
        root, *rest = reference.split(".")
        value = self._root(path, owner, root, rest)
        if root == SUPER and value is not None:
            rest = rest[1:]
        for part in rest:
            value = value and self.attribute(value, bare(part), depth)
            if value is not None and part != bare(part):
                value = self._called(value)
        return value

    def _root(self, path: str, owner: str, root: str, rest: list[str]) -> Value | None:
        if root == SELF and owner:
            return Value("instance", path, owner)
        if root == SUPER:
            found = self.member(Node(path, owner), bare(rest[0]), after=True) if rest and owner else None
            return Value("definition", *found) if found else None
        if root.startswith(UNKNOWN):
            return None
        name = bare(root)
        inner = f"{owner}.{name}" if owner else ""
        if inner and inner in self.facts[path].definitions and rest == []:
            value: Value | None = Value("definition", path, inner)  # an alias in a class: `__radd__ = __add__`
        else:
            value = self.lookup(path, name)
        return self._called(value) if value is not None and root != name else value

    def _called(self, value: Value) -> Value | None:
        """What calling something gives: an object of the class; of a function, what it is annotated to return."""
        definition = self.definition(value.node) if value.kind == "definition" else None
        if definition is None:
            return None
        if definition.kind == "class":
            return Value("instance", value.path, value.name)
        returned = self.resolve(value.path, "", definition.returns) if definition.returns else None
        return Value("instance", *returned.node) if returned and returned.kind == "definition" else None
