"""A registry of images on this machine: the OCI distribution API as `Registry` and Docker's engine call it.

It checks every digest as a registry does. With `token`, it asks for one, as public registries do.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.loopback import serve

_NAME = r"(?P<name>[a-z0-9]+(?:[/._-]+[a-z0-9]+)*)"
_DIGEST = r"(?P<digest>sha256:[0-9a-f]{64})"


@dataclass
class ImageRegistry:
    """Blobs and manifests lie in a folder, by their digests."""

    folder: Path
    manifests: dict[tuple[str, str], str] = field(default_factory=dict)
    """Digest by name and tag or digest."""
    blobs: set[tuple[str, str]] = field(default_factory=set)
    """Name and digest."""
    puts: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    break_after: int | None = None
    """So many blobs are taken, further ones are refused."""
    password: str = ""
    """Of the user 'me'; empty: everybody may push."""
    url: str = ""

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    def file(self, digest: str) -> Path:
        return self.folder / digest.replace(":", "-")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    registry: ImageRegistry

    def log_message(self, *_: Any) -> None:
        pass

    def answer(self, body: bytes = b"", code: int = 200, **headers: str) -> None:
        self.send_response(code)
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.send_header("Content-Length", headers.get("length", str(len(body))))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, code: int, error: str) -> None:
        self.answer(json.dumps({"errors": [{"code": error}]}).encode(), code, Content_Type="application/json")

    def dispatch(self) -> None:
        self.path = unquote(self.path)
        path = urlsplit(self.path).path
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.registry.calls.append(f"{self.command} {path}")
        if path == "/token":
            return self.token()
        if self.registry.password and self.headers.get("Authorization") != "Bearer t0ken":
            challenge = f'Bearer realm="{self.registry.url}/token",service="tests"'
            return self.answer(b"{}", 401, WWW_Authenticate=challenge)
        for pattern, method in ROUTES:
            if found := re.fullmatch(pattern, f"{self.command} {path}"):
                return method(self, body, **found.groupdict())
        return self.refuse(404, "UNSUPPORTED")

    do_GET = do_HEAD = do_POST = do_PUT = dispatch

    def token(self) -> None:
        asked = parse_qs(urlsplit(self.path).query)
        expected = base64.b64encode(f"me:{self.registry.password}".encode()).decode()
        if self.headers.get("Authorization") != f"Basic {expected}" or not asked["scope"][0].startswith("repository:"):
            return self.refuse(401, "UNAUTHORIZED")
        return self.answer(b'{"token": "t0ken"}', Content_Type="application/json")

    def version(self, body: bytes) -> None:
        self.answer(b"{}", Docker_Distribution_Api_Version="registry/2.0")

    def begin(self, body: bytes, name: str) -> None:
        self.answer(b"", 202, Location=f"/v2/{name}/blobs/uploads/1?state=x")

    def put_blob(self, body: bytes, name: str) -> None:
        registry = self.registry
        digest = parse_qs(urlsplit(self.path).query)["digest"][0]
        if registry.break_after is not None and len(registry.puts) >= registry.break_after:
            return self.refuse(500, "BROKEN_OFF")
        if f"sha256:{hashlib.sha256(body).hexdigest()}" != digest:
            return self.refuse(400, "DIGEST_INVALID")
        registry.file(digest).write_bytes(body)
        registry.blobs.add((name, digest))
        registry.puts.append(digest)
        return self.answer(b"", 201, Location=f"/v2/{name}/blobs/{digest}", Docker_Content_Digest=digest)

    def blob(self, body: bytes, name: str, digest: str) -> None:
        if (name, digest) not in self.registry.blobs:
            return self.refuse(404, "BLOB_UNKNOWN")
        content = self.registry.file(digest).read_bytes()
        return self.answer(content, Docker_Content_Digest=digest, Content_Type="application/octet-stream")

    def put_manifest(self, body: bytes, name: str, reference: str) -> None:
        manifest = json.loads(body)
        named = [manifest["config"]["digest"], *(layer["digest"] for layer in manifest["layers"])]
        if any((name, digest) not in self.registry.blobs for digest in named):
            return self.refuse(400, "MANIFEST_BLOB_UNKNOWN")
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        self.registry.file(digest).write_bytes(body)
        for one in (reference, digest):
            self.registry.manifests[name, one] = digest
        return self.answer(b"", 201, Location=f"/v2/{name}/manifests/{digest}", Docker_Content_Digest=digest)

    def manifest(self, body: bytes, name: str, reference: str) -> None:
        digest = self.registry.manifests.get((name, reference))
        if digest is None:
            return self.refuse(404, "MANIFEST_UNKNOWN")
        content = self.registry.file(digest).read_bytes()
        return self.answer(content, Docker_Content_Digest=digest, Content_Type=json.loads(content)["mediaType"])


ROUTES = [
    (r"GET /v2/", Handler.version),
    (rf"POST /v2/{_NAME}/blobs/uploads/", Handler.begin),
    (rf"PUT /v2/{_NAME}/blobs/uploads/1", Handler.put_blob),
    (rf"(?:GET|HEAD) /v2/{_NAME}/blobs/{_DIGEST}", Handler.blob),
    (rf"PUT /v2/{_NAME}/manifests/(?P<reference>[\w.:-]+)", Handler.put_manifest),
    (rf"(?:GET|HEAD) /v2/{_NAME}/manifests/(?P<reference>[\w.:-]+)", Handler.manifest),
]


@contextmanager
def registry_server(folder: Path) -> Iterator[ImageRegistry]:
    """An empty registry, at `registry.url`."""
    registry = ImageRegistry(folder)
    with serve(Handler, registry=registry) as registry.url:
        yield registry
