"""Several workers share a repository: on one machine, and on two that have nothing but a bucket and a database."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from perfquarry.data.demo import expected
from perfquarry.data.records import Attempt, Build, Row
from perfquarry.data.store import TableStore
from perfquarry.data.store.places import place_of
from tests.real_servers import BUCKET
from tests.system.commands import command

LEASE = "[resources]\nlease_seconds = 4\n"


def heads(number: int) -> str:
    """Heads of changes that the judge keeps."""
    return ",".join([one.head_sha for one in expected() if one.accepted][:number])


def start(home: Path, settings: Path, changes: str, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    arguments = ("build", "demo", "--no-server", "--jobs", "1", "--changes", changes, "--settings", str(settings))
    return subprocess.Popen(
        command(home, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **environment},
    )


def ended_well(process: subprocess.Popen[bytes]) -> None:
    said = process.communicate(timeout=250)[0].decode(errors="replace")
    assert process.returncode == 0, said[-4000:]


def raw(tables: Path | str, model: type[Row]) -> Counter[tuple[str, str]]:
    """How often each change and side was written, duplicates included."""
    filesystem, folder = place_of(tables)
    written: Counter[tuple[str, str]] = Counter()
    for info in filesystem.get_file_info(fs.FileSelector(f"{folder}/{model.TABLE}/repo=demo")):
        rows = pq.read_table(info.path, columns=["change_id", "side"], filesystem=filesystem).to_pylist()
        written.update((row["change_id"], row["side"]) for row in rows)
    return written


def rows(tables: Path | str) -> list[str]:
    """The builds without what speaks of the clock."""
    volatile = {"created_at", "seconds", "share", "bytes", "log"}
    return sorted(
        json.dumps(row.model_dump(mode="json", exclude=volatile), sort_keys=True)
        for row in TableStore(tables).records(Build, "demo")
    )


def wait_for_builds(tables: Path | str, process: subprocess.Popen[bytes]) -> None:
    """Until the first build is in the tables and, soon after, the next under way."""
    deadline = time.monotonic() + 200
    while not TableStore(tables).count(Build, "demo"):
        assert process.poll() is None and time.monotonic() < deadline, "nothing was built"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def judged(judged_demo: Path) -> Path:
    """The tables of a home that has changes and verdicts."""
    return judged_demo / "tables"


@pytest.fixture(scope="module")
def alone(judged: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What one undisturbed worker builds of four changes."""
    home = tmp_path_factory.mktemp("alone")
    fs.copy_files(str(judged), str(home / "tables"))
    settings = home / "settings.toml"
    settings.write_text(LEASE)
    ended_well(start(home, settings, heads(4), {}))
    return rows(home / "tables")


@pytest.mark.slow
def test_two_workers_of_a_home_share_what_is_to_do(judged: Path, alone: list[str], tmp_path: Path) -> None:
    home, settings = tmp_path / "home", tmp_path / "settings.toml"
    fs.copy_files(str(judged), str(home / "tables"))
    settings.write_text(LEASE)
    pair = [start(home, settings, heads(4), {}) for _ in range(2)]
    for process in pair:
        ended_well(process)
    assert rows(home / "tables") == alone
    assert set(raw(home / "tables", Build).values()) == {1}
    assert not list((home / "locks" / "alive").iterdir())


def test_a_worker_takes_over_from_one_that_is_killed_on_another_machine(
    judged: Path, tmp_path: Path, s3: None, postgres_url: str
) -> None:
    """Two homes that share tables on S3 and claims on Postgres."""
    tables = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    there, folder = place_of(tables)
    fs.copy_files(str(judged), folder, destination_filesystem=there)
    shared = {"PERFQUARRY_TABLES": tables, "PERFQUARRY_DATABASE": postgres_url}
    settings = tmp_path / "settings.toml"
    settings.write_text(LEASE)
    victim = start(tmp_path / "one", settings, heads(2), shared)
    wait_for_builds(tables, victim)
    heir = start(tmp_path / "two", settings, heads(2), shared)
    os.kill(victim.pid, signal.SIGKILL)
    victim.communicate()
    ended_well(heir)
    written = raw(tables, Build)
    assert set(written.values()) == {1} and len(written) == 2 * 2
    assert max(raw(tables, Attempt).values()) <= 2  # of the batch that was lost, at most
    assert not (tmp_path / "two" / "tables").exists()
