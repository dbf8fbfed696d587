"""Where the package of a clone lies, as its newest commit says: what the roles of files follow."""

from __future__ import annotations

from pathlib import Path

from perfquarry.data.errors import GitFailed
from perfquarry.data.registry import Repository
from perfquarry.harness.metadata.layout import METADATA, layout_of
from perfquarry.harness.metadata.package import metadata_of
from perfquarry.miners.vocabulary import content_at, paths_at


def places_of(clone: Path, repository: Repository) -> tuple[str, ...]:
    """The package's places in the newest commit of the branch; none where that tree is missing in the clone."""
    sha = repository.branch or "HEAD"
    try:
        paths, contents = paths_at(clone, sha), content_at(clone, sha, METADATA)
    except GitFailed:
        return ()
    texts = {name: text.decode("utf-8", "replace") for name, text in contents.items()}
    metadata = metadata_of(lambda name: texts.get(name, ""))
    return layout_of(paths, metadata, repository.packages, repository.source_dirs).places
