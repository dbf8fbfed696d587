"""`perfquarry export` and `image`: accepted tasks as files, as folders for Harbor, and the base of one as an image."""

from __future__ import annotations

from pathlib import Path

from perfquarry.curation import Format, Network
from perfquarry.curation.formats import export as export_tasks
from perfquarry.curation.in_force import accepted_tasks
from perfquarry.curation.names import find_task, known
from perfquarry.curation.problems.texts import WRITTEN
from perfquarry.data.errors import InputError
from perfquarry.data.figures import size
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


def image(home: Home, task_id: str, to: Path, base_image: str, *, as_json: bool) -> None:
    """Writes the image in which the base of a task runs, as an OCI layout in a tar archive, and notes its digest.

    Raises:
        UnknownTask: no such task.
        InputError: `to` lies in no folder, or what the task was built from is no longer in this home.
        SandboxUnavailable: no engine or no base image.
        EnvironmentFailed: the base cannot be made again here.
    """
    from perfquarry.curation.reopened import reopen
    from perfquarry.harness.images.sides import Images, export_image

    store, task = find_task(home, task_id)
    if not to.parent.is_dir():
        raise InputError(f"cannot write {to}: there is no folder {to.parent}")
    base, _ = reopen(home, store, task)
    made = Images(home, base_image).ensure(base, task.created_at_commit)
    digest = export_image(made.name, to)
    store.append([task.model_copy(update={"image_digest": digest})])
    written = to.stat().st_size
    facts = {"task_id": task.task_id, "image": made.name, "digest": digest, "file": str(to), "bytes": written}
    said = f"{to}: {size(written)}, {len(made.layers)} layers\n{digest} (noted in the task)"
    put({**facts, "layers": made.layers}, [said, f"run it with: docker load -i {to}"], as_json=as_json)
