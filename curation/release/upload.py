"""A release on the Hugging Face Hub, or any server that speaks its API (`HF_ENDPOINT`)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.hf_api import RepoFile
from pydantic import Field

from perfquarry.curation.release import folder as files
from perfquarry.curation.release import task_folders
from perfquarry.curation.release.manifest import Manifest
from perfquarry.data.errors import HubFailed, InputError, PerfquarryError
from perfquarry.data.records import Record

_KIND = "dataset"
_NOT_OURS = frozenset({".gitattributes", files.REGISTRY})
"""Files of the Hub that are no part of the folder."""


class UploadPlan(Record):
    """What an upload does, or would do."""

    endpoint: str
    repo_id: str
    tag: str
    files: dict[str, int] = Field(description="Bytes of each file to upload.")
    unchanged: list[str] = Field(description="Files that the Hub has already.")
    removed: list[str] = Field(description="Files of the Hub that the release has no more.")
    staged: str = Field(default="", description="The commit that holds the files, every one of them compared.")
    commit: str = Field(default="", description="Address of the last commit; empty: nothing was sent.")


def upload(folder: Path, repo_id: str, *, dry_run: bool = False, private: bool = False) -> UploadPlan:
    """Makes the repository's files those of a release, with the version as its tag.

    One commit stages the files. Then the Hub is asked what it has at that commit, and every file is compared with ours.
    Only then `registry.json`, through which programs find the task folders, is pinned to that commit, and the tag is
    set. Large files go first and by their content: what an upload that broke off has sent already is not sent again.
    The token is `huggingface_hub`'s own (HF_TOKEN, or its file). `private` is for a repository that does not exist yet.

    Raises:
        InputError: the folder is no release, not as it was written or holds more, the name is not valid, or the tag is
            there with other files.
        HubFailed: the Hub refused or could not be reached, or has other files than were sent.
    """
    manifest = Manifest.read(folder)
    digests = files.read_sums(folder)
    if wrong := [name for name, value in digests.items() if not _is(folder / name, value)]:
        raise InputError(f"{folder} is not as it was written ({wrong[0]}): make the release again")
    if foreign := [name for name in files.files_of(folder) if name not in digests and name not in files.UNLISTED]:
        raise InputError(f"{folder} holds what is no part of the release: take {', '.join(foreign)} out of it")
    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
    tag = f"v{manifest.version}"
    with _translating_errors(f"uploading {folder} to {repo_id} at {api.endpoint}"):
        tagged = tag in _tags(api, repo_id)
        plan = _plan(api, folder, repo_id, tag, digests, tag if tagged else "main")
        if tagged and (plan.files or plan.removed):
            raise InputError(f"{repo_id} has {tag} already, with other files: raise the version")
        if tagged or dry_run:
            return plan
        api.create_repo(repo_id, repo_type=_KIND, private=private, exist_ok=True)
        title = f"{manifest.name} {manifest.version}"
        if plan.files or plan.removed:
            staged = api.upload_folder(
                repo_id=repo_id,
                repo_type=_KIND,
                folder_path=folder,
                commit_message=title,
                ignore_patterns=files.REGISTRY,
                delete_patterns=plan.removed or None,
            ).oid
        else:  # an earlier upload broke off after its first commit
            staged = str(api.dataset_info(repo_id, revision="main").sha)
        _compare(api, folder, repo_id, staged, [*digests, files.SUMS])
        commit = _pin(api, folder, repo_id, staged, title) or f"{api.endpoint}/datasets/{repo_id}/commit/{staged}"
        api.create_tag(repo_id, tag=tag, repo_type=_KIND, revision=commit.rpartition("/")[2])
    return plan.model_copy(update={"staged": staged, "commit": commit})


def _compare(api: HfApi, folder: Path, repo_id: str, revision: str, names: list[str]) -> None:
    """Raises HubFailed unless the Hub has exactly our files at a revision."""
    there = _there(api, repo_id, revision)
    wrong = [name for name in names if name not in there or there[name] != _id_of(folder / name, there[name])]
    wrong += sorted(set(there) - {*names, *_NOT_OURS})
    if wrong:
        raise HubFailed(
            f"{repo_id} does not hold at {revision} what was sent ({', '.join(wrong[:3])}, {len(wrong)} in all): "
            f"{files.REGISTRY} and the tag were not written"
        )


def _pin(api: HfApi, folder: Path, repo_id: str, staged: str, title: str) -> str:
    """Writes `registry.json` for the staged commit; the address of the commit that has it, empty without folders."""
    if not (folder / task_folders.FILE).is_file():
        return ""
    manifest = task_folders.TaskManifest.read(folder)
    datasets = task_folders.registry(
        manifest.name, manifest.version, manifest.tasks, f"{api.endpoint}/datasets/{repo_id}", staged
    )
    commit = api.upload_file(
        path_or_fileobj=(json.dumps(datasets, indent=2) + "\n").encode(),
        path_in_repo=files.REGISTRY,
        repo_id=repo_id,
        repo_type=_KIND,
        commit_message=f"{title}: {files.REGISTRY} pinned to {staged[:10]}",
    )
    return str(commit.commit_url)


def _plan(api: HfApi, folder: Path, repo_id: str, tag: str, digests: dict[str, str], revision: str) -> UploadPlan:
    """Compares the release with a revision."""
    there = _there(api, repo_id, revision)
    mine = [*digests, files.SUMS]
    unchanged = [name for name in mine if name in there and there[name] == _id_of(folder / name, there[name])]
    return UploadPlan(
        endpoint=api.endpoint,
        repo_id=repo_id,
        tag=tag,
        files={name: (folder / name).stat().st_size for name in mine if name not in unchanged},
        unchanged=unchanged,
        removed=[name for name in there if name not in mine and name not in _NOT_OURS],
    )


def _there(api: HfApi, repo_id: str, revision: str) -> dict[str, str]:
    """The Hub's files: SHA-256 of large ones, git's blob id of others."""
    try:
        entries = list(api.list_repo_tree(repo_id, repo_type=_KIND, recursive=True, revision=revision))
    except (RepositoryNotFoundError, RevisionNotFoundError):
        return {}
    found = [entry for entry in entries if isinstance(entry, RepoFile)]
    return {entry.path: entry.lfs.sha256 if entry.lfs else entry.blob_id for entry in found}


def _id_of(file: Path, like: str) -> str:
    """The id of a file of the same kind as another id."""
    if len(like) == len(files.digest(file)):
        return files.digest(file)
    content = file.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _tags(api: HfApi, repo_id: str) -> set[str]:
    try:
        return {tag.name for tag in api.list_repo_refs(repo_id, repo_type=_KIND).tags}
    except (RepositoryNotFoundError, RevisionNotFoundError):
        return set()


def _is(file: Path, digest: str) -> bool:
    return file.is_file() and files.digest(file) == digest


@contextmanager
def _translating_errors(doing: str) -> Iterator[None]:
    """Translates the library's errors; their texts hold addresses and request ids, never the token."""
    try:
        yield
    except PerfquarryError:
        raise
    except HFValidationError as error:
        raise InputError(f"{doing}: {error}") from error
    except HfHubHTTPError as error:
        raise HubFailed(f"{doing}: {error.server_message or error}; run the same command again to go on") from error
    except Exception as error:  # a lost connection, in whichever HTTP library the Hub's has; the card's header
        cause = error.__cause__ or error
        hint = "set HF_HUB_DISABLE_XET=1 for a server without Xet" if "xet-" in str(cause) else ""
        raise HubFailed(f"{doing}: {error} ({cause}); {hint or 'run the same command again to go on'}") from error
