"""Images pushed to a real registry on the loopback, and read back."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import ClassVar

import pytest

from perfquarry.data.errors import InputError, RegistryFailed
from perfquarry.harness.images.oci import OciImage, OciLayout, unique_bytes, unpack_saved
from perfquarry.harness.images.registry import MissingImage, Pushed, Reference, Registry
from tests.loopback import serve
from tests.registry_server import ImageRegistry, registry_server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ImageRegistry]:
    (tmp_path / "registry").mkdir()
    with registry_server(tmp_path / "registry") as running:
        yield running


@pytest.fixture
def saved(tmp_path: Path) -> tuple[OciLayout, list[OciImage]]:
    """Two images as `docker save` writes them, which share a layer."""
    files = {"a/layer.tar": b"a" * 9000, "b/layer.tar": b"b" * 9000, "c/layer.tar": b"c" * 9000}
    files |= {"1.json": b'{"os":"linux"}', "2.json": b'{"os":"linux","x":1}'}
    listed = [
        {"Config": "1.json", "RepoTags": ["one:1"], "Layers": ["a/layer.tar", "b/layer.tar"]},
        {"Config": "2.json", "RepoTags": ["two:1"], "Layers": ["a/layer.tar", "c/layer.tar"]},
    ]
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w") as archive:
        for name, data in {**files, "manifest.json": json.dumps(listed).encode()}.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    into.seek(0)
    return OciLayout(tmp_path / "layout"), unpack_saved(into, tmp_path / "layout")


def test_what_images_share_is_counted_and_sent_once(
    server: ImageRegistry, saved: tuple[OciLayout, list[OciImage]]
) -> None:
    layout, images = saved
    assert [image.tag for image in images] == ["one:1", "two:1"]
    pushed = Pushed()
    with Registry(server.host) as registry:
        references = [registry.push(layout, image, "some/tasks", image.tag[:3], pushed) for image in images]
    assert len(server.puts) == len(set(server.puts)) == 5, "three layers and two configurations"
    files = {digest for image in images for digest in image.blobs}
    assert sum(layout.blob(digest).stat().st_size for digest in files) == unique_bytes(images)
    assert sum(pushed.sent.values()) == unique_bytes(images) and not pushed.there
    assert str(references[0]) == f"{server.host}/some/tasks@{images[0].digest}"
    assert Reference.parse(str(references[0])) == references[0]


def test_a_push_goes_on_where_it_broke_off(server: ImageRegistry, saved: tuple[OciLayout, list[OciImage]]) -> None:
    layout, (image, _) = saved
    server.break_after = 2
    with Registry(server.host) as registry, pytest.raises(RegistryFailed, match="answered 500"):
        registry.push(layout, image, "some/tasks", "one", Pushed())
    assert server.manifests == {}, "the manifest comes last"
    server.break_after, pushed = None, Pushed()
    with Registry(server.host) as registry:
        reference = registry.push(layout, image, "some/tasks", "one", pushed)
        again = registry.push(layout, image, "some/tasks", "one", Pushed())
    assert len(server.puts) == len(set(server.puts)) == 3 and len(pushed.there) == 2
    assert reference == again


def test_it_is_read_back_by_digest_alone(
    server: ImageRegistry, saved: tuple[OciLayout, list[OciImage]], tmp_path: Path
) -> None:
    layout, (image, _) = saved
    with Registry(server.host) as registry:
        reference = registry.push(layout, image, "some/tasks", "one", Pushed())
        manifest = json.loads(registry.manifest(reference))
        layer = manifest["layers"][0]["digest"]
        registry.download(reference, layer, tmp_path / "layer")
        assert f"sha256:{hashlib.sha256((tmp_path / 'layer').read_bytes()).hexdigest()}" == layer
        server.file(layer).write_bytes(b"another")
        with pytest.raises(MissingImage, match="is another one"):
            registry.download(reference, layer, tmp_path / "layer")
        server.file(image.digest).write_bytes(json.dumps(manifest).encode())
        with pytest.raises(MissingImage, match="manifest is another one"):
            registry.manifest(reference)
        with pytest.raises(MissingImage, match="is not there"):
            registry.manifest(Reference(server.host, "some/tasks", f"sha256:{'0' * 64}"))


def test_a_registry_that_asks_for_a_token_gets_one(
    server: ImageRegistry, saved: tuple[OciLayout, list[OciImage]], monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, (image, _) = saved
    server.password = "open sesame"
    with Registry(server.host) as registry, pytest.raises(RegistryFailed, match="PERFQUARRY_REGISTRY_USER") as refused:
        registry.push(layout, image, "some/tasks", "one", Pushed())
    assert "sesame" not in str(refused.value) and not server.puts
    monkeypatch.setenv("PERFQUARRY_REGISTRY_USER", "me")
    monkeypatch.setenv("PERFQUARRY_REGISTRY_PASSWORD", server.password)
    monkeypatch.setenv("PERFQUARRY_REGISTRY", server.host)
    with Registry(server.host) as registry:
        assert registry.manifest(registry.push(layout, image, "some/tasks", "one", Pushed()))


class Thief(BaseHTTPRequestHandler):
    """A registry of a stranger's release: it asks for a password, or names who shall be given it."""

    challenge: ClassVar[str]
    heard: ClassVar[list[str]]

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.heard.append(self.headers.get("Authorization") or "")
        body = b"{}"
        self.send_response(401)
        self.send_header("WWW-Authenticate", self.challenge)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.mark.parametrize("challenge", ["Basic", 'Bearer realm="{url}/token"', 'Bearer realm="http://127.0.0.2:9/t"'])
def test_a_registry_that_a_release_names_is_given_no_key(challenge: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFQUARRY_REGISTRY_USER", "me")
    monkeypatch.setenv("PERFQUARRY_REGISTRY_PASSWORD", "open sesame")
    monkeypatch.setenv("PERFQUARRY_REGISTRY", "registry.example.org")
    heard: list[str] = []
    monkeypatch.setattr(Thief, "heard", heard, raising=False)
    with serve(Thief) as url:
        monkeypatch.setattr(Thief, "challenge", challenge.replace("{url}", url), raising=False)
        host = url.removeprefix("http://")
        with Registry(host) as registry, pytest.raises(RegistryFailed):
            registry.manifest(Reference(host, "some/tasks", f"sha256:{'0' * 64}"))
    assert heard and not any(heard)


def test_who_does_not_answer_is_named() -> None:
    with Registry("127.0.0.1:9") as registry, pytest.raises(RegistryFailed, match=r"127\.0\.0\.1:9"):
        registry.manifest(Reference("127.0.0.1:9", "some/tasks", f"sha256:{'0' * 64}"))


@pytest.mark.parametrize(
    "text", ["debian", "a/b:1", "a/b@sha256:12", "a/B@sha256:" + "0" * 64, "a/../b@sha256:" + "0" * 64]
)
def test_only_a_digest_names_an_image(text: str) -> None:
    with pytest.raises(InputError, match="is no image by digest"):
        Reference.parse(text)
