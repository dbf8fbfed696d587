"""The build stage: both sides of a change made runnable, in one environment where that is possible."""

from __future__ import annotations

import functools
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.specifiers import SpecifierSet
from pydantic import ValidationError

from perfquarry.data.errors import EnvironmentFailed, InputError
from perfquarry.data.home import Home
from perfquarry.data.records import Amendment, Attempt, Build, Change, Reason, Side, Stamp, Step, content_id
from perfquarry.data.records.inputs import validation_message
from perfquarry.data.records.release import Runnable
from perfquarry.data.registry import Repository
from perfquarry.harness.building.checks import Checker
from perfquarry.harness.building.collection import Collection
from perfquarry.harness.building.debian import install
from perfquarry.harness.building.distributions import own_names
from perfquarry.harness.building.known_good import KnownGood
from perfquarry.harness.building.native import Artifacts, NativeBuilds
from perfquarry.harness.building.pending import PendingSide, changed_python_files
from perfquarry.harness.building.python2 import made_for_2to3
from perfquarry.harness.building.repair import LOG_BYTES, Proposer, Repair, RepairAttempt, rows_of
from perfquarry.harness.building.repair_rules import Situation
from perfquarry.harness.contracts import BuiltSide, Limits, Sandbox
from perfquarry.harness.environments.environment import Environment, Environments
from perfquarry.harness.environments.interpreters import choose, find_interpreters
from perfquarry.harness.leases.leases import leases_held
from perfquarry.harness.metadata.recipe import read_recipe
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.rejections import Rejection, tail
from perfquarry.harness.settings import BuildSettings
from perfquarry.harness.trees.checkouts import Checkouts, settle

STAGE_VERSION = "3"
_SIDES: tuple[Side, Side] = ("base", "head")
_CHECK_SECONDS = 300.0

TestsNear = Callable[[Change, dict[Side, BuiltSide]], Sequence[str]]
"""Test files near a change, the nearest first, relative to the trees."""


@dataclass(frozen=True)
class BuiltChange:
    """What `Builder.build` made of a change."""

    rows: tuple[Build, Build]
    """Of the base and of the head; both kept, or both rejected."""
    base: BuiltSide | None
    head: BuiltSide | None
    attempts: tuple[Attempt, ...] = ()
    """Two rows an attempt."""


