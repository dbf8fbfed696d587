"""Which home a command is about."""

from __future__ import annotations

from pathlib import Path

from perfquarry.data.errors import InputError
from perfquarry.data.home import Home


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
