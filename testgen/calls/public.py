"""Under which dotted names a package's users reach a definition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from perfquarry.testgen.calls.graph import CONSTRUCTORS, CallGraph
from perfquarry.testgen.calls.modules import Node, Value
from perfquarry.testgen.documented import Documented


class PublicNames:
    """Public names of the definitions of one tree.

    A name is public when no part of it begins with an underscore (dunder methods aside) and its
    module says so: in `__all__`, or, where there is none, by defining it, or by importing it in a
    package's `__init__`, which with a star counts in any case. Of several names of one thing
    the shortest is given, or a documented one with one dot more.
    """

    def __init__(self, graph: CallGraph, documents: Documented) -> None:
        self._graph = graph
        self._documents = documents
        self._modules = graph.modules
        self._binders: dict[str, set[str]] = defaultdict(set)
        self._renamed: dict[str, set[str]] = defaultdict(set)
        self._exports: dict[str, frozenset[str] | None] = {}
        self._starred: list[str] = []
        for path, facts in self._modules.facts.items():
            if not self._is_public_module(path):
                continue
            names = [name for name in facts.definitions if "." not in name]
            for name in {*names, *facts.imports, *facts.aliases, *(self._exported(path) or ())}:
                self._binders[name].add(path)
            for name, bound in facts.imports.items():
                if bound.original and bound.original != name:
                    self._renamed[bound.original].add(name)
            for name, reference in facts.aliases.items():
                self._renamed[reference.rpartition(".")[2].removesuffix("()")].add(name)
            if facts.stars and self._is_package(path):
                self._starred.append(path)

    def of(self, node: Node) -> list[str]:
        """Public names of a definition: one, and of a method one for each class that has it."""
        natives = self._graph.natives
        if node in natives.public:
            return [name for name in [natives.public[node]] if _is_public(name)]
        if node in natives.registered:
            return self._best(node, natives.registered[node])
        definition = self._modules.definition(node)
        owner, _, last = node.name.rpartition(".")
        if definition is None or not definition.visible or (definition.kind == "variable" and last.isupper()):
            return []
        if not owner:
            return self._best(node, last)
        owners = self._owners(Node(node.path, owner), node)
        if last in CONSTRUCTORS:
            return [name for one in owners for name in self.of(one)]
        return [f"{name}.{last}" for one in owners for name in self.of(one)] if _is_public(last) else []

    def _best(self, node: Node, name: str) -> list[str]:
        """Of the names of a definition of a module the best one."""
        home = self._modules.dotted.get(node.path, "")

        def cost(found: str) -> tuple[float, bool, bool, str]:
            module, _, last = found.rpartition(".")
            length = found.count(".") + 1.5 * (not self._documents.has(found, home))
            return (length, last != name, module != home, found)

        return sorted(set(self._bound(node, name)), key=cost)[:1]

    def _owners(self, owner: Node, member: Node) -> Iterator[Node]:
        """The class, and those that inherit the member from it."""
        last = member.name.rpartition(".")[2]
        yield owner
        for heir in self._modules.heirs.get(owner, ()):
            if self._modules.member(heir, last) == member:
                yield heir

    def _bound(self, node: Node, name: str) -> Iterator[str]:
        """Names of modules that are bound to a definition of a module."""
        for bound in {name, *self._renamed.get(name, ())}:
            for path in [*self._binders.get(bound, ()), *self._starred]:
                if _is_public(bound) and self._offers(path, bound, node):
                    yield f"{self._modules.dotted[path]}.{bound}"

    def _offers(self, path: str, name: str, node: Node) -> bool:
        if self._modules.lookup(path, name) != Value("definition", node.path, node.name):
            return False
        facts, exported = self._modules.facts[path], self._exported(path)
        bound = {*facts.imports, *facts.definitions, *facts.aliases}
        if exported is not None and (name in exported or name in bound):
            return name in exported
        return self._is_package(path) or path == node.path or name in facts.aliases

    def _exported(self, path: str) -> frozenset[str] | None:
        """All of a module's `__all__`; None where it has none, or where more than can be read is in it."""
        if path not in self._exports:
            facts = self._modules.facts[path]
            self._exports[path] = facts.exports
            if facts.exports is not None:
                names, complete = set(facts.exports), not facts.open_exports
                for reference in facts.exported_from:
                    module = self._modules.resolve(path, "", reference)
                    more = self._exported(module.path) if module is not None and module.kind == "module" else None
                    names |= more or set()
                    complete = complete and more is not None
                self._exports[path] = frozenset(names) if complete else None
        return self._exports[path]

    def _is_public_module(self, path: str) -> bool:
        return all(not part.startswith("_") for part in self._modules.dotted[path].split("."))

    @staticmethod
    def _is_package(path: str) -> bool:
        return path.endswith(("/__init__.py", "/__init__.pyx"))


def _is_public(name: str) -> bool:
    return all(not part.startswith("_") or (part.startswith("__") and part.endswith("__")) for part in name.split("."))
