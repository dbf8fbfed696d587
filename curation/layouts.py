"""Where the package of a clone lies, as its newest commit says: what the roles of files follow."""

from __future__ import annotations

from pathlib import Path

from perfquarry.data.errors import GitFailed
from perfquarry.data.registry import Repository
from perfquarry.harness.metadata.project import metadata_files, project_of
from perfquarry.miners.vocabulary import content_at, paths_at


def places_of(clone: Path, repository: Repository) -> tuple[str, ...]:
    """The package's places in the newest commit of the branch; none where that tree is missing in the clone."""
    sha = repository.branch or "HEAD"
    try:
        paths = paths_at(clone, sha)
        contents = content_at(clone, sha, metadata_files(paths))
    except GitFailed:
        return ()
    texts = {name: text.decode("utf-8", "replace") for name, text in contents.items()}
    return project_of(paths, lambda path: texts.get(path, ""), repository).layout.places
