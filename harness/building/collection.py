"""Whether pytest can collect the test files near a change."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from perfquarry.data.records import Side
from perfquarry.harness.contracts import BuiltSide, Limits, ProbeRequest
from perfquarry.harness.probing.prober import Prober

_MISSING_MODULE = re.compile(r"could not import|No module named")
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
        if report.outcome != "finished":  # a conftest that fails ends pytest
            errors.append(f"pytest {report.outcome}:\n{report.output}")
        return "\n".join(errors)
