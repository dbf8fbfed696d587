"""The graph of calls of a tree, kept for the trees used last."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfquarry.testgen.calls.bindings import Natives, natives_of
from perfquarry.testgen.calls.facts import CALLED, SELF, SUPER, UNKNOWN, Definition, Facts, bare
from perfquarry.testgen.calls.indented import cython_facts
from perfquarry.testgen.calls.modules import Modules, Node, Value
from perfquarry.testgen.calls.native import native_facts
from perfquarry.testgen.calls.python import python_facts
from perfquarry.testgen.files import source_files
from perfquarry.testgen.imports import Recent

CERTAIN, LIKELY, UNLIKELY = 1, 2, 4
"""Lengths of an edge: a resolved reference; a method known by its name only, or perhaps overridden; an entry of
a table of functions."""
_NAMESAKES = 3
"""Methods of one name among which a call on an unknown object is taken to choose."""
CONSTRUCTORS = ("__init__", "__new__", "__post_init__")
_OF_BUILTINS = frozenset(
    name for kind in (str, bytes, list, dict, set, int, float, complex, object) for name in dir(kind)
)
_NATIVE = (".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".c.src", ".h.src", ".inc.src", ".cpp.src")


@dataclass(frozen=True)
class CallGraph:
    """Who refers to whom; edges lead from what is used to what uses it."""

    modules: Modules
    natives: Natives
    callers: dict[Node, dict[Node, int]]
    """Length of each edge (`CERTAIN`, `LIKELY`, `UNLIKELY`)."""

    def uses_of(self, facts: Mapping[str, Facts]) -> dict[Node, dict[Node, int]]:
        """What the definitions of further files, such as benchmarks, use of this tree and of each other."""
        modules = Modules({**self.modules.facts, **facts}, self.modules.source_roots, self.natives.names)
        edges = _Edges(modules, self.natives)
        return {
            Node(path, definition.name): dict(edges.of(path, definition))
            for path, file in facts.items()
            for definition in file.definitions.values()
        }

    def has(self, name: str) -> bool:
        """Whether a dotted name leads to something in this tree."""
        return self.modules.find(name) is not None or name in self.natives.public.values()


def call_graph(tree: Path, source_roots: Sequence[str] = ()) -> CallGraph:
    """The graph of a tree without its tests, documents, tools and benchmarks; shared by threads, so never changed.

    Args:
        tree: root of the checked-out tree.
        source_roots: folders of the tree on sys.path, relative to it.
    """
    contents = {path: (tree / path).read_bytes() for path in source_files(tree)}
    digest = hashlib.blake2b(repr(source_roots).encode(), digest_size=16)
    for path, content in contents.items():
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return _GRAPHS.get(digest.digest(), lambda: _build(contents, tuple(source_roots)))


_GRAPHS = Recent[CallGraph](4)


def _build(contents: dict[str, bytes], source_roots: tuple[str, ...]) -> CallGraph:
    facts: dict[str, Facts] = {}
    for path, content in contents.items():
        if path.endswith(".py"):
            facts[path] = python_facts(content)
        elif path.endswith((".pyx", ".pxd", ".pxi", ".pyx.in")):
            facts[path] = cython_facts(content)
    generators = {
        path: content.decode("utf-8", "replace")
        for path, content in contents.items()
        if path.endswith(".py") and b"Ufunc(" in content
    }
    native = {path: native_facts(content) for path, content in contents.items() if path.endswith(_NATIVE)}
    natives = natives_of(native, generators)
    modules = Modules(facts, source_roots, natives.names)
    callers: dict[Node, dict[Node, int]] = defaultdict(dict)
    for user, used in natives.uses.items():
        for one in used:
            callers[one][user] = UNLIKELY if one in natives.tables else CERTAIN
    edges = _Edges(modules, natives)
    for path, file in facts.items():
        for definition in file.definitions.values():
            user = Node(path, definition.name)
            for target, length in edges.of(path, definition):
                if target != user:
                    callers[target][user] = min(length, callers[target].get(user, length))
    return CallGraph(modules, natives, dict(callers))


class _Edges:
    """Finds what references lead to, each reference of a scope once."""

    def __init__(self, modules: Modules, natives: Natives) -> None:
        self._modules = modules
        self._code = natives.by_name
        self._known: dict[tuple[str, str, str], tuple[tuple[Node, int], ...]] = {}
        self._methods: dict[str, list[Node]] = defaultdict(list)
        for path, facts in modules.facts.items():
            for name, definition in facts.definitions.items():
                owner, _, last = name.rpartition(".")
                if owner and definition.kind == "function" and last not in _OF_BUILTINS:
                    self._methods[last].append(Node(path, name))
        for node, name in natives.public.items():
            last = name.rpartition(".")[2]
            if last not in _OF_BUILTINS:
                self._methods[last].append(node)

    def of(self, path: str, definition: Definition) -> Iterator[tuple[Node, int]]:
        """What a definition uses."""
        owner = definition.name.rpartition(".")[0]
        for reference in definition.uses:
            in_class = definition.kind == "variable" or reference.startswith((f"{SELF}.", SUPER))
            key = (path, owner if in_class else "", reference)
            if key not in self._known:
                self._known[key] = tuple(self._targets(*key))
            yield from self._known[key]

    def _targets(self, path: str, owner: str, reference: str) -> Iterator[tuple[Node, int]]:
        parts = reference.split(".")
        value: Value | None = None
        for end in range(1, len(parts) + 1):
            before, prefix = value, ".".join(parts[:end])
            if prefix == SUPER:
                continue
            value = self._modules.resolve(path, owner, bare(prefix))
            if value is not None and value.kind == "definition":
                yield from self._defined(value.node, prefix.endswith(CALLED))
                overridable = before is not None and before.kind == "instance"
                yield from self._overriding(before.node, value.node) if before and overridable else ()
            if value is None and len(parts) == 1 and path.endswith(".pyx"):  # declared from a header
                yield from ((node, CERTAIN) for node in self._code.get(bare(prefix), ())[:_NAMESAKES])
            if value is None and (end > 1 or parts[0].startswith(UNKNOWN)):
                yield from self._namesakes(bare(parts[-1]), before)
                return
            if prefix != bare(prefix):
                value = self._modules.resolve(path, owner, prefix)

    def _defined(self, node: Node, called: bool) -> Iterator[tuple[Node, int]]:
        definition = self._modules.definition(node)
        if definition is None or definition.kind != "class":
            yield node, CERTAIN
        elif called:
            yield node, CERTAIN
            made = (self._modules.member(node, name) for name in CONSTRUCTORS)
            yield from ((one, CERTAIN) for one in made if one is not None)

    def _overriding(self, owner: Node, member: Node) -> Iterator[tuple[Node, int]]:
        name = member.name.rpartition(".")[2]
        for heir in self._modules.heirs.get(owner, ()):
            key = f"{heir.name}.{name}"
            if key in self._modules.facts[heir.path].definitions:
                yield Node(heir.path, key), LIKELY

    def _namesakes(self, name: str, before: Value | None) -> Iterator[tuple[Node, int]]:
        if before is not None and before.kind in ("module", "native"):
            return  # it is not in the module: not ours
        found = self._methods.get(name, ())
        if len(found) <= _NAMESAKES:
            yield from ((node, LIKELY) for node in found)
