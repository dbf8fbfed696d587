"""Interpreter and environment for the two sides of a change: one for both where that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet

from perfquarry.data.records import Change, Reason
from perfquarry.harness.drafts import Draft
from perfquarry.harness.environments import Environment, Environments
from perfquarry.harness.interpreters import choose, find_interpreters
from perfquarry.harness.rejections import Rejection


@dataclass(frozen=True)
class Provision:
    """The steps that give drafts their interpreter and their environment.

    Args:
        environments: those of the home.
        timeout: wall seconds of making one.
    """

    environments: Environments
    timeout: float

    def choose_python(self, change: Change, drafts: Sequence[Draft]) -> None:
        """The newest interpreter of the time that the project tested with, for both sides if any fits both."""
        found = find_interpreters()
        both = SpecifierSet(",".join(draft.recipe.requires_python or "" for draft in drafts).strip(","))
        base, head = (draft.recipe.tested for draft in drafts)
        tested = [version for version in base if version in head] or [*base, *head]
        shared = choose(change.merged_at, both, found, tested)
        for draft in drafts:
            draft.python = shared or choose(change.merged_at, draft.recipe.python_range(), found, draft.recipe.tested)
            if draft.python is None:
                known = ", ".join(str(i.version) for i in found) or "none"
                wanted = draft.recipe.requires_python
                draft.reject(Rejection(Reason.NO_INTERPRETER, f"wants Python {wanted}; installed: {known}"))
            elif draft.python.matured is None or draft.python.matured > change.merged_at:
                draft.log.append(f"Python {draft.python.version} is younger than the commit: the oldest in its range")

    def environment(self, change: Change, drafts: Sequence[Draft]) -> None:
        """One environment for both sides; one for each where none serves both."""
        base, head = drafts
        alike = base.recipe.same_requirements(head.recipe)
        if base.python == head.python and (self._provide(change, drafts) or alike):
            return
        for draft in drafts:
            draft.rejection = None
            draft.log.append("no environment serves both sides: each has its own")
            self._provide(change, [draft])

    def _provide(self, change: Change, drafts: Sequence[Draft]) -> bool:
        """Gives the sides one environment that fulfils all of them, without the tests' requirements if need be."""
        python = drafts[0].python
        assert python is not None
        needed = {line for draft in drafts for line in draft.recipe.requirements}
        wanted = needed | {line for draft in drafts for line in draft.recipe.test_requirements}
        if python.minor < (3, 12):
            needed, wanted = needed | {"setuptools"}, wanted | {"setuptools"}  # environments of the time had it
        made: Environment | Rejection = Rejection(Reason.RESOLUTION_FAILED, "")
        for requirements in [wanted, needed] if wanted != needed else [needed]:
            made = self.environments.ensure(python, sorted(requirements), change.merged_at, timeout=self.timeout)
            if isinstance(made, Environment):
                break
            if requirements is not needed:
                without = ", ".join(sorted(wanted - needed))
                for draft in drafts:
                    draft.log.append(f"{made.log}\n(tried again without what only tests want: {without})")
        for draft in drafts:
            if isinstance(made, Rejection):
                draft.reject(made)
            else:
                draft.environment = made
                draft.log.append(made.log)
        return isinstance(made, Environment)
