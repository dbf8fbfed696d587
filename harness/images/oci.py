"""Images as files: an OCI image layout, as a folder or in a tar archive, and checked before it is used.

The archive also has the `manifest.json` that every version of `docker load` understands. The
digest of the OCI manifest names the configuration, which names every layer by the digest of its
files; the engine checks those. (OCI image specification 1.0, image-layout.)
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from perfquarry.data.errors import InputError
from perfquarry.data.files import writing

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
GZIP = b"\x1f\x8b"
JSON_BYTES = 16 * 1024**2
"""Largest document read from an archive."""
_LEVEL = 5
"""Of gzip."""


@dataclass(frozen=True)
class OciImage:
    """One image of a layout."""

    tag: str
    """Its name in the engine; empty where it had none."""
    digest: str
    """Of its manifest, 'sha256:…'."""
    blobs: Mapping[str, int]
    """Bytes by digest: manifest, configuration and layers. What images share has one digest."""


@dataclass(frozen=True)
class OciLayout:
    """A folder of blobs, each named by its digest: `blobs/sha256/…`."""

    folder: Path

    def blob(self, digest: str) -> Path:
        """The file of a blob."""
        return self.folder / _name(digest)

    def put(self, data: bytes, media: str) -> dict[str, Any]:
        """Adds a blob; its descriptor."""
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self.blob(digest).parent.mkdir(parents=True, exist_ok=True)
        self.blob(digest).write_bytes(data)
        return {"mediaType": media, "digest": digest, "size": len(data)}

    def put_layer(self, layer: IO[bytes]) -> dict[str, Any]:
        """Adds a layer, packed with gzip when it is not yet; the same bytes for the same layer and zlib."""
        partial = self.folder / ".layer"
        start = layer.read(2)
        layer.seek(0)
        with partial.open("wb") as raw:
            if start == GZIP:
                shutil.copyfileobj(layer, raw)
            else:
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=_LEVEL) as packed:
                    shutil.copyfileobj(layer, packed, 1024**2)
        with partial.open("rb") as file:
            digest = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
        self.blob(digest).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(partial, self.blob(digest))
        return {"mediaType": f"{LAYER}+gzip", "digest": digest, "size": self.blob(digest).stat().st_size}

    def add(self, tag: str, config: bytes, layers: list[dict[str, Any]]) -> OciImage:
        """Adds the manifest of an image whose layers are there, and its configuration."""
        described = self.put(config, CONFIG)
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": described, "layers": layers}
        top = self.put(_dump(manifest), MANIFEST)
        return OciImage(tag, top["digest"], {one["digest"]: one["size"] for one in (top, described, *layers)})


def unpack_saved(saved: IO[bytes], folder: Path) -> list[OciImage]:
    """Writes what `docker save` gave of some images as a layout; layers that they share are written once."""
    layout = OciLayout(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written: dict[str, dict[str, Any]] = {}
    found = []
    with tarfile.open(fileobj=saved) as source:
        for one in json.loads(_read(source, "manifest.json")):
            for name in one["Layers"]:
                if name not in written:
                    written[name] = layout.put_layer(_open(source, name))
            layers = [written[name] for name in one["Layers"]]
            found.append(layout.add(next(iter(one.get("RepoTags") or ()), ""), _read(source, one["Config"]), layers))
    return found


def write_archive(saved: IO[bytes], path: Path) -> str:
    """Writes what `docker save` gave of one image as an OCI archive; `path` is there whole or not at all.

    Returns:
        The digest of the manifest, 'sha256:...'.
    """
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".pq-layout-") as place, writing(path) as file:
        (image,) = unpack_saved(saved, Path(place))
        with tarfile.open(fileobj=file, mode="w") as archive:
            _archive(OciLayout(Path(place)), image, archive)
    return image.digest


def check_archive(path: Path, digest: str) -> str:
    """The id of the image (the digest of its configuration) in an archive, which must be the one of that digest.

    Raises:
        InputError: it is not, or it is no such archive.
    """
    try:
        with tarfile.open(path) as archive:
            index = json.loads(_read(archive, "index.json"))
            manifest = json.loads(_blob(archive, digest))
            config = manifest["config"]["digest"]
            _blob(archive, config)
            (loaded,) = json.loads(_read(archive, "manifest.json"))
            same = [one["digest"] for one in index["manifests"]] == [digest]
            layers = [_name(layer["digest"]) for layer in manifest["layers"]]
            if not same or loaded["Config"] != _name(config) or loaded["Layers"] != layers:
                raise InputError(f"{path} does not hold the image {digest}")
    except (OSError, tarfile.TarError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} does not hold the image {digest}: {error}") from error
    return str(config)


def unique_bytes(images: Iterable[OciImage]) -> int:
    """Bytes of all images together, each blob counted once."""
    return sum({digest: size for image in images for digest, size in image.blobs.items()}.values())


def _archive(layout: OciLayout, image: OciImage, archive: tarfile.TarFile) -> None:
    manifest = json.loads(layout.blob(image.digest).read_bytes())
    described = {"mediaType": MANIFEST, "digest": image.digest, "size": image.blobs[image.digest]}
    names = [_name(layer["digest"]) for layer in manifest["layers"]]
    loads = [{"Config": _name(manifest["config"]["digest"]), "RepoTags": [image.tag], "Layers": names}]
    documents = {
        "oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
        "index.json": _dump({"schemaVersion": 2, "mediaType": INDEX, "manifests": [described]}),
        "manifest.json": _dump(loads),
    }
    for name, data in documents.items():
        info = tarfile.TarInfo(name)
        info.size = len(data)
        archive.addfile(info, BytesIO(data))
    for digest, size in image.blobs.items():
        info = tarfile.TarInfo(_name(digest))
        info.size = size
        with layout.blob(digest).open("rb") as file:
            archive.addfile(info, file)


def _blob(archive: tarfile.TarFile, digest: str) -> bytes:
    data = _read(archive, _name(digest))
    if f"sha256:{hashlib.sha256(data).hexdigest()}" != digest:
        raise InputError(f"the blob {digest} of {archive.name!s} is not what its name says")
    return data


def _name(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _open(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    file = archive.extractfile(name)
    if file is None:
        raise InputError(f"{name} of the archive {archive.name!s} is no file")
    return file


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    return _open(archive, name).read(JSON_BYTES)


def _dump(document: object) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
