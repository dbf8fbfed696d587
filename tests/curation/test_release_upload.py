"""Uploads to a server that speaks the Hub's API, and loading from it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hub_server import TOKEN, Hub, hub_server
from release_parts import sample_release

from perfquarry.curation.release import folder as files
from perfquarry.curation.release.manifest import Manifest
from tests.registry_server import registry_server

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def hub() -> Iterator[Hub]:
    with hub_server() as running:
        yield running


@pytest.fixture
def run(hub: Hub, tmp_path: Path, forked: list[str]) -> Run:
    """Runs a program with the hub's address and token: huggingface_hub reads both when it is imported."""

    def started(
        *arguments: str, code: int = 0, token: str = TOKEN, url: str = hub.url, perfquarry: bool = True
    ) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ, "HF_ENDPOINT": url, "HF_TOKEN": token, "HF_HOME": str(tmp_path / "hf"),
            "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "NO_PROXY": "127.0.0.1",
        }  # fmt: skip
        done = subprocess.run(
            [*(forked if perfquarry else [sys.executable]), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return started


def upload(run: Run, folder: Path, *options: str, **more: object) -> subprocess.CompletedProcess[str]:
    return run("release", "upload", str(folder), "--to", "me/tasks", *options, **more)


LOAD = """
import json, sys
from datasets import load_dataset
print(json.dumps([load_dataset("me/tasks", name, split="test").column_names for name in sys.argv[1:]]))
"""


def test_an_upload_goes_on_where_it_broke_off_and_is_loaded_back(hub: Hub, run: Run, release: Path) -> None:
    plan = json.loads(upload(run, release, "--dry-run", "--json").stdout)
    assert hub.repositories == {} and set(plan["files"]) == set(files.files_of(release)) and not plan["commit"]

    hub.break_after = 1
    broken = upload(run, release, code=1)
    assert "run the same command again" in broken.stderr and TOKEN not in broken.stderr + broken.stdout
    assert hub.repositories["me/tasks"].files == {}, "nothing is seen before it is whole"
    assert hub.puts
    hub.break_after = None
    plan = json.loads(upload(run, release, "--json").stdout)
    repository = hub.repositories["me/tasks"]
    assert {name: (release / name).read_bytes() for name in files.files_of(release)} == repository.files
    assert len(hub.puts) == len(set(hub.puts)), "nothing is sent twice"
    assert repository.messages == ["sample-tasks 0.1.0"]
    assert repository.tags == {"v0.1.0": repository.commits[-1]} and repository.commits[-1] in plan["commit"]

    named = files.configurations_of(release)
    columns = json.loads(run("-c", LOAD, *named, perfquarry=False).stdout)
    assert columns == [files.CONFIGURATIONS[name].names for name in named]

    assert "nothing was sent" in upload(run, release).stdout
    assert len(repository.commits) == 2


@pytest.fixture
def with_folders(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "registry").mkdir()
    with registry_server(tmp_path / "registry") as registry:
        yield sample_release(tmp_path, registry=registry)


def test_the_registry_is_pinned_to_the_commit_whose_files_were_compared(hub: Hub, run: Run, with_folders: Path) -> None:
    plan = json.loads(upload(run, with_folders, "--json").stdout)
    repository = hub.repositories["me/tasks"]
    staged, pinned = repository.commits[1:]
    assert plan["staged"] == staged and repository.tags == {"v0.1.0": pinned}
    assert files.REGISTRY not in repository.past[staged].files
    [dataset] = json.loads(repository.files[files.REGISTRY])
    [task] = dataset["tasks"]
    assert (task["git_url"], task["git_commit_id"]) == (f"{hub.url}/datasets/me/tasks", staged)
    assert f"{task['path']}/task.toml" in repository.past[staged].files
    assert "nothing was sent" in upload(run, with_folders).stdout and repository.commits[1:] == [staged, pinned]


def test_a_file_that_arrives_otherwise_is_not_published(hub: Hub, run: Run, with_folders: Path) -> None:
    hub.corrupt = "SCHEMA.md"
    said = upload(run, with_folders, code=1).stderr
    repository = hub.repositories["me/tasks"]
    assert "does not hold" in said and "SCHEMA.md" in said
    assert files.REGISTRY not in repository.files and repository.tags == {}
    hub.corrupt = ""
    assert "done" in upload(run, with_folders).stdout
    assert files.REGISTRY in repository.files and list(repository.tags) == ["v0.1.0"]


def test_an_upload_that_broke_off_before_the_pin_goes_on(hub: Hub, run: Run, with_folders: Path) -> None:
    upload(run, with_folders)
    repository = hub.repositories["me/tasks"]
    del repository.files[files.REGISTRY]
    repository.tags.clear()
    staged = repository.commits[-1]
    upload(run, with_folders)
    assert len(repository.commits) == 4 and repository.tags == {"v0.1.0": repository.commits[-1]}
    [dataset] = json.loads(repository.files[files.REGISTRY])
    assert dataset["tasks"][0]["git_commit_id"] == staged


def test_a_version_is_never_replaced_and_the_next_one_removes_what_is_gone(hub: Hub, run: Run, tmp_path: Path) -> None:
    folder = sample_release(tmp_path)
    (folder / "plots" / "old.svg").write_text("<svg/>")
    files.write_sums(folder)
    upload(run, folder)
    (folder / "plots" / "old.svg").unlink()
    files.write_sums(folder)
    assert "raise the version" in upload(run, folder, code=2).stderr
    Manifest.read(folder).model_copy(update={"version": "0.2.0"}).write(folder)
    files.write_sums(folder)
    upload(run, folder)
    repository = hub.repositories["me/tasks"]
    assert "plots/old.svg" not in repository.files and list(repository.tags) == ["v0.1.0", "v0.2.0"]


EDIT = """
from huggingface_hub import HfApi
card = b"---\\nlicense: mit\\n---\\nEdited on the Hub."
HfApi().upload_file(path_or_fileobj=card, path_in_repo="README.md", repo_id="me/tasks", repo_type="dataset")
"""


def test_a_version_is_compared_with_its_tag_not_with_what_came_after(hub: Hub, run: Run, tmp_path: Path) -> None:
    first = sample_release(tmp_path)
    second = Path(shutil.copytree(first, tmp_path / "second"))
    Manifest.read(second).model_copy(update={"version": "0.2.0"}).write(second)
    files.write_sums(second)
    upload(run, first)
    upload(run, second)
    run("-c", EDIT, perfquarry=False)
    repository = hub.repositories["me/tasks"]
    commits = list(repository.commits)
    for folder in (first, second):
        assert "nothing was sent" in upload(run, folder).stdout
    assert repository.commits == commits
    (first / "SCHEMA.md").write_text("other")
    files.write_sums(first)
    assert "raise the version" in upload(run, first, "--dry-run", code=2).stderr


def test_no_server_is_one_sentence(run: Run, release: Path) -> None:
    with socket.socket() as taken:  # bound and not listening: refused
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        words = ["release", "upload", str(release), "--to", "a/b", "--dry-run"]
        said = run(*words, code=1, url=address).stderr
    assert f"uploading {release} to a/b at {address}" in said and "refused" in said and "Traceback" not in said


def test_files_that_are_no_part_of_the_release_are_not_sent(hub: Hub, run: Run, tmp_path: Path) -> None:
    folder = sample_release(tmp_path)
    (folder / "gate.json").write_text("{}")
    (folder / "data" / ".DS_Store").write_text("")
    assert "take data/.DS_Store, gate.json out" in upload(run, folder, code=2).stderr
    assert hub.repositories == {}


def test_what_is_refused_is_reported_without_the_token(hub: Hub, run: Run, release: Path, tmp_path: Path) -> None:
    said = upload(run, release, code=1, token="hf_" + "x" * 34).stderr
    assert "InvalidToken" in said and "hf_x" not in said and "Traceback" not in said
    said = run("release", "upload", str(release), "--to", "a/b/c", code=2).stderr
    assert "a/b/c" in said
    broken = sample_release(tmp_path)
    (broken / "README.md").write_text("no header")
    assert "not as it was written" in upload(run, broken, code=2).stderr
    assert hub.repositories == {}
