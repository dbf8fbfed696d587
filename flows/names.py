"""Which repository a name of the command line means, in a home."""

from __future__ import annotations

from perfquarry.data.errors import UnknownRepository
from perfquarry.data.home import Home
from perfquarry.data.registry import Repository, named, resolve


def repository_of(home: Home, text: str, source: str | None = None) -> Repository:
    """What `data.registry.resolve` says with the recipes of the home, else a name of the user's own.

    Args:
        home: its recipes count, and what was cloned into it under a name is known by it.
        text: name, URL or folder.
        source: where the repository is cloned from, if that was said: then any name will do.

    Raises:
        UnknownRepository: none of these.
        InputError: the recipe has an unknown key or a wrong value.
    """
    try:
        return resolve(text, home.recipes)
    except UnknownRepository:
        own = named(text)
        if own is None or not (source or (home.repositories / f"{own.name}.git").is_dir()):
            raise
        return own
