"""The Hugging Face Hub's API on this machine, as `huggingface_hub` and `datasets` call it; repositories in memory."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.loopback import serve

TOKEN = "hf_" + "t" * 34
LARGE = 10_000
"""Files of so many bytes, and all Parquet, are stored by their SHA-256 (the Hub: .gitattributes, 10 MB)."""


@dataclass
class Repository:
    """At its newest commit."""

    files: dict[str, bytes] = field(default_factory=dict)
    large: set[str] = field(default_factory=set)
    commits: list[str] = field(default_factory=lambda: ["0" * 40])
    messages: list[str] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)
    past: dict[str, Repository] = field(default_factory=dict)
    """By commit."""


@dataclass
class Hub:
    repositories: dict[str, Repository] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    puts: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    break_after: int | None = None
    """So many large files are taken, further ones are refused."""
    corrupt: str = ""
    """This file's content is another one when it is committed."""
    url: str = ""


def blob_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: Any) -> None:
        pass

    def answer(self, value: Any, code: int = 200, headers: dict[str, str] | None = None) -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(code)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, code: int, error: str) -> None:
        self.answer({"error": error}, code, {"X-Error-Code": error, "X-Error-Message": error})

    def dispatch(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = unquote(urlsplit(self.path).path)
        self.hub.calls.append(f"{self.command} {path}")
        writes = self.command in ("POST", "PUT") and not re.search(r"paths-info|validate-yaml|^/lfs/", path)
        if writes and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.refuse(401, "InvalidToken")
        for pattern, method in ROUTES:
            if found := re.fullmatch(f"(?:{pattern})", f"{self.command} {path}"):
                return method(self, body, **found.groupdict())
        return self.refuse(404, "EntryNotFound")

    do_GET = do_HEAD = do_POST = do_PUT = dispatch

    def repository(self, repo: str, revision: str = "main") -> Repository | None:
        """As it was at a branch, a tag or a commit."""
        found = self.hub.repositories.get(repo)
        if found is None:
            self.refuse(404, "RepoNotFound")
        elif revision != "main":
            found = found.past.get(found.tags.get(revision, revision))
            if found is None:
                self.refuse(404, "RevisionNotFound")
        return found

    def create(self, body: bytes) -> None:
        asked = json.loads(body)
        name = f"{asked['organization']}/{asked['name']}"
        if name in self.hub.repositories:
            return self.answer({"error": "exists", "url": f"{self.hub.url}/datasets/{name}"}, 409)
        self.hub.repositories[name] = Repository()
        return self.answer({"url": f"{self.hub.url}/datasets/{name}", "name": name})

    def preupload(self, body: bytes, repo: str) -> None:
        if (found := self.repository(repo)) is None:
            return
        answers = []
        for file in json.loads(body)["files"]:
            name = file["path"]
            large = file["size"] >= LARGE or name.endswith(".parquet")
            answer = {"path": name, "uploadMode": "lfs" if large else "regular", "shouldIgnore": False}
            if name in found.files:
                content = found.files[name]
                answer["oid"] = hashlib.sha256(content).hexdigest() if name in found.large else blob_id(content)
            answers.append(answer)
        self.answer({"files": answers})

    def batch(self, body: bytes, repo: str) -> None:
        objects = []
        for one in json.loads(body)["objects"]:
            upload = {"href": f"{self.hub.url}/lfs/{one['oid']}"}
            absent = {} if one["oid"] in self.hub.objects else {"actions": {"upload": upload}}
            objects.append({**one, **absent})
        self.answer({"transfer": "basic", "objects": objects})

    def put(self, body: bytes, oid: str) -> None:
        if self.hub.break_after is not None and len(self.hub.puts) >= self.hub.break_after:
            return self.refuse(403, "BrokenOff")
        if hashlib.sha256(body).hexdigest() != oid:
            return self.refuse(400, "WrongDigest")
        self.hub.objects[oid] = body
        self.hub.puts.append(oid)
        return self.answer(b"")

    def commit(self, body: bytes, repo: str) -> None:
        if (found := self.repository(repo)) is None:
            return
        for line in body.splitlines():
            entry = json.loads(line)
            key, value = entry["key"], entry["value"]
            if key == "header":
                found.messages.append(value["summary"])
            elif key == "file":
                found.files[value["path"]] = base64.b64decode(value["content"])
                found.large.discard(value["path"])
            elif key == "lfsFile":
                found.files[value["path"]] = self.hub.objects[value["oid"]]
                found.large.add(value["path"])
            else:
                assert key == "deletedFile", key
                del found.files[value["path"]]
        if self.hub.corrupt in found.files:
            found.files[self.hub.corrupt] += b" "
        found.commits.append(hashlib.sha1(found.commits[-1].encode() + body).hexdigest())
        found.past[found.commits[-1]] = replace(
            found, files=dict(found.files), large=set(found.large), commits=list(found.commits)
        )
        url = f"{self.hub.url}/datasets/{repo}/commit/{found.commits[-1]}"
        self.answer({"success": True, "commitOid": found.commits[-1], "commitUrl": url, "hookOutput": ""})

    def info(self, body: bytes, repo: str, revision: str | None) -> None:
        if (found := self.repository(repo, revision or "main")) is None:
            return
        names = [{"rfilename": name} for name in sorted(found.files)]
        self.answer({"_id": "1", "id": repo, "sha": found.commits[-1], "private": False, "tags": [], "siblings": names})

    def entries(self, found: Repository, names: list[str]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for name in names:
            content = found.files[name]
            row = {"type": "file", "oid": blob_id(content), "size": len(content), "path": name}
            if name in found.large:
                row["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
            rows.append(row)
        return rows

    def tree(self, body: bytes, repo: str, revision: str, under: str | None) -> None:
        if (found := self.repository(repo, revision)) is None:
            return None
        below = {name for name in found.files if not under or name.startswith(f"{under}/")}
        if under and not below:
            return self.refuse(404, "EntryNotFound")
        depth = len(under) + 1 if under else 0
        folders = {name[: name.index("/", depth)] for name in below if "/" in name[depth:]}
        recursive = parse_qs(urlsplit(self.path).query).get("recursive", ["false"])[0].lower() == "true"
        names = sorted(below if recursive else {name for name in below if "/" not in name[depth:]})
        listed = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": name} for name in sorted(folders)]
        return self.answer(listed + self.entries(found, names))

    def paths(self, body: bytes, repo: str, revision: str) -> None:
        if (found := self.repository(repo, revision)) is None:
            return
        text = body.decode()
        asked = json.loads(text)["paths"] if text.startswith("{") else parse_qs(text)["paths"]
        folders = [one for one in asked if any(name.startswith(f"{one}/") for name in found.files)]
        listed = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": name} for name in folders]
        self.answer(listed + self.entries(found, [name for name in asked if name in found.files]))

    def refs(self, body: bytes, repo: str) -> None:
        if (found := self.repository(repo)) is None:
            return
        branch = {"name": "main", "ref": "refs/heads/main", "targetCommit": found.commits[-1]}
        tags = [{"name": tag, "ref": f"refs/tags/{tag}", "targetCommit": oid} for tag, oid in found.tags.items()]
        self.answer({"branches": [branch], "converts": [], "tags": tags})

    def tag(self, body: bytes, repo: str, revision: str) -> None:
        if (found := self.repository(repo)) is None:
            return
        found.tags[json.loads(body)["tag"]] = revision
        self.answer(b"")

    def resolve(self, body: bytes, repo: str, revision: str, name: str) -> None:
        if (found := self.repository(repo, revision)) is None:
            return None
        if name not in found.files:
            return self.refuse(404, "EntryNotFound")
        content = found.files[name]
        headers = {
            "ETag": f'"{hashlib.sha256(content).hexdigest()}"',
            "X-Repo-Commit": found.commits[-1],
            "Accept-Ranges": "bytes",
        }
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if wanted:
            first, last = int(wanted[1]), int(wanted[2] or len(content) - 1)
            headers["Content-Range"] = f"bytes {first}-{min(last, len(content) - 1)}/{len(content)}"
            return self.answer(content[first : last + 1], 206, headers)
        return self.answer(content, 200, headers)

    def validate(self, body: bytes) -> None:
        good = json.loads(body)["content"].startswith("---\n")
        self.answer({"errors": [] if good else [{"message": "no header"}], "warnings": []}, 200 if good else 400)


_REPO = r"(?P<repo>[\w.-]+/[\w.-]+)"
_REVISION = r"(?P<revision>[\w.+-]+)"
ROUTES = [
    (r"POST /api/repos/create", Handler.create),
    (r"POST /api/validate-yaml", Handler.validate),
    (rf"POST /api/datasets/{_REPO}/preupload/main", Handler.preupload),
    (rf"POST /datasets/{_REPO}\.git/info/lfs/objects/batch", Handler.batch),
    (r"PUT /lfs/(?P<oid>\w{64})", Handler.put),
    (rf"POST /api/datasets/{_REPO}/commit/main", Handler.commit),
    (rf"GET /api/datasets/{_REPO}(?:/revision/{_REVISION})?", Handler.info),
    (rf"GET /api/datasets/{_REPO}/tree/{_REVISION}(?:/(?P<under>.+))?", Handler.tree),
    (rf"POST /api/datasets/{_REPO}/paths-info/{_REVISION}", Handler.paths),
    (rf"GET /api/datasets/{_REPO}/refs", Handler.refs),
    (rf"POST /api/datasets/{_REPO}/tag/{_REVISION}", Handler.tag),
    (rf"(?:GET|HEAD) /datasets/{_REPO}/resolve/{_REVISION}/(?P<name>.+)", Handler.resolve),
]


@contextmanager
def hub_server() -> Iterator[Hub]:
    """A hub without repositories, at `hub.url`."""
    hub = Hub()
    with serve(Handler, hub=hub) as hub.url:
        yield hub
