"""Interpreter and environment for the two sides of a change: one for both where that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet

from perfquarry.data.records import Change, Reason
from perfquarry.harness.building.pending import PendingSide
from perfquarry.harness.environments.environment import Environment, Environments
from perfquarry.harness.environments.interpreters import choose, find_interpreters
from perfquarry.harness.rejections import Rejection


@dataclass(frozen=True)
class Provision:
    """The steps that give sides their interpreter and their environment, made within so many wall seconds."""

    environments: Environments
    timeout: float

    def choose_python(self, change: Change, sides: Sequence[PendingSide]) -> None:
        """The newest interpreter of the time that the project tested with, for both sides if any fits both."""
        found = find_interpreters()
        both = SpecifierSet(",".join(pending.recipe.requires_python or "" for pending in sides).strip(","))
        base, head = (pending.recipe.tested for pending in sides)
        tested = [version for version in base if version in head] or [*base, *head]
        shared = choose(change.merged_at, both, found, tested)
        for pending in sides:
            pending.python = shared or choose(
                change.merged_at, pending.recipe.python_range(), found, pending.recipe.tested
            )
            if pending.python is None:
                known = ", ".join(str(i.version) for i in found) or "none"
                wanted = pending.recipe.requires_python
                pending.reject(Rejection(Reason.NO_INTERPRETER, f"wants Python {wanted}; installed: {known}"))
            elif pending.python.matured is None or pending.python.matured > change.merged_at:
                pending.log.append(
                    f"Python {pending.python.version} is younger than the commit: the oldest in its range"
                )

    def environment(self, change: Change, sides: Sequence[PendingSide]) -> None:
        """One environment for both sides; one for each where none serves both."""
        base, head = sides
        wanted = [(pending.recipe.requirements, pending.recipe.test_requirements) for pending in sides]
        if base.python == head.python and (self._provide(change, sides) or wanted[0] == wanted[1]):
            return
        for pending in sides:
            pending.rejection = None
            pending.log.append("no environment serves both sides: each has its own")
            self._provide(change, [pending])

    def _provide(self, change: Change, sides: Sequence[PendingSide]) -> bool:
        """Gives the sides one environment that fulfils all of them, without the tests' requirements if need be."""
        python = sides[0].python
        assert python is not None
        needed = {line for pending in sides for line in pending.recipe.requirements}
        wanted = needed | {line for pending in sides for line in pending.recipe.test_requirements}
        if python.minor < (3, 12):
            needed, wanted = needed | {"setuptools"}, wanted | {"setuptools"}  # environments of the time had it
        made: Environment | Rejection = Rejection(Reason.RESOLUTION_FAILED, "")
        for requirements in [wanted, needed] if wanted != needed else [needed]:
            made = self.environments.ensure(python, sorted(requirements), change.merged_at, timeout=self.timeout)
            if isinstance(made, Environment):
                break
            if requirements is not needed:
                without = ", ".join(sorted(wanted - needed))
                for pending in sides:
                    pending.log.append(f"{made.log}\n(tried again without what only tests want: {without})")
        for pending in sides:
            if isinstance(made, Rejection):
                pending.reject(made)
            else:
                pending.environment = made
                pending.log.append(made.log)
        return isinstance(made, Environment)
