"""The task folders of a release: their hashes, `manifest.json`, what was seen of each, and `registry.json` for Harbor.

A status is bound to the hash of the folder it was seen of: for any other content the folder is unverified.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from perfquarry.curation.release import folder as files
from perfquarry.data.errors import InputError
from perfquarry.data.records import FolderStatus, Record, ReleasedFolder, ReleasedTask, Withdrawn
from perfquarry.data.records.inputs import Folder, Name, Sha256, validation_message

FILE = "manifest.json"
FOLDER = "tasks"
HASH = "cd PATH && find . -type f | LC_ALL=C sort | xargs -d '\\n' sha256sum | sha256sum"
"""What `sha256` of a task folder is, as a command."""

HUB_LARGEST = 10 * 1024**2
"""Bytes of a file from which on the Hub keeps it outside of git, if it is a text."""


class ManifestTask(Record):
    """One task folder in `manifest.json`."""

    task_id: Name
    name: str
    path: Folder
    sha256: Sha256
    status: FolderStatus
    image: str


class TaskManifest(Record):
    """`manifest.json`."""

    name: str
    version: str
    hash: str = HASH
    image_bytes: int = Field(description="Of all images together, each blob counted once.")
    tasks: list[ManifestTask]

    @classmethod
    def read(cls, folder: Path) -> TaskManifest:
        """The manifest of a release.

        Raises:
            InputError: there is none, or it is damaged.
        """
        try:
            return cls.model_validate_json(files.plain(folder / FILE).read_bytes(), extra="ignore")
        except OSError as error:
            raise InputError(f"cannot read {folder / FILE}: {error.strerror or error}") from error
        except ValidationError as error:
            raise InputError(f"{folder / FILE} is damaged: {validation_message(error)}") from error

    def write(self, folder: Path) -> None:
        """Writes it into a release."""
        (folder / FILE).write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")


def manifest_of(name: str, version: str, rows: Iterable[ReleasedFolder], image_bytes: int) -> TaskManifest:
    """The manifest of the rows of the configuration `tasks`."""
    same = set(ManifestTask.model_fields)
    tasks = [ManifestTask.model_validate(row.model_dump(include=same)) for row in rows]
    return TaskManifest(name=name, version=version, image_bytes=image_bytes, tasks=tasks)


def kept_by_git(file: Path) -> bool:
    """Whether a file comes with a clone from the Hub: others come with git-lfs alone, which Harbor does not ask for."""
    if file.stat().st_size > HUB_LARGEST:
        return False
    content = file.read_bytes()
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in content


def hash_of(folder: Path) -> str:
    """SHA-256 of a folder's files with their paths (`HASH`); modes do not count: not every store keeps them.

    Raises:
        InputError: something in it is neither a plain file nor a folder, or has a name that sha256sum would quote.
    """
    lines = []
    for name in sorted(files.files_of(folder), key=os.fsencode):
        if "\n" in name or "\\" in name:
            raise InputError(f"{folder} holds the file {name!r}: a task folder may not")
        lines.append(f"{files.digest(folder / name)}  ./{name}\n")
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def row_of(
    task: ReleasedTask, folder: Path, name: str, image: str, statuses: Mapping[tuple[str, str], FolderStatus]
) -> ReleasedFolder:
    """The row of one task folder.

    `statuses` are what was seen, by task_id and hash of the folder; of another hash it does not count.
    """
    found = hash_of(folder)
    same = set(ReleasedFolder.model_fields) & set(ReleasedTask.model_fields) - {"workloads"}
    return ReleasedFolder.model_validate(
        {
            **{name: getattr(task, name) for name in same},
            "name": name,
            "path": f"{FOLDER}/{task.task_id}",
            "sha256": found,
            "status": statuses.get((task.task_id, found), "unverified"),
            "image": image,
            "workloads": len(task.workloads),
            "hidden_workloads": sum(one.role == "hidden" for one in task.workloads),
        }
    )


def statuses_of(folder: Path | None) -> dict[tuple[str, str], FolderStatus]:
    """What a release says of its task folders, by task_id and hash; none where it is no release with such folders."""
    if folder is None or not (folder / FILE).is_file():
        return {}
    return {(one.task_id, one.sha256): one.status for one in TaskManifest.read(folder).tasks}


def registry(
    name: str, version: str, rows: Sequence[ReleasedFolder | ManifestTask], url: str, commit: str
) -> list[dict[str, Any]]:
    """`registry.json` as Harbor reads it: the datasets of a git repository, each task pinned to a commit.

    Tasks that need repair are not in it. `url` is what git clones from, `commit` holds the folders.
    """
    tasks = [
        {"name": one.name, "git_url": url, "git_commit_id": commit, "path": one.path}
        for one in rows
        if one.status != "needs_repair"
    ]
    number = f"{len(tasks)} tasks" if len(tasks) != 1 else "1 task"
    about = f"{number}: make this code faster, the tests still pass"
    return [{"name": name, "version": version, "description": about, "tasks": tasks}]


def write_registry(folder: Path, url: str, commit: str) -> Path:
    """Writes `registry.json` into a release, for the git repository and the commit that hold it.

    Raises:
        InputError: the folder is no release with task folders, or one of them is not what `manifest.json` says.
    """
    manifest = TaskManifest.read(folder)
    for one in manifest.tasks:
        if hash_of(folder / one.path) != one.sha256:
            raise InputError(f"{folder / one.path} is not as it was written: make the release again")
    text = json.dumps(registry(manifest.name, manifest.version, manifest.tasks, url, commit), indent=2)
    (folder / files.REGISTRY).write_text(text + "\n", encoding="utf-8")
    return folder / files.REGISTRY


def withdrawals(
    asked: Mapping[str, str], replaced: Mapping[str, str], previous: Path | None, version: str
) -> list[Withdrawn]:
    """All that was ever taken back or replaced: what the version before says, and what is asked now.

    `asked` and `replaced` are reasons by task_id; the first stay out, the second come again, otherwise made.

    Raises:
        InputError: the version before has no such task.
    """
    before = files.read(previous, Withdrawn, "withdrawn") if previous else []
    known = {task.task_id for task in files.read_tasks(previous)} if previous else set()
    hashes = dict(statuses_of(previous).keys())
    gone = {row.task_id for row in before}
    for task_id in [*asked, *replaced]:
        if task_id not in known | gone:
            raise InputError(
                f"{task_id} is not in the version before: only what was published is withdrawn or replaced"
            )
    found = [("withdrawn", one, why) for one, why in asked.items()]
    found += [("replaced", one, why) for one, why in replaced.items()]
    return before + [
        Withdrawn.model_validate(
            {"task_id": one, "version": version, "action": action, "reason": why, "sha256": hashes.get(one, "")}
        )
        for action, one, why in found
    ]


def in_force(rows: Iterable[Withdrawn]) -> dict[str, str]:
    """Why a task is to stay out, by task_id: the newest row on it withdraws it."""
    newest = {row.task_id: row for row in rows}
    return {
        task_id: f"withdrawn in {row.version}: {row.reason}"
        for task_id, row in newest.items()
        if row.action == "withdrawn"
    }
