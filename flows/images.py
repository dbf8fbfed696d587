"""`perfquarry image`: the container image of a task's base as a file, its digest in the task."""

from __future__ import annotations

from pathlib import Path

from perfquarry.curation.in_force import made_of
from perfquarry.data.errors import InputError
from perfquarry.data.home import Home
from perfquarry.data.records import Build, Stamp, Task
from perfquarry.data.registry import names
from perfquarry.data.settings import BuildSettings
from perfquarry.data.store import TableStore
from perfquarry.flows.facts import find_task
from perfquarry.flows.names import repository_of
from perfquarry.flows.output import print_json, show
from perfquarry.flows.reports import size
from perfquarry.harness.building.builder import Builder
from perfquarry.harness.contracts import BuiltSide
from perfquarry.harness.images.sides import Images, export_image
from perfquarry.harness.sandbox import choose_sandbox


def export(home: Home, task_id: str, to: Path, base_image: str, *, as_json: bool) -> None:
    """Writes the image in which the base of a task runs, as an OCI layout in a tar archive, and notes its digest."""
    store, task = find_task(home, task_id)
    if not to.parent.is_dir():
        raise InputError(f"cannot write {to}: there is no folder {to.parent}")
    base, _ = reopen(home, store, task)
    image = Images(home, base_image).ensure(base, task.created_at_commit)
    digest = export_image(image.name, to)
    store.append([task.model_copy(update={"image_digest": digest})])
    if as_json:
        facts = {"task_id": task.task_id, "image": image.name, "digest": digest, "file": str(to)}
        print_json({**facts, "bytes": to.stat().st_size, "layers": image.layers})
    else:
        said = f"{to}: {size(to.stat().st_size)}, {len(image.layers)} layers"
        show(said, f"{digest} (noted in the task)", f"run it with: docker load -i {to}")


def reopen(home: Home, store: TableStore, task: Task) -> tuple[BuiltSide, BuiltSide]:
    """Base and head of a task of this home, made again where they were removed.

    Raises:
        InputError: what the task was built from is no longer in this home.
        EnvironmentFailed: a side cannot be made again here.
    """
    clone = home.repositories / f"{task.repo}.git"
    builds = {row.side: row for row in made_of(store, Build, task.repo, [task])}
    if not builds or not clone.is_dir():
        raise InputError(f"the builds or the clone of {task.task_id} are not in {home.root}: curate it here first")
    repository = repository_of(home, task.repo if task.repo in names() or not task.url else task.url)
    stamp = Stamp.model_validate(builds["base"].model_dump(include=set(Stamp.model_fields)))
    sandbox = choose_sandbox(private=(home.compiled,))
    builder = Builder(home, clone, repository, sandbox, BuildSettings(), stamp)
    return builder.reopen(list(builds.values()))
