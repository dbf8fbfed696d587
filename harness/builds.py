"""The build stage: both sides of a change made runnable, in one environment where that is possible."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.specifiers import SpecifierSet

from data.errors import EnvironmentFailed, InputError
from data.home import Home
from data.records import Build, Change, Reason, Side, Stamp, content_id
from data.registry import Repository
from data.settings import BuildSettings
from harness.checkouts import Checkouts
from harness.checks import Checker
from harness.contracts import BuiltSide, Sandbox
from harness.drafts import Draft, python_files
from harness.environments import Environment, Environments
from harness.interpreters import choose, find_interpreters
from harness.native import NativeBuilds
from harness.recipes import read_recipe
from harness.rejections import Rejection

STAGE_VERSION = "1"
_SIDES: tuple[Side, Side] = ("base", "head")
_CHECK_SECONDS = 300.0


@dataclass(frozen=True)
class BuiltChange:
    """What `Builder.build` made of a change."""

    rows: tuple[Build, Build]
    """Of the base and of the head; both kept, or both rejected."""
    base: BuiltSide | None
    head: BuiltSide | None


class Builder:
    """Builds the changes of one repository.

    Args:
        home: where trees, environments and artifacts lie.
        clone: the repository's clone, bare or not; read only.
        repository: its entry in the registry.
        sandbox: where everything of the repository runs.
        settings: limits.
        stamp: for the rows.
    """

    def __init__(
        self, home: Home, clone: Path, repository: Repository, sandbox: Sandbox, settings: BuildSettings, stamp: Stamp
    ) -> None:
        self._repository = repository
        self._sandbox = sandbox
        self._settings = settings
        self._stamp = stamp
        self._checkouts = Checkouts(home, clone, repository.name)
        self._environments = Environments(home)
        self._native = NativeBuilds(home, sandbox, settings, repository.name)

    def build(self, change: Change) -> BuiltChange:
        """Makes both sides runnable: interpreter, environment, tree, native parts, and an import as the proof.

        The date of the change chooses interpreter and environment for both sides. Where their
        requirements differ, one environment that fulfils both is tried first, because times are
        compared: each has its own only when there is none. A change is kept when both
        sides are; when one cannot be made, both rows carry its reason.

        Raises:
            InfrastructureError: git, uv, index, disk or sandbox failed; nothing is known of the change.
        """
        drafts = [
            Draft("base", change.base_sha, python_files(change.files, "base")),
            Draft("head", change.head_sha, python_files(change.files, "head")),
        ]
        for step in (self._check_out, self._choose_python, self._environment, self._parse, self._finish):
            start = time.monotonic()
            step(change, drafts)
            for draft in drafts:
                draft.seconds += (time.monotonic() - start) / len(drafts)
            if any(draft.rejection for draft in drafts):
                break
        return _result(change, drafts, self._stamp)

    def reopen(self, rows: Sequence[Build]) -> tuple[BuiltSide, BuiltSide]:
        """The sides of kept rows of one change, base first; what was removed of them meanwhile is made again.

        Raises:
            InputError: the rows are not a kept base and a kept head.
            EnvironmentFailed: a side cannot be made again here.
        """
        by_side = {row.side: row for row in rows if row.status == "kept"}
        if set(by_side) != set(_SIDES):
            raise InputError("can only reopen a kept base and a kept head of one change: run the build stage first")
        return self._reopen(by_side["base"]), self._reopen(by_side["head"])

    def _reopen(self, row: Build) -> BuiltSide:
        draft = Draft(row.side, row.sha, [], build_id=row.build_id)
        python = next((i for i in find_interpreters() if str(i.version) == row.python), None)
        if python is None:
            raise EnvironmentFailed(f"Python {row.python} is needed to run {row.sha} again: install it")
        environment = self._environments.restore(
            row.environment_id, python, row.requirements, timeout=self._settings.timeout
        )
        tree = self._checkouts.tree(row.sha)
        for made in (environment, tree):
            if isinstance(made, Rejection):
                raise EnvironmentFailed(f"{row.sha} was built before and cannot be made again:\n{made.log}")
        assert isinstance(environment, Environment) and isinstance(tree, Path)
        draft.tree, draft.environment = tree, environment
        draft.recipe = read_recipe(tree, self._repository).model_copy(update={"source_roots": row.source_roots})
        self._add_native(draft)
        if draft.rejection:
            raise EnvironmentFailed(f"{row.sha} was built before and cannot be made again:\n{draft.rejection.log}")
        self._checker(environment).compile_bytecode(draft.tree, _tag(environment))
        return draft.built()

    def _check_out(self, change: Change, drafts: Sequence[Draft]) -> None:
        for draft in drafts:
            tree = self._checkouts.tree(draft.sha)
            if isinstance(tree, Rejection):
                draft.reject(tree)
            else:
                draft.tree = tree
                draft.recipe = read_recipe(tree, self._repository)
                draft.log += draft.recipe.notes

    def _choose_python(self, change: Change, drafts: Sequence[Draft]) -> None:
        found = find_interpreters()
        both = SpecifierSet(",".join(draft.recipe.requires_python or "" for draft in drafts).strip(","))
        shared = choose(change.merged_at, both, found)
        for draft in drafts:
            draft.python = shared or choose(change.merged_at, draft.recipe.python_range(), found)
            if draft.python is None:
                known = ", ".join(str(i.version) for i in found) or "none"
                wanted = draft.recipe.requires_python
                draft.reject(Rejection(Reason.NO_INTERPRETER, f"wants Python {wanted}; installed: {known}"))
            elif draft.python.matured is None or draft.python.matured > change.merged_at:
                draft.log.append(f"Python {draft.python.version} is younger than the commit: the oldest in its range")

    def _environment(self, change: Change, drafts: Sequence[Draft]) -> None:
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
            made = self._environments.ensure(
                python, sorted(requirements), change.merged_at, timeout=self._settings.timeout
            )
            if isinstance(made, Environment):
                break
        for draft in drafts:
            if isinstance(made, Rejection):
                draft.reject(made)
            else:
                draft.environment = made
                draft.log.append(made.log)
        return isinstance(made, Environment)

    def _parse(self, change: Change, drafts: Sequence[Draft]) -> None:
        reasons = {"base": Reason.SYNTAX_ERROR_BASE, "head": Reason.SYNTAX_ERROR_HEAD}
        for draft in drafts:
            assert draft.environment is not None and draft.tree is not None
            found = self._checker(draft.environment).parse(draft.tree, draft.files, reasons[draft.side])
            if found:
                draft.reject(found)

    def _finish(self, change: Change, drafts: Sequence[Draft]) -> None:
        for draft in drafts:
            self._add_native(draft)
            if draft.rejection:
                return
            assert draft.environment is not None and draft.tree is not None
            checker = self._checker(draft.environment)
            checker.compile_bytecode(draft.tree, _tag(draft.environment))
            failed = checker.imports(draft.tree, draft.built().source_roots, draft.packages_to_import())
            if failed:
                draft.reject(failed)

    def _add_native(self, draft: Draft) -> None:
        """Puts what the build commands add into the side's tree; equal builds are made once."""
        assert draft.environment is not None and draft.tree is not None
        if not draft.recipe.build:
            draft.build_id = content_id("build", draft.environment.environment_id)
            return
        inputs = self._checkouts.hash_of_build_inputs(draft.sha)
        if isinstance(inputs, Rejection):
            draft.reject(inputs)
            return
        facts: list[object] = [draft.environment.environment_id, draft.recipe.build, draft.recipe.source_roots, inputs]
        facts += [draft.recipe.variables] if draft.recipe.variables else []
        draft.build_id = content_id("build", *facts)
        version = self._checkouts.version(draft.sha)
        artifacts = self._native.ensure(draft.build_id, draft.tree, draft.recipe, draft.environment, version)
        if isinstance(artifacts, Rejection):
            draft.reject(artifacts)
            return
        draft.log.append(artifacts.log)
        draft.bytes += artifacts.bytes
        tree = self._checkouts.tree_with(draft.sha, draft.build_id, artifacts.path)
        if isinstance(tree, Rejection):
            draft.reject(tree)
        else:
            draft.tree = tree

    def _checker(self, environment: Environment) -> Checker:
        return Checker(
            self._sandbox, environment.python, self._settings.memory_bytes, min(_CHECK_SECONDS, self._settings.timeout)
        )


def _result(change: Change, drafts: Sequence[Draft], stamp: Stamp) -> BuiltChange:
    base, head = drafts
    failed = base if base.rejection else head if head.rejection else None
    rows = (base.row(change.change_id, stamp, failed), head.row(change.change_id, stamp, failed))
    return BuiltChange(rows, None, None) if failed else BuiltChange(rows, base.built(), head.built())


def _tag(environment: Environment) -> str:
    return "cpython-" + "".join(environment.version.split(".")[:2])
