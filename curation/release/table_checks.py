"""What the gate looks for in tables, texts, sources and task folders; each check gives the problems it finds."""

from __future__ import annotations

import json
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from perfquarry.curation.formats import gso_row, sweperf_row, unit_tests
from perfquarry.curation.harbor import dockerfile
from perfquarry.curation.private import addresses_in, secrets_in
from perfquarry.curation.release import folder as files
from perfquarry.curation.release import sources, task_folders
from perfquarry.curation.release.card import cell
from perfquarry.curation.release.leaks import changed_text, fix_in
from perfquarry.curation.release.opened import Opened
from perfquarry.curation.release.selection import as_task
from perfquarry.data.errors import GitFailed, InputError
from perfquarry.data.records import ReleasedFolder, ReleasedTask, Withdrawn
from perfquarry.harness.grading.task_folder import TESTBED
from perfquarry.harness.trees.clone_git import MissingObjects, git

_RECIPE = ("python", "requirements", "install_commands", "source_roots", "environment_id")
_WANTED = ("task.toml", "instruction.md", "environment/Dockerfile", "tests/test.sh", "tests/task.json",
           "solution/solve.sh", "solution/expert.patch")  # fmt: skip


def checksums(opened: Opened) -> Iterator[str]:
    """Whether every file is what the checksums say."""
    sums = files.read_sums(opened.folder)
    there = [name for name in files.files_of(opened.folder) if name not in files.UNLISTED]
    for name in sorted({*sums, *there}):
        if name not in there:
            yield f"{name} is missing"
        elif name not in sums:
            yield f"{name} is not in {files.SUMS}"
        elif files.digest(opened.folder / name) != sums[name]:
            yield f"{name} is not what was written"


def schema(opened: Opened) -> Iterator[str]:
    """Whether every configuration has its columns, and the card names its file."""
    for name, schema in files.CONFIGURATIONS.items():
        found = opened.tables[name].schema
        fields = list(found)
        # releases from before a column may be null have it, too
        different = [one.name for one in schema if one not in fields and one.with_nullable(False) not in fields]
        extra = [column for column in found.names if column not in schema.names]
        if different or extra or found.names != schema.names:
            yield f"{name}: columns differ: {', '.join(different + extra) or 'their order'}"
    header = _header(opened.folder)
    named = {one["config_name"]: one["data_files"][0]["path"] for one in header.get("configs", [])}
    for name in files.configurations_of(opened.folder):
        if named.get(name) != f"data/{name}/test-*.parquet":
            yield f"README.md: the configuration {name} does not name its file"


def _header(folder: Path) -> dict[str, Any]:
    """YAML header of the card."""
    try:
        text = files.plain(folder / "README.md").read_text(encoding="utf-8")
        header = yaml.safe_load(text.split("---\n")[1])
    except (OSError, IndexError, yaml.YAMLError) as error:
        raise InputError(f"README.md has no YAML header that can be read: {error}") from error
    return header if isinstance(header, dict) else {}


def rows(opened: Opened) -> Iterator[str]:
    """Whether the configurations hold the same tasks and say the same of them."""
    ids = [task.task_id for task in opened.tasks]
    if len(set(ids)) != len(ids):
        yield "a task_id occurs twice"
    tasks = [as_task(task) for task in files.read_tasks(opened.folder)]
    yield from _foreign(opened, "gso", [gso_row(task) for task in tasks], apart=("arch",))
    for name in files.ASIDE:
        found = opened.tables[name]["intent"].to_pylist()
        yield from (f"{name}: a task of class {one}" for one in found if one != name)
    with_tests = [sweperf_row(task) for task in tasks if unit_tests(task)]
    yield from _foreign(opened, "sweperf", with_tests, apart=("duration_changes",))
    for row in opened.tables["sweperf"].to_pylist():
        sessions = json.loads(row["duration_changes"])
        if not sessions or any(set(session) != set(row["efficiency_test"]) for session in sessions):
            yield f"{row['instance_id']}: duration_changes has not the tests of efficiency_test"
    counts = {name: table.num_rows for name, table in opened.tables.items()}
    if counts != opened.manifest.rows:
        yield f"release.json counts {opened.manifest.rows}, there are {counts}"


