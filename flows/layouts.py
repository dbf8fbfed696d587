"""Where the package of a clone lies, as its newest commit says: what the roles of files follow."""

from __future__ import annotations

from pathlib import Path

from perfquarry.data.errors import GitFailed
from perfquarry.data.registry import Repository
from perfquarry.harness.metadata.layout import METADATA, Layout, layout_of
from perfquarry.harness.metadata.package import metadata_of
from perfquarry.miners.vocabulary import content_at, paths_at


def layout_at(clone: Path, repository: Repository) -> Layout:
    """The layout of the newest commit of the repository's branch.

    Raises:
        GitFailed: its tree cannot be read.
    """
    sha = repository.branch or "HEAD"
    texts = {name: text.decode("utf-8", "replace") for name, text in content_at(clone, sha, METADATA).items()}
    metadata = metadata_of(lambda name: texts.get(name, ""))
    return layout_of(paths_at(clone, sha), metadata, repository.packages, repository.source_dirs)


def places_of(clone: Path, repository: Repository) -> tuple[str, ...]:
    """The package's places of `layout_at`; none where that tree is missing in the clone."""
    try:
        return layout_at(clone, repository).places
    except GitFailed:
        return ()
