"""Registries of container images: push and read by the HTTP API that all of them speak.

(OCI distribution specification 1.1: blobs and manifests by digest; 401 with a `Bearer` challenge names the server
of tokens.) Keys: `PERFQUARRY_REGISTRY_USER` and `PERFQUARRY_REGISTRY_PASSWORD`, for the registry that
`PERFQUARRY_REGISTRY` names and no other: which registries a release names is a stranger's word.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urljoin

import httpx

from perfquarry.data.errors import InputError, RegistryFailed
from perfquarry.harness.images.oci import JSON_BYTES, MANIFEST, OciImage, OciLayout

TIMEOUT = httpx.Timeout(60.0, connect=10.0)
HOST, USER, PASSWORD = "PERFQUARRY_REGISTRY", "PERFQUARRY_REGISTRY_USER", "PERFQUARRY_REGISTRY_PASSWORD"
"""Names of variables."""
_LOOPBACK = re.compile(r"(localhost|127\.[\d.]+|\[::1\])(:\d+)?")
_PLACE = re.compile(r"[a-zA-Z0-9.\[\]:-]+(:\d+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_CHUNK = 1024**2


class MissingImage(Exception):
    """The registry answers, and has no such manifest or blob, or another one under that digest."""


@dataclass(frozen=True)
class Reference:
    """An image by its digest: 'registry/name@sha256:…', the same bytes for ever."""

    registry: str
    """Host, with its port where it is not the usual one."""
    name: str
    """'namespace/repository'."""
    digest: str

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Reads one.

        Raises:
            InputError: it is none, or names no digest.
        """
        place, _, digest = text.partition("@")
        if not (_PLACE.fullmatch(place) and _DIGEST.fullmatch(digest)):
            raise InputError(f"{text!r} is no image by digest (registry/name@sha256:…)")
        registry, _, name = place.partition("/")
        return cls(registry, name, digest)

    def __str__(self) -> str:
        return f"{self.registry}/{self.name}@{self.digest}"


@dataclass
class Pushed:
    """What was sent, and what was there before."""

    sent: dict[str, int] = field(default_factory=dict)
    """Bytes by digest."""
    there: dict[str, int] = field(default_factory=dict)
    done: set[tuple[str, str]] = field(default_factory=set)
    """Name and digest of both."""


