"""A solver's copy of a base, and the patch that it becomes."""

from __future__ import annotations

import shutil
from pathlib import Path

from perfquarry.data.git import Git, git_in_tree
from perfquarry.harness.trees.tree_copies import end_search_for_settings

_AUTHOR = ("-c", "user.name=perfquarry", "-c", "user.email=perfquarry@localhost")
_SKIPPED = shutil.ignore_patterns(".git", "__pycache__")


class Workspace:
    """A copy of a tree. What it was is kept in a git repository beside it, which the solver does not see.

    Args:
        tree: the base.
        folder: where the copy is made; it must not exist, nor `folder` with the ending .git.

    Raises:
        GitFailed: git is missing, or the copy cannot be made.
    """

    def __init__(self, tree: Path, folder: Path) -> None:
        end_search_for_settings(folder.parent)
        shutil.copytree(tree, folder, symlinks=True, ignore=_SKIPPED)
        self.folder = folder
        self._git: Git = git_in_tree(folder, folder=folder.with_name(f"{folder.name}.git"))
        self._run("add", "--all", "--force", ".")
        self._run(*_AUTHOR, "commit", "--quiet", "--no-verify", "--message", "base")
        self._base = self._run("rev-parse", "HEAD").decode().strip()

    def patch(self) -> str:
        """What was changed since, new files included, but for those that git ignores and compiled Python."""
        self._run("add", "--all", ".", ":(exclude,glob)**/__pycache__/**", ":(exclude,glob)**/.git/**")
        found = self._run("diff", "--cached", "--binary", "--no-color", "--no-ext-diff", "--no-textconv", self._base)
        return found.decode("utf-8", errors="surrogateescape")

    def _run(self, *arguments: str) -> bytes:
        return self._git.output(*arguments, doing="keeping a solver's work")
