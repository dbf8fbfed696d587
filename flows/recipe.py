"""Drafts of recipes: what is found in the newest commit, as a file that a person completes."""

from __future__ import annotations

from pathlib import Path

from perfquarry.data.errors import InputError
from perfquarry.flows.options import Options
from perfquarry.flows.output import say
from perfquarry.flows.run import Run
from perfquarry.harness.metadata.drafts import text_of
from perfquarry.harness.metadata.recipe import read_recipe
from perfquarry.harness.rejections import Rejection
from perfquarry.harness.trees.checkouts import Checkouts


def draft(options: Options, to: Path | None) -> None:
    """Writes the draft and says where it lies.

    Every line is commented out: what it says is found in each commit anew, until a person decides it for all.

    Raises:
        InputError: the file is there already, or the repository has no commit.
    """
    run = Run(options)
    file = to or run.home.recipes / f"{run.name}.toml"
    if file.exists():
        raise InputError(f"{file} is there already: edit it, or remove it to have a new draft")
    sha = run.newest_commit()
    tree = Checkouts(run.home, run.clone, run.name).tree(sha)
    if isinstance(tree, Rejection):
        raise InputError(f"the newest commit {sha} cannot be checked out: {tree.log}")
    text = text_of(run.repository, read_recipe(tree, run.repository), sha)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    say(f"{file}\nUncomment and correct what is wrong; then run perfquarry again.")
