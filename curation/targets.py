"""What an agent is asked: oracle and realistic targets and the texts made of them.

The texts are our own words. They name functions and nothing that reveals the fix: no line of
the patch, no word of the commit's message, no function that only the head has.
"""

from __future__ import annotations

from collections.abc import Iterable

from perfquarry.data.records import Change, TouchedFunction, Verdict, Workload

_MODULE = "<module>"

_ORACLE = """\
Some code of {codebase} needs more time than it has to. Make the following functions faster:

{functions}

{rules}"""

_REALISTIC = """\
Calls of these functions of {codebase} take more time than they have to, as its end-to-end tests show:

{functions}

The cause may lie in the functions themselves or in anything they reach, in any file of the package. \
Find it, and make these calls faster.

{rules}"""

RULES = """\
Whatever callers can observe must stay as it is: results, exceptions, side effects and public names. \
Files of the test-suite are not to be changed. Your version is timed against the present one, call by call, \
on workloads that go through this code, and it counts only if the tests that pass now still pass."""
"""What every problem text ends with."""
BOILERPLATE = f"{_ORACLE} {_REALISTIC} {RULES} the top level of in"
"""All words that the templates put into a text by themselves."""


def oracle_targets(change: Change, verdict: Verdict) -> list[str]:
    """'path::Class.method' that the change edits or deletes, outside tests, with the base's paths.

    Functions that the head adds are left out, for they are not in the base and their names reveal
    the fix. Code outside functions ('<module>') is named only where nothing else is.
    """
    tests = {file.path for file in change.files if file.role == "test"}
    at_base = {file.path: file.old_path or file.path for file in change.files}
    edited = [f for f in verdict.functions if f.path not in tests and f.change != "added"]
    return _names((f for f in edited if f.name != _MODULE), at_base) or _names(edited, at_base)


def _names(functions: Iterable[TouchedFunction], at_base: dict[str, str]) -> list[str]:
    return list(dict.fromkeys(f"{at_base.get(f.path, f.path)}::{f.name}" for f in functions))


def realistic_targets(workloads: Iterable[Workload]) -> list[str]:
    """'path::Class.method' that the workloads call directly, each once, in order."""
    return list(dict.fromkeys(call for workload in workloads for call in workload.calls))


def oracle_problem(codebase: str, targets: list[str]) -> str:
    """The problem with the functions to change named; empty without any."""
    return _text(_ORACLE, codebase, targets)


def realistic_problem(codebase: str, targets: list[str]) -> str:
    """The problem with only the functions named that end users call; empty without any."""
    return _text(_REALISTIC, codebase, targets)


def _text(template: str, codebase: str, targets: list[str]) -> str:
    if not targets:
        return ""
    functions = "\n".join(f"- {_spoken(target)}" for target in targets)
    return template.format(codebase=codebase, functions=functions, rules=RULES)


def _spoken(target: str) -> str:
    path, _, name = target.partition("::")
    return f"the top level of `{path}`" if name == _MODULE else f"`{name}` in `{path}`"
