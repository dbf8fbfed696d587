"""Which of the usable scripts to keep, in what order, and which of them stay hidden.

All of it is decided before anything is timed: neither the choice nor the roles know a speedup.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from perfquarry.data import syntax
from perfquarry.data.records import Reason, Role, content_id
from perfquarry.testgen.trials import Trial

_HARNESS = ("store_result", "load_result", "run_test")


def choose(trials: Sequence[Trial], wanted: int) -> list[Trial]:
    """At most `wanted` usable trials, best first, then all others, each with its reason.

    The next one is always that which executes most changed lines not yet executed, then that which is
    least like those chosen, then the one that was written first.
    """
    distinct = without_duplicates(trials)
    usable = [trial for trial in distinct if trial.reason is None]
    chosen = _diverse(usable, wanted)
    surplus = [replace(trial, reason=Reason.SURPLUS) for trial in usable if trial not in chosen]
    return [*chosen, *surplus, *(trial for trial in distinct if trial.reason is not None)]


def without_duplicates(trials: Sequence[Trial]) -> list[Trial]:
    """The trials in their order; a usable one that executes the changed lines of an earlier one, with code that
    differs in literals only, is rejected."""
    seen: dict[tuple[frozenset[tuple[str, str, int]], str], Trial] = {}
    distinct = []
    for trial in trials:
        if trial.reason is None:
            first = seen.setdefault((trial.lines, shape_of(trial.script.code)), trial)
            if first is not trial:
                trial = replace(trial, reason=Reason.DUPLICATE, detail=f"like: {first.script.note}")
        distinct.append(trial)
    return distinct


def roles_of(change_id: str, codes: Sequence[str], held_out: int) -> list[Role]:
    """Who sees which of a change's kept scripts: `held_out` of them are hidden, but never all.

    The order is that of hashes of the change and the code. A script whose input a visible one has,
    too, is visible.
    """
    order = sorted(codes, key=lambda code: content_id("role", change_id, code))
    visible = order[: max(1, len(order) - held_out)]
    shown = {input_of(code) for code in visible}
    return ["visible" if code in visible or input_of(code) in shown else "hidden" for code in codes]


def shape_of(code: str) -> str:
    """Equal for scripts that differ in literals, docstrings, comments and the functions around the timed ones only."""
    tree = syntax.parse(code)
    tree.body = [node for node in tree.body if getattr(node, "name", "") not in _HARNESS]
    return ast.dump(_WithoutLiterals().visit(tree))


def input_of(code: str) -> str:
    """Equal for scripts whose `setup` and constants of the module are the same."""
    body = syntax.parse(code).body
    others = (ast.FunctionDef, ast.Import, ast.ImportFrom, ast.Expr)
    return "".join(
        ast.dump(node) for node in body if getattr(node, "name", "") == "setup" or not isinstance(node, others)
    )


class _WithoutLiterals(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant(type(node.value).__name__)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)


def _diverse(usable: Sequence[Trial], wanted: int) -> list[Trial]:
    left, chosen = list(usable), list[Trial]()
    features = {id(trial): _features(trial) for trial in usable}
    while left and len(chosen) < wanted:
        covered = frozenset().union(*(trial.lines for trial in chosen))

        def rank(trial: Trial, covered: frozenset[object] = covered) -> tuple[int, float, int]:
            likest = max((_alike(features[id(trial)], features[id(one)]) for one in chosen), default=0.0)
            lines = trial.lines
            return len(lines - covered), -likest, len(lines)

        best = max(left, key=rank)  # of equals the first
        chosen.append(best)
        left.remove(best)
    return chosen


def _features(trial: Trial) -> frozenset[object]:
    """What distinguishes it from others: names it uses, functions it calls, lines it executes, numbers by their decade.

    Nothing of it was timed, so the choice is the same on every machine.
    """
    nodes = list(ast.walk(syntax.parse(trial.script.code)))
    names = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in nodes
        if isinstance(node, ast.Attribute | ast.Name)
    }
    values = [node.value for node in nodes if isinstance(node, ast.Constant)]
    sizes = {len(str(abs(value))) for value in values if isinstance(value, int) and not isinstance(value, bool)}
    return frozenset([*names, *sizes, *trial.calls, *trial.lines])


def _alike(one: frozenset[object], other: frozenset[object]) -> float:
    """Share of the features of either that both have (Jaccard index)."""
    return len(one & other) / len(one | other)