@dataclass
class Builder:
    """Builds the changes of one repository."""

    home: Home
    clone: Path
    """Bare or not; read only."""
    repository: Repository
    sandbox: Sandbox
    settings: BuildSettings
    stamp: Stamp
    tests_near: TestsNear = lambda change, sides: ()
    """Finds the test files that should be collectable."""
    known_good: KnownGood = field(default_factory=KnownGood)
    """What earlier builds needed; the builder adds its own."""
    proposer: Proposer | None = None
    """Asked for requirements when no rule of repair fits."""
    version: str = ""
    """What builds get that ask git; empty: the nearest tag's."""

    def __post_init__(self) -> None:
        self._checkouts = Checkouts(self.home, self.clone, self.repository.name)
        self._environments = Environments(self.home, self.sandbox)
        self._native = NativeBuilds(self.home, self.sandbox, self.settings, self.repository.name)

    @leases_held()
    def build(self, change: Change) -> BuiltChange:
        """Makes both sides runnable: interpreter, environment, tree, native parts, and an import as the proof.

        The date of the change and what the project tested with choose the interpreter and the
        environment for both sides. Where their requirements differ, one environment that fulfils
        both is tried first, because times are compared: each has its own only when there is none.
        A change is kept when both sides are; when one cannot be made, both rows carry its reason.
        What fails is tried again as the rules of repair say (`harness.building.repair_rules`), beginning with
        what served the nearest change before. Test files that cannot be collected in the end are noted.

        Raises:
            InfrastructureError: git, uv, index, disk or sandbox failed; nothing is known of the change.
        """
        sides = [
            PendingSide("base", change.base_sha, changed_python_files(change.files, "base")),
            PendingSide("head", change.head_sha, changed_python_files(change.files, "head")),
        ]
        self._check_out(sides)
        if any(pending.rejection for pending in sides):
            return _result(change, sides, self.stamp)
        collection = Collection(
            Prober(self.sandbox, self.home.scratch),
            lambda sides: self.tests_near(change, sides)[: self.settings.collected_files],
            Limits(min(_CHECK_SECONDS, self.settings.timeout), self.settings.memory_bytes),
        )
        repair = Repair(
            make=functools.partial(self._try, change, sides, collection),
            situate=functools.partial(self._situate, own_names([pending.tree for pending in sides if pending.tree])),
            provide=self._provide_packages,
            settings=self.settings,
            propose=functools.partial(self.proposer, change) if self.proposer else None,
        )
        best = repair.run(self.known_good.nearest(change))
        attempts = rows_of(repair.trials, best, change, self.stamp)
        self.known_good.add(attempts)
        return replace(_result(change, best.sides, self.stamp), attempts=attempts)

    def _try(
        self,
        change: Change,
        checked_out: Sequence[PendingSide],
        collection: Collection,
        amendment: Amendment,
        rule: str,
    ) -> RepairAttempt:
        """One attempt, step by step until one fails."""
        began = time.monotonic()
        sides = [pending.amended(amendment) for pending in checked_out]
        steps: dict[Step, Callable[[Change, Sequence[PendingSide]], None]] = {
            "interpreter": self._choose_python,
            "parse": self._parse,
            "environment": self._provide_environment,
            "build": self._build_native,
            "import": self._import,
        }
        failed: Step = "built"
        for name, step in steps.items():
            start = time.monotonic()
            step(change, sides)
            for pending in sides:
                pending.seconds += (time.monotonic() - start) / len(sides)
            if any(pending.rejection for pending in sides):
                failed = name
                break
        log = "\n".join(pending.rejection.log for pending in sides if pending.rejection)
        if failed == "built" and (log := collection.errors({pending.side: pending.built() for pending in sides})):
            failed = "collect"
            for pending in sides:
                pending.log.append(f"tests that cannot be collected:\n{tail(log, LOG_BYTES)}")
        return RepairAttempt(amendment, rule, sides, failed, log, time.monotonic() - began)

    def _situate(self, own: Callable[[str], bool], trial: RepairAttempt) -> Situation:
        recipes = [pending.recipe for pending in trial.sides]
        python = trial.sides[0].python
        packages = [name for recipe in recipes for name in recipe.system_packages]
        environments = [pending.environment for pending in trial.sides if pending.environment]
        return Situation(
            step=trial.step,
            log=trial.log,
            amendment=trial.amendment,
            declared=[line for recipe in recipes for line in (*recipe.test_requirements, *recipe.declared)],
            installed={module: line for one in environments for module, line in one.modules().items()},
            is_own=own,
            python=python.minor if python else None,
            ci_packages=packages if self.settings.system_packages else (),
        )

    def _provide_packages(self, packages: Sequence[str]) -> str | None:
        if not self.settings.system_packages:
            return f"not allowed by the settings (build.system_packages): apt-get install {' '.join(packages)}"
        why_not = install(packages, self.home.locks / "apt.lock")
        if why_not is None:
            self._environments.forget_rejections()
        return why_not

    @leases_held()
    def reopen(self, rows: Sequence[Build]) -> tuple[BuiltSide, BuiltSide]:
        """The sides of kept rows of one change, base first; what was removed of them meanwhile is made again.

        Raises:
            InputError: the rows are not a kept base and a kept head, or hold what is no recipe.
            EnvironmentFailed: a side cannot be made again here.
        """
        by_side = {row.side: row for row in rows if row.status == "kept"}
        if set(by_side) != set(_SIDES):
            raise InputError("can only reopen a kept base and a kept head of one change: run the build stage first")
        for row in by_side.values():
            try:
                Runnable.model_validate(row.model_dump(include=set(Runnable.model_fields)))
            except ValidationError as error:
                raise InputError(
                    f"the build of {row.change_id} cannot be made again: {validation_message(error)}"
                ) from error
        return self._reopen(by_side["base"]), self._reopen(by_side["head"])

    @leases_held()
    def build_elsewhere(
        self, row: Build, lay: Callable[[Path], bool], home: Home, sandbox: Sandbox, read_caches: Home | None = None
    ) -> Artifacts | Rejection | None:
        """What the build of a side makes of its tree with changes, a solver's say; the commands are the side's own.

        Args:
            row: a kept row.
            lay: puts the changes into a copy of the checkout; whether it is to be built.
            home: where it is built, and nothing else: no other build meets what a stranger's leaves there.
            sandbox: hides all that the build may not see.
            read_caches: home of which the compiler cache is read, and not written; None: `home` has its own.

        Returns:
            What the build added, or why it failed; None where it was not to be built.

        Raises:
            EnvironmentFailed: the side cannot be made again here.
        """
        pending = self._restored(row)
        assert pending.tree is not None and pending.environment is not None
        tree = home.scratch / "elsewhere"
        shutil.copytree(pending.tree, tree, symlinks=True)
        if not lay(tree):
            return None
        settle(tree)
        native = replace(self._native, home=home, sandbox=sandbox, read_caches=read_caches)
        version = self.version or self._checkouts.version(row.sha)
        return native.ensure("elsewhere", tree, pending.recipe, pending.environment, version)

    def _restored(self, row: Build) -> PendingSide:
        """The side of a row as it was before its native build."""
        pending = PendingSide(row.side, row.sha, [], build_id=row.build_id)
        python = next((i for i in find_interpreters() if str(i.version) == row.python), None)
        if python is None:
            raise EnvironmentFailed(f"Python {row.python} is needed to run {row.sha} again: install it")
        environment = self._environments.restore(
            row.environment_id, python, row.requirements, timeout=self.settings.timeout, commands=row.commands
        )
        tree = self._checkouts.tree(row.sha)
        for made in (environment, tree):
            if isinstance(made, Rejection):
                raise EnvironmentFailed(f"{row.sha} was built before and cannot be made again:\n{made.log}")
        assert isinstance(environment, Environment) and isinstance(tree, Path)
        pending.tree, pending.environment = tree, environment
        recipe = read_recipe(tree, self.repository, row.source_roots)
        known = {"source_roots": row.source_roots, "writable_tree": recipe.writable_tree or row.writable_tree}
        pending.recipe = recipe.model_copy(update=known)
        return pending

    def _reopen(self, row: Build) -> BuiltSide:
        pending = self._restored(row)
        assert pending.tree is not None and pending.environment is not None
        self._add_native(pending)
        if pending.rejection:
            raise EnvironmentFailed(f"{row.sha} was built before and cannot be made again:\n{pending.rejection.log}")
        self._checker(pending.environment.python).compile_bytecode(pending.tree, _tag(pending.environment))
        return pending.built()

    def _check_out(self, sides: Sequence[PendingSide]) -> None:
        for pending in sides:
            start = time.monotonic()
            tree = self._checkouts.tree(pending.sha)
            pending.seconds += time.monotonic() - start
            if isinstance(tree, Rejection):
                pending.reject(tree)
            else:
                pending.tree = tree
                pending.recipe = read_recipe(tree, self.repository, pending.files)
                pending.log += pending.recipe.notes
                if absent := self._checkouts.left_out(pending.sha):
                    pending.log.append(f"data that are not in the clone are left out: {len(absent)}, first {absent[0]}")

    def _choose_python(self, change: Change, sides: Sequence[PendingSide]) -> None:
        """The newest interpreter of the time that the project tested with, for both sides if any fits both."""
        found = find_interpreters()
        both = SpecifierSet(",".join(pending.recipe.requires_python or "" for pending in sides).strip(","))
        base, head = (pending.recipe.tested for pending in sides)
        tested = [version for version in base if version in head] or [*base, *head]
        shared = choose(change.merged_at, both, found, tested)
        for pending in sides:
            own = SpecifierSet(pending.recipe.requires_python or "")
            pending.python = shared or choose(change.merged_at, own, found, pending.recipe.tested)
            if pending.python is None:
                known = ", ".join(str(i.version) for i in found) or "none"
                wanted = pending.recipe.requires_python
                pending.reject(Rejection(Reason.NO_INTERPRETER, f"wants Python {wanted}; installed: {known}"))
            elif pending.python.matured is None or pending.python.matured > change.merged_at:
                pending.log.append(
                    f"Python {pending.python.version} is younger than the commit: the oldest in its range"
                )

    def _parse(self, change: Change, sides: Sequence[PendingSide]) -> None:
        """Needs the interpreter alone: for code of Python 2 no environment is made, which can take minutes."""
        reasons = {"base": Reason.SYNTAX_ERROR_BASE, "head": Reason.SYNTAX_ERROR_HEAD}
        for pending in sides:
            assert pending.python is not None and pending.tree is not None
            if old := made_for_2to3(pending.tree, pending.recipe.source_roots, pending.recipe.packages):
                pending.reject(Rejection(Reason.NEEDS_PYTHON_2, old))  # converting takes minutes, and goes elsewhere
                continue
            found = self._checker(pending.python.path).parse(
                pending.tree, pending.files_to_parse(), reasons[pending.side]
            )
            if found:
                pending.reject(found)

    def _provide_environment(self, change: Change, sides: Sequence[PendingSide]) -> None:
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
            made = self._environments.ensure(
                python, sorted(requirements), change.merged_at, timeout=self.settings.timeout
            )
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

    def _build_native(self, change: Change, sides: Sequence[PendingSide]) -> None:
        for pending in sides:
            self._add_native(pending)
            if pending.rejection:
                return

    def _import(self, change: Change, sides: Sequence[PendingSide]) -> None:
        for pending in sides:
            assert pending.environment is not None and pending.tree is not None
            checker = self._checker(pending.environment.python)
            checker.compile_bytecode(pending.tree, _tag(pending.environment))
            roots, packages = pending.built().source_roots, pending.packages_to_import()
            failed = checker.imports(pending.tree, roots, packages, guessed=pending.recipe.guessed)
            if failed:
                pending.reject(failed)
                return

    def _add_native(self, pending: PendingSide) -> None:
        """Puts what the build commands add into the side's tree; equal builds are made once."""
        assert pending.environment is not None and pending.tree is not None
        if not pending.recipe.build:
            pending.build_id = content_id("build", pending.environment.environment_id)
            return
        inputs = self._checkouts.hash_of_build_inputs(pending.sha)
        if isinstance(inputs, Rejection):
            pending.reject(inputs)
            return
        facts: list[object] = [
            pending.environment.environment_id,
            pending.recipe.build,
            pending.recipe.source_roots,
            inputs,
        ]
        facts += [pending.recipe.variables] if pending.recipe.variables else []
        pending.build_id = content_id("build", *facts)
        version = self.version or self._checkouts.version(pending.sha)
        artifacts = self._native.ensure(pending.build_id, pending.tree, pending.recipe, pending.environment, version)
        if isinstance(artifacts, Rejection):
            pending.reject(artifacts)
            return
        pending.log.append(artifacts.log)
        pending.bytes += artifacts.bytes
        tree = self._checkouts.tree_with(pending.sha, pending.build_id, artifacts.path)
        if isinstance(tree, Rejection):
            pending.reject(tree)
        else:
            pending.tree = tree

    def _checker(self, python: Path) -> Checker:
        return Checker(self.sandbox, python, self.settings.memory_bytes, min(_CHECK_SECONDS, self.settings.timeout))


def _result(change: Change, sides: Sequence[PendingSide], stamp: Stamp) -> BuiltChange:
    base, head = sides
    failed = base if base.rejection else head if head.rejection else None
    rows = (base.row(change.change_id, stamp, failed), head.row(change.change_id, stamp, failed))
    return BuiltChange(rows, None, None) if failed else BuiltChange(rows, base.built(), head.built())


def _tag(environment: Environment) -> str:
    return "cpython-" + "".join(environment.version.split(".")[:2])
