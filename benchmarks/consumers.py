"""Whether the programs of others load one release folder: Harbor, verifiers, NeMo Gym, inspect_harbor, `datasets`.

    python -m benchmarks.consumers RELEASE NAME=PYTHON [...] [gso=CLONE] [sweperf=CLONE]

NAME is harbor, verifiers, nemo-gym or inspect-harbor, PYTHON the interpreter of an environment that has it; a name may
come more than once. Each interpreter runs a short script that loads the release with the program's own loader; what it
read is compared with the release here. `datasets` is that of this interpreter. The clones are GSO's and SWE-Perf's
repositories, whose loaders are run and not kept. Nothing leaves this machine: where a program loads from git, `git
daemon` serves the task folders. Writes the section Consumers of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.consumer_scripts import DATASETS, GSO, HARBOR, INSPECT, NEMO, PRELUDE, SWEPERF, VERIFIERS
from benchmarks.report import replace_section, table
from perfquarry.curation.release import task_folders
from perfquarry.curation.release.folder import configurations_of, parquet_of, read_table
from perfquarry.data.errors import InputError

Facts = dict[str, str]
"""What is compared of one task or configuration."""

POINTER = b"version https://git-lfs.github.com/spec/v1\n"
"""How a file begins that git-lfs would have to fetch."""
PATIENCE = 1800
"""Seconds for one program."""

SCRIPTS = {"harbor": HARBOR, "verifiers": VERIFIERS, "inspect-harbor": INSPECT, "nemo-gym": NEMO, "datasets": DATASETS}
CLONES = {"gso": ("GSO", "src/gso", GSO), "sweperf": ("SWE-Perf", "evaluation", SWEPERF)}


@dataclass(frozen=True)
class Program:
    """One program to start."""

    name: str
    python: str
    script: str
    clone: str = ""
    version: str = ""


def main() -> None:
    """Starts all programs, and writes the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("release", type=Path)
    parser.add_argument("programs", nargs="*", metavar="NAME=PYTHON|gso=CLONE|sweperf=CLONE")
    options = parser.parse_args()
    release = options.release.resolve()
    with tempfile.TemporaryDirectory(prefix="consumers-") as folder, _served(Path(folder) / "git") as url:
        programs = [_program(one, Path(folder)) for one in options.programs]
        if all(one.name != "datasets" for one in programs):
            programs.append(Program("datasets", sys.executable, DATASETS))
        place = _place(release, Path(folder) / "git", url)
        text = section(release, [row for one in programs for row in _rows(one, place, release, Path(folder))])
    replace_section("Consumers", text)
    print(text)


def section(release: Path, rows: Sequence[Sequence[str]]) -> str:
    """The table, with what it means."""
    manifest = task_folders.TaskManifest.read(release)
    kept = Counter(Path(name).name for name in _in_lfs(release))
    names = ", ".join(f"{name} ({number})" for name, number in sorted(kept.items())) or "none"
    return "\n".join(
        [
            f"{manifest.name} {manifest.version}, {len(manifest.tasks)} task folders; each program's own loader, in "
            "its own environment. What a program read is compared with the release's files and `manifest.json`; the "
            "hash is that of the folder which it took from git. Only loading is tested, nothing is graded.",
            "",
            table(("program", "loader", "loaded", "equal to the release, or why not"), rows),
            "",
            f"Files of task folders that the Hub keeps in LFS, where clones without git-lfs have pointers: {names}.",
        ]
    )


