"""Images as files: an OCI image layout in a tar archive, written the same byte for byte, and checked before it is used.

The archive also has the `manifest.json` that every version of `docker load` understands. The
digest of the OCI manifest names the configuration, which names every layer by the digest of its
files; the engine checks those. (OCI image specification 1.0, image-layout.)
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from perfquarry.data.errors import InputError

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
GZIP = b"\x1f\x8b"
JSON_BYTES = 16 * 1024**2
"""Largest document read from an archive."""


def write_archive(saved: IO[bytes], path: Path) -> str:
    """Writes what `docker save` gave of one image as an OCI archive; `path` is there whole or not at all.

    Returns:
        The digest of the manifest, 'sha256:...'.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        with tarfile.open(fileobj=saved) as source, tarfile.open(partial, "w") as archive:
            digest = _convert(source, archive)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return digest


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


def _convert(source: tarfile.TarFile, archive: tarfile.TarFile) -> str:
    (saved,) = json.loads(_read(source, "manifest.json"))
    _put(archive, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
    config = _read(source, saved["Config"])
    manifest: dict[str, Any] = {"schemaVersion": 2, "mediaType": MANIFEST, "config": _put_blob(archive, config, CONFIG)}
    written: dict[str, dict[str, Any]] = {}
    layers = []
    for name in saved["Layers"]:
        described = _describe(source, name)
        if described["digest"] not in written:
            info = tarfile.TarInfo(_name(described["digest"]))
            info.size = described["size"]
            archive.addfile(info, _open(source, name))
            written[described["digest"]] = described
        layers.append(described)
    described = _put_blob(archive, _dump({**manifest, "layers": layers}), MANIFEST)
    _put(archive, "index.json", _dump({"schemaVersion": 2, "mediaType": INDEX, "manifests": [described]}))
    names = [_name(layer["digest"]) for layer in layers]
    loads = [{"Config": _name(manifest["config"]["digest"]), "RepoTags": saved.get("RepoTags"), "Layers": names}]
    _put(archive, "manifest.json", _dump(loads))
    return str(described["digest"])


def _describe(source: tarfile.TarFile, name: str) -> dict[str, Any]:
    file = _open(source, name)
    start = file.read(2)
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # it is a binary reader
    media = f"{LAYER}+gzip" if start == GZIP else LAYER
    return {"mediaType": media, "digest": f"sha256:{digest}", "size": file.tell()}


def _put_blob(archive: tarfile.TarFile, data: bytes, media: str) -> dict[str, Any]:
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    _put(archive, _name(digest), data)
    return {"mediaType": media, "digest": digest, "size": len(data)}


def _put(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, BytesIO(data))


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
