"""One side of a change while it is being made runnable, and the row it ends as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfquarry.data.records import Amendment, Build, FileChange, Side, Stamp, content_id
from perfquarry.harness.contracts import BuiltSide
from perfquarry.harness.environments.environment import Environment
from perfquarry.harness.environments.interpreters import Interpreter
from perfquarry.harness.leases.leases import current_leases
from perfquarry.harness.metadata.recipe import Recipe
from perfquarry.harness.rejections import Rejection, tail


@dataclass
class PendingSide:
    """What is known of the side so far."""

    side: Side
    sha: str
    files: list[str]
    """Its changed Python source files, relative to the tree."""
    recipe: Recipe = field(default_factory=Recipe)
    system_packages: list[str] = field(default_factory=list)
    """Debian packages installed for it."""
    log: list[str] = field(default_factory=list)
    seconds: float = 0.0
    bytes: int = 0
    tree: Path | None = None
    python: Interpreter | None = None
    environment: Environment | None = None
    build_id: str = ""
    rejection: Rejection | None = None

    def amended(self, amendment: Amendment) -> PendingSide:
        """The side as it was checked out, to be tried with other requirements."""
        return replace(
            self, recipe=self.recipe.amended(amendment), system_packages=amendment.system_packages, log=list(self.log)
        )

    def reject(self, rejection: Rejection) -> None:
        """Notes why it cannot be made."""
        self.rejection = rejection
        self.log.append(rejection.log)

    def packages_to_import(self) -> list[str]:
        """The packages that hold a changed file; all of the recipe's when none does."""
        holding = {name for file in self.files for name in self._packages_with(Path(file))}
        return [name for name in self.recipe.packages if name in holding] or self.recipe.packages

    def files_to_parse(self) -> list[str]:
        """The changed files that lie in a package, all where none is known: drafts beside it may be no Python."""
        return [file for file in self.files if not self.recipe.packages or self._packages_with(Path(file))]

    def _packages_with(self, file: Path) -> list[str]:
        """The recipe's packages that hold the file, else those that share its first name below a source root."""
        roots = [root for root in self.recipe.source_roots if root == "." or file.is_relative_to(root)]
        inside = [".".join(file.relative_to(root).with_suffix("").parts) for root in roots]
        holding = [one for one in self.recipe.packages if any(f"{path}.".startswith(f"{one}.") for path in inside)]
        tops = {path.partition(".")[0] for path in inside}
        return holding or [name for name in self.recipe.packages if name.partition(".")[0] in tops]

    def built(self) -> BuiltSide:
        """The side, once it has a tree and an environment."""
        assert self.environment is not None and self.tree is not None
        return BuiltSide(
            side=self.side,
            sha=self.sha,
            tree=self.tree,
            python=self.environment.python,
            environment_id=self.environment.environment_id,
            source_roots=tuple(self.tree / root for root in self.recipe.source_roots),
            variables=self.recipe.test_variables,
            test_arguments=tuple(self.recipe.test_arguments),
            writable_tree=self.recipe.writable_tree,
            test_paths=tuple(self.recipe.test_paths),
            held=current_leases(),
        )

    def row(self, change_id: str, stamp: Stamp, failed: PendingSide | None) -> Build:
        """Its row; `failed` is the side for which the change is given up, if one is."""
        rejection = self.rejection or (failed.rejection if failed else None)
        if failed and not self.rejection:
            self.log.append(f"not finished, because the {failed.side} cannot be made")
        environment = self.environment
        return Build(
            **stamp.fields(),
            status="rejected" if rejection else "kept",
            reason=rejection.reason if rejection else None,
            build_id=self.build_id or content_id("unbuilt", self.sha),
            change_id=change_id,
            side=self.side,
            sha=self.sha,
            python=str(self.python.version) if self.python else "",
            environment_id=environment.environment_id if environment else "",
            requirements=environment.requirements if environment else [],
            commands=[*(environment.commands if environment else []), *self.recipe.build],
            system_packages=self.system_packages,
            source_roots=self.recipe.source_roots,
            writable_tree=self.recipe.writable_tree,
            seconds=self.seconds,
            bytes=self.bytes,
            log=tail("\n".join(self.log)),
        )


def changed_python_files(files: Sequence[FileChange], side: Side) -> list[str]:
    """Changed Python source files by their path at that side."""
    absent = "added" if side == "base" else "deleted"
    kept = [f for f in files if f.role == "source" and f.status not in (absent, "submodule")]
    paths = [(f.old_path or f.path) if side == "base" else f.path for f in kept]
    return [path for path in paths if path.endswith((".py", ".pyw"))]
