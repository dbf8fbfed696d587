"""Whether pytest can collect the test files near a change, and what they do without."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfquarry.data.records import Side
from perfquarry.data.syntax import UNPARSABLE, parse
from perfquarry.harness.building.distributions import distribution_of
from perfquarry.harness.contracts import BuiltSide, Limits, ProbeRequest
from perfquarry.harness.probing.prober import Prober

_MISSING_MODULE = re.compile(r"could not import|No module named")
_CAUGHT = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_NOTHING = "::(nothing)"
"""Ending of an argument that names no test of the file: it is collected, and nothing is run."""


@dataclass
class Collection:
    """The check for one change; its test files, relative to the trees, are looked up once."""

    prober: Prober
    find: Callable[[dict[Side, BuiltSide]], Sequence[str]]
    limits: Limits
    _files: Sequence[str] | None = field(default=None, init=False)

    def errors(self, sides: dict[Side, BuiltSide]) -> str:
        """What keeps pytest from collecting the files, once an environment; empty when it can.

        Raises:
            SandboxUnavailable: the sandbox itself could not start.
        """
        if self._files is None:
            self._files = self.find(sides)
        by_environment = {side.environment_id: side for side in reversed(sides.values())}
        return "\n".join(filter(None, map(self._errors_of, by_environment.values())))

    def _errors_of(self, side: BuiltSide) -> str:
        there = [name for name in self._files or () if (side.tree / name).is_file()]
        if not there:
            return ""
        request = ProbeRequest(mode="check", arguments=[name + _NOTHING for name in there])
        report = self.prober.run(side, request, limits=self.limits)
        # pytest.importorskip: with the module the file would be collected
        skipped = {name: text for name, text in report.collect_skips.items() if _MISSING_MODULE.search(text)}
        errors = [f"{name}:\n{text}" for name, text in sorted({**report.collect_errors, **skipped}.items())]
        for name in there:
            file = side.tree / name
            missing = [] if file.is_symlink() else _missing(file, side)
            errors += [f"{name}: No module named '{module}'; its tests do without it" for module in missing]
        if report.outcome != "finished":  # a conftest that fails ends pytest
            errors.append(f"pytest {report.outcome}:\n{report.output}")
        return "\n".join(errors)


def _missing(file: Path, side: BuiltSide, *, follow: bool = True) -> list[str]:
    """Modules of known distributions that a file does without, and that the tree's own modules that it may do without
    need: `importorskip("package.optional")`, where `package/optional.py` raises an error of its own."""
    found: list[str] = []
    for module in done_without(file.read_bytes()):
        own = next((path for path in _places(module, side.source_roots) if path.suffix == ".py"), None)
        if own is not None and follow and not own.is_symlink():
            found += _missing(own, side, follow=False)
        elif distribution_of(module) and not _is_there(module, side):
            found.append(module)
    return list(dict.fromkeys(found))


def done_without(content: bytes) -> list[str]:
    """Modules that a file imports where they are there, with nothing else in their place.

    With them more of its tests run: those that are skipped in words of their own ("babel not installed"), or that call
    `pytest.importorskip` themselves.
    """
    try:
        nodes = list(ast.walk(parse(content)))
    except UNPARSABLE:
        return []
    found: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Try):
            handlers = [handler for handler in node.handlers if _is_for_imports(handler)]
            instead = any(_imported(one) for handler in handlers for one in ast.walk(handler))
            if handlers and not instead and _imported(node.body[0]):
                found += [module for one in node.body for module in _imported(one)]
        elif isinstance(node, ast.Call):
            found += _asked_for(node)
    return [module for module in dict.fromkeys(found) if all(map(str.isidentifier, module.split(".")))]


def _asked_for(call: ast.Call) -> list[str]:
    """The module of a call of `pytest.importorskip`."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    texts = [one.value for one in call.args[:1] if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return texts if name == "importorskip" else []


def _is_for_imports(handler: ast.ExceptHandler) -> bool:
    caught = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)} if handler.type else _CAUGHT
    return not caught.isdisjoint(_CAUGHT)


def _imported(statement: ast.AST) -> list[str]:
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    from_module = isinstance(statement, ast.ImportFrom) and not statement.level and statement.module
    return [from_module] if from_module else []


def _is_there(module: str, side: BuiltSide) -> bool:
    """Whether the interpreter, the tree or what is installed has a module."""
    if module.partition(".")[0] in sys.stdlib_module_names:
        return True
    return any(_places(module, [*side.source_roots, *side.python.parent.parent.glob("lib/python*/site-packages")]))


def _places(module: str, folders: Iterable[Path]) -> Iterator[Path]:
    """Folders and files that a module may be, below folders of modules."""
    name = module.replace(".", "/")
    return (path for folder in folders for pattern in (name, f"{name}.*") for path in folder.glob(pattern))
