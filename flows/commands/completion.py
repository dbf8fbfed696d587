"""What a shell may complete: names of repositories and ids of tasks, as the registry and the home know them."""

from __future__ import annotations

from pathlib import Path

import typer

from perfquarry.data.errors import PerfquarryError
from perfquarry.data.home import Home

_REGISTRY = Path(__file__).parents[2] / "data" / "repositories"


def _home(ctx: typer.Context) -> Home:
    named = ctx.params.get("home")
    return Home(Path(str(named)).expanduser().resolve()) if isinstance(named, str | Path) else Home.default()


def repositories(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the registry, of the home's recipes, and of what was cloned into it."""
    home = _home(ctx)
    found = {file.stem for folder in (_REGISTRY, home.recipes) for file in folder.glob("*.toml")}
    found |= {folder.stem for folder in home.repositories.glob("*.git")}
    return sorted(name for name in found if name.startswith(incomplete.lower()))


def tasks(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids of the accepted tasks of the home; by the start of a head's hash, too."""
    from perfquarry.curation.in_force import accepted_tasks
    from perfquarry.curation.names import tables_of
    from perfquarry.data.records import Task

    try:
        store = tables_of(_home(ctx))
        known = [task for repo in store.repositories(Task) for task in accepted_tasks(store, repo)]
    except PerfquarryError:  # a shell has no place for errors
        return []
    whole = [task.task_id for task in known if task.task_id.startswith(incomplete)]
    return sorted(whole or [task.head_sha for task in known if incomplete and task.head_sha.startswith(incomplete)])


def repositories_and_tasks(ctx: typer.Context, incomplete: str) -> list[str]:
    """Both, for commands that take either."""
    return repositories(ctx, incomplete) + tasks(ctx, incomplete)
