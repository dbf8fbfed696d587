"""From C to Python: which Python names of which modules and types stand for which C functions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from perfquarry.testgen.calls.modules import Node
from perfquarry.testgen.calls.native import Binding, Code, NativeFacts

_UFUNC = re.compile(r"^\s*['\"](\w+)['\"]\s*:\s*Ufunc\(", re.M)
_LOOP = re.compile(r"(?:[A-Z0-9]+|@\w+@)_(\w+)")
_QUOTED = re.compile(r"['\"](\w{3,})['\"]")
K = TypeVar("K")
_COMMON = 12
"""A C name with more definitions elsewhere says nothing."""


@dataclass
class Natives:
    """The C side of the graph."""

    names: dict[str, list[Node]] = field(default_factory=dict)
    """Bindings by 'module.name', and by '.name' where the module is not known."""
    uses: dict[Node, set[Node]] = field(default_factory=dict)
    """What each piece of C code, and each binding, refers to."""
    public: dict[Node, str] = field(default_factory=dict)
    """Dotted Python name of bindings of types that say theirs: 'numpy.ndarray.sort'."""
    registered: dict[Node, str] = field(default_factory=dict)
    """Name, within its module, of the other bindings."""
    by_name: dict[str, list[Node]] = field(default_factory=dict)
    """Code by C name."""

    tables: set[Node] = field(default_factory=set)
    """Initialised variables: what uses one hardly uses all that is in it."""
    _written: dict[tuple[str, str], list[Node]] = field(default_factory=dict)

    def seeds(self, path: str, name: str) -> list[Node]:
        """The code that a touched C function is: 'f', 'Class::method', '@TYPE@_add'."""
        return self._written.get((path, name.rpartition("::")[2]), [])

    def add(self, path: str, code: Code) -> None:
        """Notes a piece of code under all its names."""
        node = Node(path, code.name)
        self.uses.setdefault(node, set())
        if code.is_table:
            self.tables.add(node)
        for name in code.names | {code.name}:
            _append(self.by_name, name, node)
        for name in {code.name, code.wrapper}:
            _append(self._written, (path, name), node)


def _append(nodes: dict[K, list[Node]], key: K, node: Node) -> None:
    if node not in nodes.setdefault(key, []):
        nodes[key].append(node)


def natives_of(facts: Mapping[str, NativeFacts], generators: Mapping[str, str]) -> Natives:
    """Links C files.

    Args:
        facts: C and C++ files by path.
        generators: Python files that write registrations of ufuncs, by path.
    """
    found = Natives()
    for path, file in facts.items():
        for code in file.code:
            found.add(path, code)
    by_name = found.by_name
    for path, file in facts.items():
        for code in file.code:
            found.uses[Node(path, code.name)] |= set(_defined(code.uses, path, by_name)) - {Node(path, code.name)}
    owners = _owners(facts)
    for path, file in facts.items():
        alone = file.modules[0][0] if len({name for name, _ in file.modules}) == 1 else ""
        for binding in file.bindings:
            owner = owners.get(binding.table, alone if binding.table else "")
            _bind(found, path, binding, owner, by_name)
    _bind_ufuncs(found, generators)
    return found


def _bind_ufuncs(found: Natives, generators: Mapping[str, str]) -> None:
    """numpy's ufuncs: what generates their registration names them; their loops are called '<TYPE>_<name>'."""
    loops: dict[str, set[Node]] = defaultdict(set)
    for name, nodes in found.by_name.items():
        if loop := _LOOP.fullmatch(name):
            loops[loop[1]].update(nodes)
    for path, text in generators.items():
        for name, entry in _entries(text):
            node = Node(path, f"Ufunc {name}")
            quoted = set(_defined(frozenset(_QUOTED.findall(entry)), path, found.by_name))
            found.uses[node] = loops[name] | quoted
            found.names.setdefault(f".{name}", []).append(node)
            found.registered[node] = name


def _defined(names: frozenset[str], path: str, by_name: Mapping[str, list[Node]]) -> Iterator[Node]:
    for name in names:
        nodes = by_name.get(name, ())
        here = [node for node in nodes if node.path == path]
        yield from here or (nodes if len(nodes) <= _COMMON else ())


def _owners(facts: Mapping[str, NativeFacts]) -> dict[str, str]:
    """Module, or dotted name of the type, of each table by its variable."""
    owners: dict[str, str] = {}
    for file in facts.values():
        for name, identifiers in file.modules:
            owners.update(dict.fromkeys(identifiers, name))
    for file in facts.values():
        for variable, python, identifiers in file.types:
            owners.update(dict.fromkeys(identifiers, f"{python}()"))
            owners[variable] = f"{python}()"
    return owners


def _bind(found: Natives, path: str, binding: Binding, owner: str, by_name: Mapping[str, list[Node]]) -> None:
    label = f"{binding.table}[{binding.name}]" if binding.table else binding.name
    node = Node(path, label)
    found.uses.setdefault(node, set()).update(_defined(binding.uses, path, by_name))
    if owner.endswith("()"):
        python = owner.removesuffix("()")
        if "." in python:
            found.public[node] = f"{python}.{binding.name}" if binding.name else python
        if not binding.name:
            found.names.setdefault(f".{python.rpartition('.')[2]}", []).append(node)
    else:
        found.names.setdefault(f"{owner}.{binding.name}", []).append(node)
        found.registered[node] = binding.name


def _entries(text: str) -> Iterator[tuple[str, str]]:
    starts = list(_UFUNC.finditer(text))
    for at, start in enumerate(starts):
        yield start[1], text[start.end() : starts[at + 1].start() if at + 1 < len(starts) else len(text)]
