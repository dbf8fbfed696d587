"""`perfquarry export`: accepted tasks as one Parquet file, or as folders for Harbor."""

from __future__ import annotations

from pathlib import Path

from perfquarry.curation import Format, Network
from perfquarry.curation.formats import export as export_tasks
from perfquarry.curation.in_force import accepted_tasks
from perfquarry.curation.names import known
from perfquarry.curation.problems.texts import WRITTEN
from perfquarry.data.errors import InputError
from perfquarry.data.home import Home
from perfquarry.data.records import Setting
from perfquarry.flows.output import put


def export(
    home: Home,
    repo: str,
    to: Path,
    form: Format,
    *,
    as_json: bool,
    network: Network = "no-network",
    base_image: str = "",
    reviews: Path | None = None,
    setting: str = "realistic",
) -> None:
    """Accepted tasks as one Parquet file, or as folders for Harbor."""
    store, name = known(home, repo)
    accepted = accepted_tasks(store, name)
    if form == "harbor":
        from perfquarry.curation.release import harbor_folders  # needs the harness, which the other formats do not
        from perfquarry.curation.release.selection import read_reviews

        decisions = read_reviews(reviews) if reviews else {}
        folders, left_out = harbor_folders.export(
            home, store, accepted, to, base_image, network, decisions, _setting(setting)
        )
        earlier = sorted({file.parent.name for file in to.glob("*/task.toml")} - {folder.name for folder in folders})
        names = [folder.name for folder in folders]
        facts = {"folder": str(to), "format": form, "tasks": names, "left_out": left_out, "earlier": earlier}
        lines = [f"{len(folders)} task(s) written to {to}"]
        lines += [f"left out: {task_id}: {why}" for task_id, why in left_out.items()]
        lines += [f"{to / one} is of an earlier export: remove it, or `harbor run` runs it, too" for one in earlier]
        put(facts, lines, as_json=as_json)
        return
    rows = export_tasks(accepted, to, form)
    others = f"; {len(accepted) - rows} without unit tests left out" if rows < len(accepted) else ""
    put({"file": str(to), "format": form, "rows": rows}, [f"{rows} task(s) written to {to}{others}"], as_json=as_json)


def _setting(name: str) -> Setting:
    if name not in WRITTEN:
        raise InputError(f"unknown setting {name!r}: give one of {', '.join(WRITTEN)}, such as --setting realistic")
    return name
