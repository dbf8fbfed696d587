"""The home: one folder that holds the whole state of the program."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from perfquarry.data.errors import InputError


@dataclass(frozen=True)
class Home:
    """Paths inside the home. Folders are made by whoever first writes to them."""

    root: Path

    @classmethod
    def default(cls) -> Home:
        """`PERFQUARRY_HOME`, or `./var`."""
        return cls(Path(os.environ.get("PERFQUARRY_HOME") or "var").resolve())

    @property
    def tables(self) -> Path | str:
        """The Parquet tables: a folder, or the URI that `PERFQUARRY_TABLES` names (`data.store.places`)."""
        return os.environ.get("PERFQUARRY_TABLES") or self.root / "tables"

    @property
    def database(self) -> str:
        """SQLAlchemy URL of the mutable tables: `PERFQUARRY_DATABASE`, or SQLite in the home."""
        return os.environ.get("PERFQUARRY_DATABASE") or f"sqlite:///{self.root / 'claims.sqlite'}"

    @property
    def signs(self) -> Path:
        """Signs of life of the processes that work in this home."""
        return self.locks / "alive"

    @property
    def repositories(self) -> Path:
        """Bare clones, one per repository."""
        return self.root / "repositories"

    @property
    def recipes(self) -> Path:
        """The user's own recipes, one file a repository; they come before the registry."""
        return self.root / "recipes"

    @property
    def environments(self) -> Path:
        """Virtual environments, shared between changes."""
        return self.root / "environments"

    @property
    def trees(self) -> Path:
        """Checked-out sides of changes."""
        return self.root / "trees"

    @property
    def artifacts(self) -> Path:
        """What build commands added to a tree, by build id."""
        return self.root / "artifacts"

    @property
    def compiled(self) -> Path:
        """Build trees and compilers' caches, one folder per repository; only builds may see them."""
        return self.root / "compiled"

    @property
    def llm(self) -> Path:
        """Replies of models by content address, and the batches they are awaited from."""
        return self.root / "llm"

    @property
    def cache(self) -> Path:
        """Anything that can be made again."""
        return self.root / "cache"

    @property
    def scratch(self) -> Path:
        """Folders that last as long as one step; `gc` removes those of processes that were killed."""
        return self.cache / "scratch"

    @property
    def unfinished(self) -> Path:
        """Timings that were cut or set aside, one file each, until they are finished."""
        return self.cache / "timings"

    @property
    def searches(self) -> Path:
        """What was run to find workloads by searches that were cut, a folder each, until they are finished."""
        return self.cache / "searches"

    @property
    def trash(self) -> Path:
        """What was evicted and is being deleted."""
        return self.root / "trash"

    @property
    def locks(self) -> Path:
        """Lock files; a lock dies with its holder."""
        return self.root / "locks"

    def clone(self, repository: str) -> Path:
        """The bare clone of a repository."""
        return self.repositories / f"{repository}.git"

    def clone_lock(self, repository: str) -> Path:
        """Held while a clone is made or brought up to date."""
        return self.locks / f"clone-{repository}.lock"

    @property
    def server(self) -> Path:
        """The local Prefect server's database, port and log."""
        return self.root / "server"

    @property
    def marks(self) -> Path:
        """What finished runs found, for the next run that finds nothing new."""
        return self.root / "marks"

    @property
    def runs(self) -> Path:
        """What runs are doing and how they ended, one file each in one folder per repository."""
        return self.root / "runs"

    @property
    def logs(self) -> Path:
        """Log files of runs."""
        return self.root / "logs"


def home_of(folder: Path | None) -> Home:
    """The home named on the command line, else `PERFQUARRY_HOME`, else `./var`.

    Raises:
        InputError: it is a file, or lies in one.
    """
    home = Home(folder.expanduser().resolve()) if folder else Home.default()
    for path in (home.root, *home.root.parents):
        if path.exists() and not path.is_dir():
            raise InputError(
                f"the home {home.root} cannot be a folder, for {path} is a file: name another, such as --home var"
            )
    return home
