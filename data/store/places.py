"""Where tables lie: the local disk or an S3-compatible store, and how a file appears there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from perfquarry.data.errors import InputError
from perfquarry.data.files import writing


def place_of(root: Path | str) -> tuple[fs.FileSystem, str]:
    """The file system of a folder or URI, and the path within it.

    `s3://bucket/prefix` is reached with the usual variables: AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL (a store
    other than Amazon's), AWS_REGION or AWS_DEFAULT_REGION, and AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, a
    profile, or the machine's role. Other URIs are those of `pyarrow.fs.FileSystem.from_uri`.

    Raises:
        InputError: no such kind of address.
    """
    address = str(root)
    if "://" not in address:
        return fs.LocalFileSystem(), str(Path(root).resolve())
    parts = urlsplit(address)
    try:
        if parts.scheme != "s3" or parts.query:
            filesystem, path = fs.FileSystem.from_uri(address)
            return filesystem, path
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"cannot open the tables at {address}: {error}") from error
    if not parts.netloc or "@" in parts.netloc:
        raise InputError("tables on S3 are named s3://bucket/prefix; keys come from AWS_ACCESS_KEY_ID and its like")
    return _s3(parts.netloc), f"{parts.netloc}{parts.path}".rstrip("/")


def _s3(bucket: str) -> fs.S3FileSystem:
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    options: dict[str, Any] = {"allow_delayed_open": True}  # a small file is one PUT
    if endpoint:
        parts = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
        options |= {"scheme": parts.scheme, "endpoint_override": parts.netloc, "region": region or "us-east-1"}
    else:
        try:
            options["region"] = region or fs.resolve_s3_region(bucket)
        except OSError as error:
            raise InputError(f"cannot find the region of the bucket {bucket}: {error}; set AWS_REGION") from error
    return fs.S3FileSystem(**options)


@contextmanager
def appearing(filesystem: fs.FileSystem, folder: str, name: str) -> Iterator[IO[bytes] | Any]:
    """A file to write to, which is there under its name when the block has ended without an error.

    On S3 an upload is what appears at once, and there is no renaming: the file is made on the local disk first.
    Elsewhere it is written as `.<name>.…` and renamed; on the local disk see `data.files.writing`.
    """
    if isinstance(filesystem, fs.S3FileSystem):
        with tempfile.NamedTemporaryFile(prefix="perfquarry-") as file:
            yield file
            file.flush()
            # in a thread: an exception that a signal raises would close the stream half-way, and publish half a file
            with ThreadPoolExecutor(1) as pool:
                pool.submit(_upload, file.name, filesystem, f"{folder}/{name}").result()
        return
    filesystem.create_dir(folder, recursive=True)
    if isinstance(filesystem, fs.LocalFileSystem):
        with writing(Path(folder, name)) as file:
            yield file
        return
    temporary = f"{folder}/.{name}.tmp"
    with filesystem.open_output_stream(temporary) as stream:
        yield stream
    filesystem.move(temporary, f"{folder}/{name}")


def _upload(file: str, filesystem: fs.FileSystem, path: str) -> None:
    """Not `fs.copy_files`: it passes over the error of an upload that fails when it is closed (pyarrow 26)."""
    with pa.memory_map(file) as source, filesystem.open_output_stream(path) as sink:
        sink.write(source.read_buffer())
