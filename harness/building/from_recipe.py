"""Build rows from a task's recipe alone, where no build of it was ever recorded: `Builder.reopen` makes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perfquarry.data.errors import EnvironmentFailed
from perfquarry.data.home import Home
from perfquarry.data.records import Build, Side, Stamp, content_id
from perfquarry.data.registry import Repository
from perfquarry.harness.environments.interpreters import find_interpreters
from perfquarry.harness.metadata.recipe import read_recipe
from perfquarry.harness.rejections import Rejection
from perfquarry.harness.trees.checkouts import Checkouts


def builds_of_recipe(
    home: Home,
    clone: Path,
    repository: Repository,
    stamp: Stamp,
    change_id: str,
    shas: tuple[str, str],
    python: str,
    requirements: Sequence[str],
    commands: Sequence[str] = (),
    changed: Sequence[str] = (),
    *,
    writable_tree: bool = False,
) -> list[Build]:
    """Rows of base and head as if they had been built here; both sides share the environment.

    Args:
        shas: base and head, 40 digits each.
        python: version 'X.Y.Z'; another patch release of X.Y serves, too.
        requirements: 'name==version', all that was installed.
        commands: those that made the environment: the index is asked as of their date.
        changed: the change's files: they tell the projects of a workspace apart.
        writable_tree: each process of tests has a copy of the tree.

    Raises:
        EnvironmentFailed: no such interpreter here, or a commit is missing in the clone.
    """
    version = _interpreter(python)
    environment_id = content_id("recipe", version, sorted(requirements), list(commands))
    sides: tuple[Side, Side] = ("base", "head")
    rows = []
    for side, sha in zip(sides, shas, strict=True):
        tree = Checkouts(home, clone, repository.name).tree(sha)
        if isinstance(tree, Rejection):
            raise EnvironmentFailed(f"{sha} cannot be checked out of {clone.name}: {tree.log}")
        row = Build(
            **stamp.fields(),
            build_id=content_id("recipe", sha),
            change_id=change_id,
            side=side,
            sha=sha,
            python=version,
            environment_id=environment_id,
            requirements=list(requirements),
            commands=list(commands),
            source_roots=read_recipe(tree, repository, changed).source_roots,
            writable_tree=writable_tree,
        )
        rows.append(row)
    return rows


def _interpreter(wanted: str) -> str:
    """The version of the interpreter to use."""
    known = [str(one.version) for one in find_interpreters()]
    minor = wanted.rpartition(".")[0]
    near = [version for version in known if version.rpartition(".")[0] == minor]
    if wanted in near:
        return wanted
    if not near:
        raise EnvironmentFailed(f"Python {wanted} is needed; installed: {', '.join(known) or 'none'}")
    return near[-1]