def _foreign(opened: Opened, name: str, expected: list[dict[str, Any]], apart: tuple[str, ...]) -> Iterator[str]:
    """Whether a configuration in the format of others says what `default` does, columns `apart` aside."""
    rows = opened.tables[name].to_pylist()
    if [row["instance_id"] for row in rows] != [row["instance_id"] for row in expected]:
        yield f"{name}: other tasks than default"
        return
    for row, wanted in zip(rows, expected, strict=True):
        different = [key for key in wanted if key not in apart and row.get(key) != wanted[key]]
        yield from (f"{name}: {row['instance_id']}: {key} is not what default says" for key in different)
    file = opened.folder / "jsonl" / f"{name}.jsonl"
    if [json.loads(line) for line in file.read_bytes().split(b"\n") if line] != rows:
        yield f"jsonl/{name}.jsonl differs from the Parquet"


def figures(opened: Opened) -> Iterator[str]:
    """Whether every workload has its timings, and speedups lie within their intervals."""
    timed = (
        opened.tables["timings"].select(["workload_id", "session", "side"]).group_by(["workload_id", "session", "side"])
    )
    sides: dict[tuple[str, int], set[str]] = defaultdict(set)
    for row in timed.aggregate([]).to_pylist():
        sides[row["workload_id"], row["session"]].add(row["side"])
    whole = {session for session, seen in sides.items() if seen == {"base", "head"}}
    confirmed = {workload for workload, number in whole if number % 2 and (workload, number + 1) in whole}
    for task in opened.tasks:
        if not (task.low <= task.speedup <= task.high and task.speedup > 1 and task.delta > 0):
            yield f"{task.task_id}: its speedup is not above 1 within its interval"
        for one in task.workloads:
            if one.workload_id not in confirmed:
                yield f"{task.task_id}: the timings of {one.node} are not all there"
        if not task.workloads:
            yield f"{task.task_id}: it has no workload"


def leaks(opened: Opened) -> Iterator[str]:
    """Secrets, e-mail addresses, plans, and texts that reveal the fix."""
    for task in opened.tasks:
        yield from (f"{task.task_id}: {what}" for what in _revealed(task))
    for name, text in _texts(opened):
        yield from (f"{name}: seems to hold a secret ({one.kind})" for one in secrets_in(text))
    for name, table in opened.tables.items():
        yield from (f"{name}.{one}: plans are never released" for one in table.column_names if "plan" in one)


def _revealed(task: ReleasedTask) -> Iterator[str]:
    """What the texts of a task reveal and must not."""
    problems = {name: getattr(task, f"problem_{name}") for name in ("gso", "oracle", "realistic", "fuzzy")}
    for name, text in problems.items():
        for what in fix_in(text, task.patch, task.message, task.oracle_targets + task.realistic_targets):
            yield f"the problem text '{name}' reveals the fix: {what}"
    public = [*problems.values(), task.title, task.message, changed_text(task.patch + task.test_patch), *task.warnings]
    yield from (f"e-mail address {address}" for address in addresses_in("\n".join(public)))


def _texts(opened: Opened) -> Iterator[tuple[str, str]]:
    """All text of a release with its place; `sources/` is what upstream publishes."""
    for name in files.files_of(opened.folder):
        if name.endswith((".md", ".json", ".jsonl", ".svg", ".toml")):
            yield name, (opened.folder / name).read_text(encoding="utf-8")
    for name, table in opened.tables.items():
        for column in table.column_names:
            yield f"{name}.{column}", "\n".join(dict.fromkeys(_strings(table[column].to_pylist())))


