"""Script workloads: texts that define the six functions of GSO's tests, so that GSO's tooling runs them, too.

`setup() -> data` (untimed, deterministic), `experiment(data) -> result` (what is timed),
`store_result(result, filename)`, `load_result(filename) -> result` (JSON or the like, never pickle),
`check_equivalence(reference_result, current_result)` (asserts), and
`run_test(eqcheck=False, reference=False, prefix="") -> float` (seconds).
See GSO (arXiv 2505.23671), appendix C.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from pyflakes import checker, messages

from perfquarry.data import syntax
from perfquarry.data.records import Reason, Source
from perfquarry.testgen.changed_lines import Function
from perfquarry.testgen.script_uses import Fault, Uses

PARAMETERS = {
    "setup": (),
    "experiment": ("data",),
    "store_result": ("result", "filename"),
    "load_result": ("filename",),
    "check_equivalence": ("reference_result", "current_result"),
    "run_test": ("eqcheck", "reference", "prefix"),
}
"""The six functions, each with the parameters it is called with; the names of those of `run_test` are fixed."""
CODE_BYTES = 64 * 1024


@dataclass(frozen=True)
class Script:
    """One script, before it is known whether it is usable."""

    code: str
    source: Source
    note: str = ""
    """One line for people: what it exercises."""


def faults_of(
    code: str, packages: Collection[str] = (), *, private_allowed: bool = False, code_bytes: int = CODE_BYTES
) -> Fault | None:
    """What speaks against a script before it is run; None: it may be tried.

    Args:
        code: the text.
        packages: import names of the package under test, whose private names are not to be used, and which may
            itself be one that uses the network.
        private_allowed: for scripts that call what a change touched, public or not.
        code_bytes: largest text.
    """
    try:
        size = len(code.encode())
        tree = syntax.parse(code)
        compile(tree, "<script>", "exec", dont_inherit=True)  # 'return' outside functions and the like
    except syntax.UNPARSABLE as error:
        return Fault(Reason.UNPARSABLE, f"{type(error).__name__}: {error}")
    if size > code_bytes:
        return Fault(Reason.CONTRACT_BROKEN, f"its text has {size} bytes, more than {code_bytes}")
    return _contract(tree) or _undefined(tree) or Uses(tree, packages).fault(private_allowed=private_allowed)


def _contract(tree: ast.Module) -> Fault | None:
    functions = {node.name: node for node in tree.body if isinstance(node, Function)}
    missing = [name for name in PARAMETERS if name not in functions]
    if missing:
        return Fault(Reason.CONTRACT_BROKEN, f"it does not define {', '.join(missing)}")
    for name, parameters in PARAMETERS.items():
        why = _misfit(functions[name], parameters)
        if why:
            return Fault(Reason.CONTRACT_BROKEN, f"line {functions[name].lineno}: {name} {why}")
    return None


def _misfit(function: Function, parameters: tuple[str, ...]) -> str:
    """Why a function cannot be called as its namesake of the contract is; empty where it can."""
    if isinstance(function, ast.AsyncFunctionDef):
        return "is a coroutine function"
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in _own_nodes(function)):
        return "is a generator: nothing runs when it is called"
    arguments = function.args
    names = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
    needed = len(names) - len(arguments.defaults)
    optional_only = parameters == PARAMETERS["run_test"]
    if None in arguments.kw_defaults or needed > (0 if optional_only else len(parameters)):
        return f"needs other arguments than {', '.join(parameters) or 'none'}"
    if len(names) < len(parameters) and not arguments.vararg:
        return f"does not take {', '.join(parameters)}"
    if optional_only and names[: len(parameters)] != list(parameters):
        return f"does not take {', '.join(parameters)} by name and in this order"
    return ""


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a function without those of functions within it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, Function | ast.Lambda):
            yield child
            yield from _own_nodes(child)


def _undefined(tree: ast.Module) -> Fault | None:
    found = [
        message
        for message in checker.Checker(tree).messages
        if isinstance(message, messages.UndefinedName | messages.UndefinedLocal)
    ]
    if not found:
        return None
    first = min(found, key=lambda message: (message.lineno, message.col))
    return Fault(Reason.UNDEFINED_NAME, f"line {first.lineno}: {first.message % first.message_args}")