def _program(word: str, folder: Path) -> Program:
    name, _, path = word.partition("=")
    where = str(Path(path).absolute())  # not resolved: the link tells Python its environment
    if name in SCRIPTS:
        return Program(name, where, SCRIPTS[name])
    if name not in CLONES:
        raise SystemExit(f"{name} is none of {', '.join((*SCRIPTS, *CLONES))}")
    title, part, script = CLONES[name]
    copy = folder / name
    copy.mkdir()
    archive = subprocess.run(["git", "-C", where, "archive", "HEAD", part], capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", str(copy)], input=archive.stdout, check=True)
    return Program(name, sys.executable, script, str(copy), f"{title} {_git(Path(where), 'rev-parse', 'HEAD')[:7]}")


def _rows(program: Program, place: Mapping[str, str], release: Path, folder: Path) -> list[list[str]]:
    """Starts a program's interpreter; a row for each of its loaders."""
    work = Path(tempfile.mkdtemp(prefix=f"{program.name}-", dir=folder))
    answer = work / "answer.json"
    words = json.dumps({**place, "clone": program.clone, "answer": str(answer)})
    command = [program.python, "-I", "-c", PRELUDE + program.script, words]
    errors = work / "errors.txt"
    with errors.open("wb") as file:
        try:
            subprocess.run(command, cwd=work, env=_environment(work), stdout=file, stderr=file, timeout=PATIENCE)
        except subprocess.TimeoutExpired as error:
            file.write(str(error).encode())
    if not answer.is_file():
        return [[program.version or program.name, "", "none", _short(errors.read_text(errors="replace"))]]
    said = json.loads(answer.read_text(encoding="utf-8"))
    title = said["program"] or program.version
    return [[title, route["through"], *_compared(route, release)] for route in said["routes"]]


def _compared(route: Mapping[str, Any], release: Path) -> tuple[str, str]:
    """How many tasks are as released, and by what; or why not."""
    expected = _expected(release, route["kind"])
    unit = " configurations" if route["kind"] == "configurations" else ""
    if "error" in route:
        return f"0 of {len(expected)}{unit}", _short(route["error"])
    found = {name: _facts(facts, release) for name, facts in route["found"].items()}
    wrong = [f"{name}: not loaded" for name in expected.keys() - found.keys()]
    wrong += [f"{name}: not in the release" for name in found.keys() - expected.keys()]
    for name in expected.keys() & found.keys():
        other = [key for key, value in found[name].items() if expected[name][key] != value]
        if "hash" in other:
            wrong.append(f"{name}: {_difference(Path(route['found'][name]['folder']), _folder(release, name))}")
        else:
            wrong += [f"{name}: {key} is {found[name][key]}" for key in other]
    good = sum(name in found and found[name].items() <= expected[name].items() for name in expected)
    compared = ", ".join(dict.fromkeys(key for facts in found.values() for key in facts))
    return f"{good} of {len(expected)}{unit}", _short(min(wrong) if wrong else compared)


def _facts(facts: Mapping[str, str | None], release: Path) -> Facts:
    """What is compared; of a folder that is not the release's own, its hash."""
    found = {key: (value or "").strip() for key, value in facts.items() if key != "folder"}
    folder = Path(facts.get("folder") or release)
    if not folder.resolve().is_relative_to(release):
        try:
            found["hash"] = task_folders.hash_of(folder)
        except InputError as error:
            found["hash"] = str(error)
    return found


def _difference(folder: Path, released: Path) -> str:
    """The first file that differs."""
    names = {file.relative_to(one) for one in (folder, released) for file in one.rglob("*") if file.is_file()}
    for name in sorted(names):
        mine, theirs = ((one / name).read_bytes() if (one / name).is_file() else None for one in (released, folder))
        if mine != theirs:
            return f"{name} is {_what(theirs)}"
    return "other kinds of files"


def _what(data: bytes | None) -> str:
    if data is None:
        return "missing"
    return "a pointer of git-lfs" if data.startswith(POINTER) else "not the release's"


def _folder(release: Path, task_id: str) -> Path:
    return release / task_folders.FOLDER / task_id


def _expected(release: Path, kind: str) -> dict[str, Facts]:
    if kind == "configurations":
        files = {name: parquet_of(release, name) for name in configurations_of(release)}
        return {name: {"rows": str(pq.read_metadata(file).num_rows)} for name, file in files.items()}
    if kind in CLONES:
        fields = {"gso": {"script": "prob_script"}, "sweperf": {"problem": "problem_statement_oracle"}}[kind]
        fields |= {"base": "base_commit"}
        rows = read_table(release, kind).to_pylist()
        return {row["instance_id"]: {key: row[name].strip() for key, name in fields.items()} for row in rows}
    return {
        one.task_id: {
            "instruction": (release / one.path / "instruction.md").read_text(encoding="utf-8").strip(),
            "image": one.image,
            "hash": one.sha256,
            "lint": "clean",
        }
        for one in task_folders.TaskManifest.read(release).tasks
    }


def _place(release: Path, folder: Path, url: str) -> dict[str, str]:
    """Where the programs find the release: its folder, and two repositories of its task folders."""
    manifest = task_folders.TaskManifest.read(release)
    plain, hub = folder / "plain" / manifest.name, folder / "hub" / manifest.name
    for copy in (plain, hub):
        shutil.copytree(release / task_folders.FOLDER, copy / task_folders.FOLDER)
    for name in _in_lfs(release):
        data = (hub / name).read_bytes()
        rest = f"oid sha256:{hashlib.sha256(data).hexdigest()}\nsize {len(data)}\n"
        (hub / name).write_bytes(POINTER + rest.encode())
        with (hub / ".gitattributes").open("a", encoding="utf-8") as attributes:
            attributes.write(f"{name} filter=lfs diff=lfs merge=lfs -text\n")
    urls = {copy: f"{url}/{copy.relative_to(folder).as_posix()}" for copy in (plain, hub)}
    for copy, address in urls.items():
        _commit(copy, manifest, address)
    return {
        "release": str(release),
        "tasks": str(release / task_folders.FOLDER),
        "name": manifest.name,
        "version": manifest.version,
        "registry": str(plain / "registry.json"),
        "url": urls[plain],
        "hub": urls[hub],
    }


def _commit(folder: Path, manifest: task_folders.TaskManifest, url: str) -> None:
    """Makes a repository as the upload does: one commit for the files, one for the registry that names it.

    The registry names all tasks, also those that need repair.
    """
    author = ("-c", "user.name=benchmark", "-c", "user.email=benchmark@localhost")
    _git(folder, "init", "--quiet")
    _git(folder, "config", "uploadpack.allowFilter", "true")
    _git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    _git(folder, "add", "--all", "--force")
    _git(folder, *author, "commit", "--quiet", "--message", "files")
    staged = _git(folder, "rev-parse", "HEAD")
    tasks = [one.model_copy(update={"status": "unverified"}) for one in manifest.tasks]
    datasets = task_folders.registry(manifest.name, manifest.version, tasks, url, staged)
    (folder / "registry.json").write_text(json.dumps(datasets), encoding="utf-8")
    _git(folder, "add", "registry.json")
    _git(folder, *author, "commit", "--quiet", "--message", "registry")


def _in_lfs(release: Path) -> list[str]:
    """The files of the task folders that the Hub keeps in LFS: large ones, and those that are no text."""
    files = sorted(file for file in (release / task_folders.FOLDER).rglob("*") if file.is_file())
    return [file.relative_to(release).as_posix() for file in files if not task_folders.kept_by_git(file)]


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """Serves the repositories of a folder; their address."""
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["git", "daemon", "--listen=127.0.0.1", f"--port={port}", "--reuseaddr", "--export-all"]
    command += [f"--base-path={folder}", str(folder)]
    daemon = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=_environment(folder), start_new_session=True)
    try:
        _wait_for(port)
        yield f"git://127.0.0.1:{port}"
    finally:
        os.killpg(daemon.pid, signal.SIGTERM)
        daemon.wait()


def _wait_for(port: int) -> None:
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("git daemon does not answer")


def _git(folder: Path, *words: str) -> str:
    ran = subprocess.run(
        ["git", "-C", str(folder), *words], env=_environment(folder), capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()


def _environment(home: Path) -> dict[str, str]:
    """Little of ours, caches in `home`, and nothing is reported to anyone."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "HARBOR_TELEMETRY": "0",
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
    }


def _short(text: str) -> str:
    """The last line that says something, for a cell."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[-1] if lines else "it said nothing").replace("|", "\\|")[:240]


if __name__ == "__main__":
    main()
