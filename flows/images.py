"""`perfquarry image`: the container image of a task's base as a file, its digest in the task."""

from __future__ import annotations

from pathlib import Path

from perfquarry.curation.names import find_task
from perfquarry.curation.reopened import reopen
from perfquarry.data.errors import InputError
from perfquarry.data.figures import size
from perfquarry.data.home import Home
from perfquarry.flows.output import put
from perfquarry.harness.images.sides import Images, export_image


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
