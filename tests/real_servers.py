"""Real servers for tests, as processes of this machine: one that speaks S3, and Postgres."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
from pyarrow import fs

BUCKET = "tables"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """An S3 server (moto) with the bucket `tables`; yields the variables that name it and its keys."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _until(lambda: httpx.get(f"http://127.0.0.1:{port}/moto-api/", trust_env=False).is_success, server)
        fs.S3FileSystem(
            endpoint_override=f"127.0.0.1:{port}", scheme="http", region="us-east-1", allow_bucket_creation=True,
            access_key="key", secret_key="secret",
        ).create_dir(BUCKET)  # fmt: skip
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
    finally:
        server.kill()
        server.wait()


def postgres_binaries() -> Path | None:
    """The folder of the newest server's programs (Debian: postgresql), or None."""
    if found := shutil.which("postgres"):
        return Path(found).parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None, key=lambda path: int(path.parent.name))


@contextmanager
def postgres(binaries: Path) -> Iterator[str]:
    """A Postgres server with an empty database, run by a user who is not root; yields its SQLAlchemy URL."""
    port = free_port()
    folder = Path(tempfile.mkdtemp(prefix="perfquarry-postgres-"))
    user: str | None = None
    if os.getuid() == 0:
        user = "postgres" if any(one.pw_name == "postgres" for one in pwd.getpwall()) else "nobody"
        shutil.chown(folder, user)
    data = str(folder / "data")
    as_user = {"user": user, "cwd": folder, "check": True, "stdout": subprocess.DEVNULL}
    try:
        make = [str(binaries / "initdb"), "-D", data, "-A", "trust", "-U", "perfquarry", "--no-sync"]
        subprocess.run(make, **as_user)
        options = f"-p {port} -c listen_addresses=127.0.0.1 -k {folder} -c fsync=off"
        start: Sequence[str] = ["-D", data, "-o", options, "-l", str(folder / "log"), "-w", "start"]
        subprocess.run([str(binaries / "pg_ctl"), *start], **as_user)
        try:
            yield f"postgresql+psycopg://perfquarry@127.0.0.1:{port}/postgres"
        finally:
            subprocess.run([str(binaries / "pg_ctl"), "-D", data, "-m", "immediate", "stop"], **as_user)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _until(answers: Callable[[], bool], server: subprocess.Popen[bytes], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        try:
            if answers():
                return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise RuntimeError(f"the server {server.args} did not answer")
