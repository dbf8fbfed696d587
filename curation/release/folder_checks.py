"""What the gate looks for in the task folders of a release: they are what the manifest and the tables say."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

from perfquarry.curation.harbor import dockerfile
from perfquarry.curation.release import folder as files
from perfquarry.curation.release.opened import Opened
from perfquarry.curation.release.task_folders import FOLDER, TaskManifest, hash_of, manifest_of
from perfquarry.data.errors import InputError
from perfquarry.data.records import ReleasedFolder, ReleasedTask
from perfquarry.harness.grading.task_folder import TESTBED

_WANTED = ("task.toml", "instruction.md", "environment/Dockerfile", "tests/test.sh", "tests/task.json",
           "solution/solve.sh", "solution/expert.patch")  # fmt: skip


def listed(opened: Opened) -> Iterator[str]:
    """Whether the folders, `manifest.json` and the configuration `tasks` name the same, by the same hashes."""
    folder, rows = opened.folder, opened.folders
    manifest = TaskManifest.read(folder)
    if manifest != manifest_of(manifest.name, manifest.version, rows, manifest.image_bytes):
        yield "manifest.json and the configuration 'tasks' differ"
    there = {path.name for path in (folder / FOLDER).iterdir()} if (folder / FOLDER).is_dir() else set()
    if unknown := there - {row.task_id for row in rows}:
        yield f"tasks/ holds what the manifest does not name: {', '.join(sorted(unknown))}"
    for row in rows:
        if row.path != f"{FOLDER}/{row.task_id}" or row.task_id not in there:
            yield f"{row.task_id}: its folder {row.path} is not there"
        elif (found := hash_of(folder / row.path)) != row.sha256:
            yield f"{row.task_id}: its folder has the hash {found}, not {row.sha256}: its status '{row.status}' is void"


def told(opened: Opened) -> Iterator[str]:
    """Whether each folder says what `default` says of its task, and has what consumers ask for."""
    tasks = {task.task_id: task for task in opened.tasks}
    for row in opened.folders:
        task, place = tasks.get(row.task_id), opened.folder / row.path
        if task is None:
            yield f"{row.task_id}: it is not in default"
            continue
        if missing := [name for name in _WANTED if not (place / name).is_file()]:
            yield f"{row.task_id}: these files are missing in its folder: {', '.join(missing)}"
            continue
        yield from (f"{row.task_id}: {what}" for what in _one(place, row, task))


def _one(place: Path, row: ReleasedFolder, task: ReleasedTask) -> Iterator[str]:
    toml = tomllib.loads(_text(place / "task.toml"))
    if toml["task"]["name"] != row.name or row.name.partition("/")[2] != row.task_id:
        yield f"task.toml names it {toml['task']['name']!r}, the table {row.name!r}"
    if toml["environment"].get("docker_image") != row.image:
        yield "task.toml names another image than the table"
    if _text(place / "environment" / "Dockerfile") != dockerfile(row.image):
        yield "environment/Dockerfile is not FROM the image of the table"
    if toml["verifier"].get("environment_mode") != "separate" or toml.get("artifacts") != [TESTBED]:
        yield "task.toml does not ask for a verifier's container of its own"
    facts = toml["metadata"]
    if (facts["base_sha"], facts["licence"]) != (task.base_commit, task.licence):
        yield "task.toml has another base or licence than default"
    if _text(place / "solution" / "expert.patch") != task.patch:
        yield "solution/expert.patch is not the patch of default"
    graded = {one["node"] for one in json.loads(_text(place / "tests" / "task.json"))["workloads"]}
    if graded != {one.node for one in task.workloads}:
        yield "tests/task.json grades other workloads than default has"
    same = (row.licence, row.licence_url, row.speedup, row.machine_id, row.created_at)
    if same != (task.licence, task.licence_url, task.speedup, task.machine_id, task.created_at):
        yield "the table 'tasks' says other facts than default"


def _text(file: Path) -> str:
    try:
        return files.plain(file).read_bytes().decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is no text: {error}") from error
