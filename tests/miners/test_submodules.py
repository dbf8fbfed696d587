"""Submodules of a remote repository: from a real git server, with addresses that must not be followed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from git_repository import Repository

from perfquarry.data.home import Home
from perfquarry.harness.trees.checkouts import Checkouts
from perfquarry.miners.clone import ensure_clone
from perfquarry.miners.submodules import fetch_submodules
from tests.loopback import serve


class GitServer(BaseHTTPRequestHandler):
    """git's own program for HTTP, behind Python's server."""

    root = Path()
    asked: list[str]

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, body: bytes) -> None:
        url = urlsplit(self.path)
        self.asked.append(url.path)
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REQUEST_METHOD": self.command,
            "PATH_INFO": url.path,
            "QUERY_STRING": url.query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }
        said = subprocess.run(
            ["git", "http-backend"], input=body, env=environment, capture_output=True, check=False
        ).stdout
        head, _, content = said.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines() if ": " in line)
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def asked() -> list[str]:
    return []


@pytest.fixture
def server(tmp_path: Path, asked: list[str]) -> Iterator[str]:
    with serve(GitServer, root=tmp_path / "served", asked=asked) as address:
        yield address


def made(tmp_path: Path, name: str, files: dict[str, str], modules: dict[str, tuple[str, str]]) -> str:
    """The last commit but one of a served repository with these submodules, {path: (address, commit)}."""
    repository = Repository(tmp_path / "served" / name)
    text = "".join(f'[submodule "{path}"]\n\tpath = {path}\n\turl = {url}\n' for path, (url, _) in modules.items())
    repository.commit("files", files | ({".gitmodules": text} if modules else {}))
    for path, (_, commit) in modules.items():
        repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},{path}")
    repository.git("commit", "-q", "-m", "submodules", "--allow-empty")
    head = repository.head()
    repository.commit("a later one", dict.fromkeys(files, "later"))
    return head


def test_they_come_with_those_of_their_own_and_are_checked_out(tmp_path: Path, server: str, asked: list[str]) -> None:
    inner = made(tmp_path, "inner", {"inner.c": "int i;\n"}, {})
    outer = made(tmp_path, "outer", {"outer.c": "int o;\n"}, {"deep": ("../../inner/.git", inner)})
    head = made(tmp_path, "main", {"a.py": "1\n"}, {"vendor/outer": (f"{server}/outer/.git", outer)})
    source = f"{server}/main/.git"
    clone = ensure_clone(source, tmp_path / "clone.git")
    assert fetch_submodules(source, clone, (head,)) == []
    tree = Checkouts(Home(tmp_path / "home"), clone, "main").tree(head)
    assert isinstance(tree, Path)
    assert (tree / "vendor/outer/outer.c").read_text() == "int o;\n"
    assert (tree / "vendor/outer/deep/inner.c").read_text() == "int i;\n"
    before = len(asked)
    assert fetch_submodules(source, clone, (head,)) == []
    assert len(asked) == before, "what is there is not asked for"


def test_what_cannot_or_must_not_be_fetched_stays_away(tmp_path: Path, server: str) -> None:
    secret = made(tmp_path, "secret", {"key": "k"}, {})
    made(tmp_path, "other", {"a": "b"}, {})
    modules = {
        "file": (f"file://{tmp_path}/served/secret", secret),
        "path": (f"{tmp_path}/served/secret", secret),
        "helper": (f"ext::sh -c touch% {tmp_path}/witness", secret),
        "ssh": ("ssh://me:pass@127.0.0.1:1/secret", secret),
        "gone": (f"{server}/gone", secret),
        "unknown": (f"{server}/other/.git", "1" * 40),
    }
    head = made(tmp_path, "main", {"a.py": "1\n"}, modules)
    source = f"{server}/main/.git"
    clone = ensure_clone(source, tmp_path / "clone.git")
    failed = {line.split(":")[0]: line for line in fetch_submodules(source, clone, (head,))}
    assert set(failed) == {f"submodule {name}" for name in modules}
    assert "no https address" in failed["submodule file"] and "pass@" not in failed["submodule ssh"]
    assert not (tmp_path / "witness").exists()
    tree = Checkouts(Home(tmp_path / "home"), clone, "main").tree(head)
    assert isinstance(tree, Path)
    assert all(list((tree / name).iterdir()) == [] for name in modules)


def test_of_a_local_source_nothing_is_fetched(tmp_path: Path, server: str, asked: list[str]) -> None:
    inner = made(tmp_path, "inner", {"inner.c": "int i;\n"}, {})
    head = made(tmp_path, "main", {"a.py": "1\n"}, {"vendor": (f"{server}/inner/.git", inner)})
    clone = ensure_clone(tmp_path / "served/main", tmp_path / "clone.git")
    assert fetch_submodules(tmp_path / "served/main", clone, (head,)) == [] and asked == []
