"""Public APIs that reach changed functions, found in the sources of a tree without running anything."""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perfquarry.data.records import Side, TouchedFunction, Workload
from perfquarry.testgen.calls.graph import CONSTRUCTORS, CallGraph, call_graph
from perfquarry.testgen.calls.modules import Node
from perfquarry.testgen.calls.public import PublicNames
from perfquarry.testgen.case import Case
from perfquarry.testgen.documented import Documented, documented
from perfquarry.testgen.traced import path_at, relative_roots

MODULE: Final = "<module>"
FARTHEST = 8
"""Calls followed from a changed function outwards."""
_VISITED = 3000
"""Definitions looked at."""
_NAMES = 3
"""Names given for one definition: a method has one for every class that inherits it."""
KEPT = 10
"""APIs that a change's rows name."""


@dataclass(frozen=True)
class Api:
    """A public name through which users reach a change."""

    name: str
    """Dotted: 'numpy.in1d', 'sortedcontainers.SortedList.add'."""
    distance: int
    """Steps in the graph of calls to the changed function; 0 for itself."""
    documented: bool
    inherited: bool
    """Whether it is a method that another class defines."""
    why: str
    """The way to the change, in words."""

    @property
    def rank(self) -> tuple[float, int, str]:
        """Sort key: a step counts as much as not being documented, being inherited, or two modules to be named."""
        inner = re.sub(r"(\.[A-Z]\w*)?(\.\w+)$", "", self.name).count(".")
        return (self.distance + (not self.documented) + self.inherited + inner / 2, self.distance, self.name)


def identify_apis(
    tree: Path, functions: Sequence[TouchedFunction], source_roots: Sequence[str] = (), limit: int = 20
) -> list[Api]:
    """The APIs that reach touched functions, the best first; none where nothing public does.

    Args:
        tree: root of the checked-out tree; its files are read, never run.
        functions: as `miners.functions.touched` finds them; those not in the tree are passed over. Code of a
            module ('<module>') counts only where no function of its file is touched: for all the file defines.
        source_roots: folders of the tree on sys.path, relative to it.
        limit: most APIs returned.
    """
    graph = call_graph(tree, source_roots)
    seeds = _seeds(graph, functions)
    if not seeds:
        return []
    documents = documented(tree)
    names = PublicNames(graph, documents)
    found: dict[str, Api] = {}
    for node, distance, way in _outwards(graph, seeds):
        for name in names.of(node)[:_NAMES]:
            if name not in found:
                found[name] = _api(name, node, distance, way, documents, graph)
    return sorted(found.values(), key=lambda api: api.rank)[:limit]


def apis_of(case: Case, limit: int = 20) -> list[Api]:
    """The APIs of a change that both its sides have, the best first, with the base's definitions where it has them.

    What only reaches functions that the change adds follows what reaches those it modifies or deletes.
    """
    found = {api.name: api for api in identify_apis(case.base.tree, *_asked(case, "base"), limit)}
    if len(found) < limit and any(one.change == "added" for one in case.verdict.functions):
        base = call_graph(case.base.tree, relative_roots(case.base))
        for api in identify_apis(case.head.tree, *_asked(case, "head"), limit):
            if api.name not in found and base.has(api.name):
                found[api.name] = api
    return list(found.values())[:limit]


def reaching(case: Case, side: Side) -> tuple[CallGraph, dict[Node, int]]:
    """The graph of a side, and what of it reaches the touched functions it has, with the distances."""
    functions, roots = _asked(case, side)
    graph = call_graph(case.sides[side].tree, roots)
    return graph, {node: distance for node, distance, _ in _outwards(graph, _seeds(graph, functions))}


def _asked(case: Case, side: Side) -> tuple[list[TouchedFunction], Sequence[str]]:
    """The touched functions that a side has, under its paths, and its source roots."""
    absent = "added" if side == "base" else "deleted"
    functions = [one for one in case.verdict.functions if one.change != absent]
    paths = {file.path: path_at(file, side) for file in case.change.files}
    moved = [one.model_copy(update={"path": paths.get(one.path, one.path)}) for one in functions]
    return moved, relative_roots(case.sides[side])


def with_apis(case: Case, rows: Sequence[Workload]) -> list[Workload]:
    """The rows, the kept ones with the change's APIs: the judge's where its verdict names any."""
    if not any(row.status == "kept" for row in rows):
        return list(rows)
    names = case.verdict.apis or [api.name for api in apis_of(case, KEPT)]
    return [row.model_copy(update={"apis": names}) if row.status == "kept" else row for row in rows]


def _api(name: str, node: Node, distance: int, way: Sequence[Node], documents: Documented, graph: CallGraph) -> Api:
    module = graph.modules.dotted.get(node.path, "")
    steps = " -> ".join(one.name for one in way)
    why = f"is the changed {way[0].name}" if len(way) == 1 else steps
    is_documented = not documents or documents.has(name, module) or documents.has(f"{module}.{node.name}", module)
    return Api(name, distance, is_documented, _is_inherited(name, node, graph), why)


def _is_inherited(name: str, node: Node, graph: CallGraph) -> bool:
    *owners, last = node.name.split(".")
    if not owners or graph.modules.definition(node) is None:
        return False
    given = name.split(".")
    return (given[-1] if last in CONSTRUCTORS else given[-2]) != owners[-1]


def _seeds(graph: CallGraph, functions: Sequence[TouchedFunction]) -> list[Node]:
    with_functions = {function.path for function in functions if function.name != MODULE}
    seeds: list[Node] = []
    for function in functions:
        facts = graph.modules.facts.get(function.path)
        if facts is None:
            seeds += graph.natives.seeds(function.path, function.name)
        elif function.name != MODULE:
            parts = function.name.split(".")
            names = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
            here = [name for name in names if name in facts.definitions][:1]
            # inner functions belong to theirs; a method that is not in the class does not belong to it
            kinds = facts.definitions
            seeds += [Node(function.path, one) for one in here if one == names[0] or kinds[one].kind == "function"]
        elif function.path not in with_functions:
            seeds += [Node(function.path, name) for name, one in facts.definitions.items() if one.kind != "variable"]
    return list(dict.fromkeys(seeds))


def _outwards(graph: CallGraph, seeds: Sequence[Node]) -> list[tuple[Node, int, list[Node]]]:
    """Definitions from which calls lead to a seed: each with its distance and the way there, itself first."""
    towards: dict[Node, Node | None] = dict.fromkeys(seeds)
    distances = dict.fromkeys(seeds, 0)
    queue = [(0, seed) for seed in seeds]
    done: dict[Node, int] = {}
    while queue and len(done) < _VISITED:
        distance, node = heapq.heappop(queue)
        if node in done:
            continue
        done[node] = distance
        for caller, length in graph.callers.get(node, {}).items():
            farther = distance + length
            if farther <= FARTHEST and farther < distances.get(caller, FARTHEST + 1):
                distances[caller], towards[caller] = farther, node
                heapq.heappush(queue, (farther, caller))
    return [(node, distance, _way(node, towards)) for node, distance in done.items()]


def _way(node: Node, towards: dict[Node, Node | None]) -> list[Node]:
    way: list[Node] = []
    one: Node | None = node
    while one is not None:
        way.append(one)
        one = towards[one]
    return way
