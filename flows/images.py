"""`perfquarry image`: the container image of a task's base as a file, its digest in the task."""

from __future__ import annotations

from pathlib import Path

from perfquarry.curation.in_force import made_of
from perfquarry.data.errors import InputError
from perfquarry.data.home import Home
from perfquarry.data.records import Build, Stamp, Task
from perfquarry.data.registry import names
from perfquarry.data.store import TableStore
from perfquarry.flows.names import find_task, repository_of
from perfquarry.flows.output import put
from perfquarry.flows.reports import size
from perfquarry.harness.building.builder import Builder
from perfquarry.harness.contracts import BuiltSide
from perfquarry.harness.images.sides import Images, export_image
from perfquarry.harness.sandbox import choose_sandbox
from perfquarry.harness.settings import BuildSettings


def export(home: Home, task_id: str, to: Path, base_image: str, *, as_json: bool) -> None:
    """Writes the image in which the base of a task runs, as an OCI layout in a tar archive, and notes its digest.

    Raises:
        UnknownTask: no such task.
        InputError: `to` lies in no folder, or what the task was built from is no longer in this home.
        SandboxUnavailable: no engine or no base image.
        EnvironmentFailed: the base cannot be made again here.
    """
    store, task = find_task(home, task_id)
    if not to.parent.is_dir():
        raise InputError(f"cannot write {to}: there is no folder {to.parent}")
    base, _ = reopen(home, store, task)
    image = Images(home, base_image).ensure(base, task.created_at_commit)
    digest = export_image(image.name, to)
    store.append([task.model_copy(update={"image_digest": digest})])
    written = to.stat().st_size
    facts = {"task_id": task.task_id, "image": image.name, "digest": digest, "file": str(to), "bytes": written}
    said = f"{to}: {size(written)}, {len(image.layers)} layers\n{digest} (noted in the task)"
    put({**facts, "layers": image.layers}, [said, f"run it with: docker load -i {to}"], as_json=as_json)


def reopen(home: Home, store: TableStore, task: Task) -> tuple[BuiltSide, BuiltSide]:
    """Base and head of a task of this home, made again where they were removed.

    Raises:
        InputError: what the task was built from is no longer in this home.
        EnvironmentFailed: a side cannot be made again here.
    """
    clone = home.clone(task.repo)
    builds = {row.side: row for row in made_of(store, Build, task.repo, [task])}
    if not builds or not clone.is_dir():
        raise InputError(f"the builds or the clone of {task.task_id} are not in {home.root}: curate it here first")
    repository = repository_of(home, task.repo if task.repo in names() or not task.url else task.url)
    stamp = Stamp.model_validate(builds["base"].model_dump(include=set(Stamp.model_fields)))
    sandbox = choose_sandbox(private=(home.compiled,))
    builder = Builder(home, clone, repository, sandbox, BuildSettings(), stamp)
    return builder.reopen(list(builds.values()))