class Registry:
    """A connection to one registry; to a loopback address without TLS."""

    def __init__(self, host: str) -> None:
        """Opens nothing yet; `host` is 'registry.example.org' or 'localhost:5000'."""
        self.host = host
        scheme = "http" if _LOOPBACK.fullmatch(host) else "https"
        self._client = httpx.Client(base_url=f"{scheme}://{host}", timeout=TIMEOUT, follow_redirects=True)
        self._token = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def push(self, layout: OciLayout, image: OciImage, name: str, tag: str, pushed: Pushed) -> Reference:
        """Sends an image: blobs that are there are not sent again, the manifest comes last.

        Args:
            name: 'namespace/repository'.
            tag: keeps registries from deleting it; what names the image is its digest.
            pushed: what was sent is added to it.

        Raises:
            RegistryFailed: the registry refused, or cannot be reached.
        """
        for digest, size in image.blobs.items():
            if digest == image.digest or (name, digest) in pushed.done:
                continue
            answer = self._ask("HEAD", f"/v2/{name}/blobs/{digest}", scope="pull,push")
            if answer.status_code == httpx.codes.NOT_FOUND:
                self._send_blob(name, layout.blob(digest), digest)
                pushed.sent[digest] = size
            else:
                _good(answer, f"look for {digest} in {name} of {self.host}")
                pushed.there[digest] = size
            pushed.done.add((name, digest))
        body = layout.blob(image.digest).read_bytes()
        answer = self._ask(
            "PUT", f"/v2/{name}/manifests/{tag}", content=body, headers={"Content-Type": MANIFEST}, scope="pull,push"
        )
        _good(answer, f"push the manifest {tag} of {name} to {self.host}")
        pushed.sent[image.digest] = len(body)
        return Reference(self.host, name, image.digest)

    def manifest(self, image: Reference) -> bytes:
        """The manifest of an image, whose digest is checked.

        Raises:
            MissingImage: the registry has none of that digest.
            RegistryFailed: it cannot be reached.
        """
        answer = self._ask("GET", f"/v2/{image.name}/manifests/{image.digest}", headers={"Accept": MANIFEST})
        if answer.status_code == httpx.codes.NOT_FOUND:
            raise MissingImage(f"{image} is not there")
        body = _good(answer, f"read {image}").content[:JSON_BYTES]
        if f"sha256:{hashlib.sha256(body).hexdigest()}" != image.digest:
            raise MissingImage(f"{image}: the registry's manifest is another one")
        return body

    def download(self, image: Reference, digest: str, to: Path) -> None:
        """Writes a blob of an image to a file; its digest is checked.

        Raises:
            MissingImage: the registry has none of that digest.
            RegistryFailed: it cannot be reached.
        """
        found = hashlib.sha256()
        doing = f"read {digest} of {image}"
        try:
            with self._client.stream("GET", f"/v2/{image.name}/blobs/{digest}", headers=self._headers()) as answer:
                if answer.status_code == httpx.codes.NOT_FOUND:
                    raise MissingImage(f"{image}: its blob {digest} is not there")
                _good(answer, doing)
                with to.open("wb") as file:
                    for block in answer.iter_bytes(_CHUNK):
                        found.update(block)
                        file.write(block)
        except httpx.HTTPError as error:
            raise RegistryFailed(f"cannot {doing}: {error}") from error
        if f"sha256:{found.hexdigest()}" != digest:
            raise MissingImage(f"{image}: its blob {digest} is another one")

    def _send_blob(self, name: str, file: Path, digest: str) -> None:
        doing = f"push {digest} to {name} of {self.host}"
        begun = _good(self._ask("POST", f"/v2/{name}/blobs/uploads/", scope="pull,push"), doing)
        place = urljoin(str(begun.url), begun.headers.get("Location", ""))
        place += f"{'&' if '?' in place else '?'}digest={digest}"
        try:
            # a place elsewhere bears its own signature, and gets no key of ours
            ours = self._headers() if httpx.URL(place).netloc == self._client.base_url.netloc else {}
            with file.open("rb") as content:
                headers = {"Content-Type": "application/octet-stream", **ours}
                answer = self._client.put(place, content=content, headers=headers)
        except httpx.HTTPError as error:
            raise RegistryFailed(f"cannot {doing}: {error}; run the same command again to go on") from error
        _good(answer, doing)

    def _ask(self, method: str, path: str, *, scope: str = "pull", **more: Any) -> httpx.Response:
        """One request; once more with a token when the registry asks for one."""
        given: Mapping[str, str] = more.pop("headers", {})
        try:
            answer = self._client.request(method, path, headers={**given, **self._headers()}, **more)
            if answer.status_code == httpx.codes.UNAUTHORIZED:
                name = path.removeprefix("/v2/").rpartition("/blobs/" if "/blobs/" in path else "/manifests/")[0]
                self._token = self._authorised(answer.headers.get("WWW-Authenticate", ""), name, scope)
                answer = self._client.request(method, path, headers={**given, **self._headers()}, **more)
        except httpx.HTTPError as error:
            raise RegistryFailed(f"cannot reach the registry {self.host}: {error}") from error
        return answer

    def _headers(self) -> dict[str, str]:
        return {"Authorization": self._token} if self._token else {}

    def _authorised(self, challenge: str, name: str, scope: str) -> str:
        """The value of `Authorization` that a challenge asks for; empty where we have none.

        The password goes to the server of tokens of the registry that `HOST` names alone, never in clear to others
        than this machine.

        Raises:
            RegistryFailed: the server of tokens refused, or is none that may be asked.
        """
        known = os.environ.get(HOST, "") == self.host
        user, password = (os.environ.get(USER, ""), os.environ.get(PASSWORD, "")) if known else ("", "")
        basic = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}" if user else ""
        if not challenge.startswith("Bearer "):
            return basic
        asked = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
        realm = httpx.URL(asked.get("realm", ""))
        if realm.scheme != "https" and realm.netloc != self._client.base_url.netloc:
            raise RegistryFailed(f"{self.host} names a server of tokens without TLS: {str(realm)[:200]}")
        answer = self._client.get(
            realm,
            params={"service": asked.get("service", ""), "scope": f"repository:{name}:{scope}"},
            headers={"Authorization": basic} if basic else {},
        )
        facts = _good(answer, f"get a token of {self.host}").json()
        return f"Bearer {facts.get('token') or facts.get('access_token')}"


def _good(answer: httpx.Response, doing: str) -> httpx.Response:
    if answer.is_success:
        return answer
    said = answer.read()[:300].decode(errors="replace")
    keys = f" (keys: {USER} and {PASSWORD}, for the host that {HOST} names)" if answer.status_code in (401, 403) else ""
    raise RegistryFailed(f"cannot {doing}: the registry answered {answer.status_code}{keys}: {said}")