def _strings(value: Any) -> Iterator[str]:
    """All text within a value; numbers hold no secret."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)
    elif isinstance(value, dict):
        yield from _strings(list(value.values()))


def recipes(opened: Opened) -> Iterator[str]:
    """Whether every base is there, has its recipe, and takes the expert's patch."""
    with tempfile.TemporaryDirectory() as scratch:
        clones: dict[str, Path] = {}
        for task in opened.tasks:
            yield from (
                f"{task.task_id}: {name} is missing in its recipe" for name in _RECIPE if not getattr(task.recipe, name)
            )
            clone = clones.setdefault(task.repo, Path(scratch, f"{task.repo}.git"))
            sources.unpack(sources.pack_of(opened.folder, task.repo), clone)
            try:
                git(clone, "ls-tree", "-r", task.recipe.tree)
                git(clone, "rev-list", "--objects", task.recipe.tree)
            except (MissingObjects, GitFailed):
                yield f"{task.task_id}: sources/{task.repo}.pack does not have all files of its base"
                continue
            if sources.patched(clone, task.recipe.tree, task.patch) in (None, task.recipe.tree):
                yield f"{task.task_id}: its patch does not apply to its base, or changes nothing"


def licences(opened: Opened) -> Iterator[str]:
    """Whether every task has the licence of its base commit, and the card lists it."""
    card = files.plain(opened.folder / "README.md").read_text(encoding="utf-8")
    for task in opened.tasks:
        if not task.licence:
            yield f"{task.task_id}: no licence"
        elif task.licence_url and task.base_commit not in task.licence_url:
            yield f"{task.task_id}: its licence_url is not of the base commit"
        elif f"| {cell(task.codebase)} | {cell(task.licence)} |" not in card:
            yield f"{task.task_id}: its licence is not in the card's table"


def withdrawn(opened: Opened) -> Iterator[str]:
    """Whether what was taken back stays out, and card and changelog say why."""
    rows = files.read(opened.folder, Withdrawn, "withdrawn")
    out = task_folders.in_force(rows)
    yield from (f"{task.task_id}: {out[task.task_id]}" for task in opened.tasks if task.task_id in out)
    for page in ("README.md", "CHANGELOG.md"):
        text = files.plain(opened.folder / page).read_text(encoding="utf-8")
        yield from (
            f"{page} does not say why {row.task_id} was {row.action}" for row in rows if cell(row.reason) not in text
        )


def listed(opened: Opened) -> Iterator[str]:
    """Whether the folders, `manifest.json` and the configuration `tasks` name the same, by the same hashes."""
    folder, rows = opened.folder, opened.folders
    manifest = task_folders.TaskManifest.read(folder)
    if manifest != task_folders.manifest_of(manifest.name, manifest.version, rows, manifest.image_bytes):
        yield "manifest.json and the configuration 'tasks' differ"
    there = (
        {path.name for path in (folder / task_folders.FOLDER).iterdir()}
        if (folder / task_folders.FOLDER).is_dir()
        else set()
    )
    if unknown := there - {row.task_id for row in rows}:
        yield f"tasks/ holds what the manifest does not name: {', '.join(sorted(unknown))}"
    for row in rows:
        if row.path != f"{task_folders.FOLDER}/{row.task_id}" or row.task_id not in there:
            yield f"{row.task_id}: its folder {row.path} is not there"
        elif (found := task_folders.hash_of(folder / row.path)) != row.sha256:
            yield f"{row.task_id}: its folder has the hash {found}, not {row.sha256}: its status '{row.status}' is void"


def folders(opened: Opened) -> Iterator[str]:
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
        for path in sorted(place.rglob("*")):
            if path.is_file() and not task_folders.kept_by_git(path):
                yield f"{path.relative_to(opened.folder)} is no text, or large: clones of the Hub get a pointer instead"
        yield from (f"{row.task_id}: {what}" for what in _folder(place, row, task))


def _folder(place: Path, row: ReleasedFolder, task: ReleasedTask) -> Iterator[str]:
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
