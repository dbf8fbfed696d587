"""Servers that tests of several rooms share, one of each a worker of pytest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from _pytest.mark.expression import Expression

from tests import bare_python as bare
from tests.forked import forking
from tests.real_servers import postgres, postgres_binaries, s3_server
from tests.running import (  # noqa: F401  # hooks
    pytest_runtest_logreport,
    pytest_runtest_protocol,
    pytest_sessionfinish,
    pytest_xdist_make_scheduler,
)

LANES = {"system": "system", "harness": "sandbox", "testgen": "sandbox", "benchmarks": "sandbox"}
"""What the tests of a folder need; those of the others are unit tests."""
MARKS = {"slow", "unit", *LANES.values()}
"""What a choice of tests may name that leaves files out."""
WHOLE = {
    *("test_builds", "test_native", "test_repair", "test_stand_in", "test_docker_images", "test_builds_benchmark"),
    *("test_schedule", "test_counting", "test_sessions", "test_live", "test_busy_sandbox", "test_formats"),
    *("test_screening_runs", "test_release_upload", "test_environments", "test_docker", "test_store_s3"),
    *("test_keeping", "test_unit_tests", "test_misbehaviour", "test_probe_versions"),
    *("test_conformance", "test_isolation"),
}
"""Files of whole builds, searches, sessions of timings and servers, half a minute each and more, and those that need
Docker's base image, which CI makes while the first lanes run: of the last lane."""

LONGEST = ("test_docs_commands", "test_evaluate", "test_resume")
"""Files with the shared home that take minutes; the first of them makes it."""


def lane_of(path: Path) -> str:
    """The lane of a file of tests."""
    folder = path.relative_to(Path(__file__).parent).parts[0]
    return "system" if path.stem in WHOLE else LANES.get(folder, "unit")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files of other lanes are not imported: each worker would need seconds for them."""
    wanted = config.option.markexpr
    if not wanted or collection_path.suffix != ".py" or not {*re.findall(r"\w+", wanted)} <= {*MARKS, "not", "and"}:
        return None
    marks = {lane_of(collection_path)}
    chosen = Expression.compile(wanted)
    fits = any(chosen.evaluate(one.__contains__) for one in (marks, marks | {"slow"}))
    return None if fits else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each test gets its lane; those that take longest come first, or one worker ends long after the others.

    One worker makes the home that many files of the last lane share; the others begin with files that do without.
    """
    for item in items:
        item.add_marker(lane_of(item.path))
    sharing = {item.path for item in items if "curated" in getattr(item, "fixturenames", ())}
    items.sort(key=lambda item: item.path.stem not in LONGEST)
    items.sort(key=lambda item: item.path in sharing and item.path.stem != LONGEST[0])
    items.sort(key=lambda item: item.get_closest_marker("unit") is not None)
    items.sort(key=lambda item: item.get_closest_marker("system") is None)


@pytest.fixture(scope="session")
def forked() -> Iterator[list[str]]:
    """The words that the arguments of `perfquarry` follow; its libraries are imported once for all tests."""
    with TemporaryDirectory() as folder, forking(Path(folder)) as words:
        yield words


@pytest.fixture(scope="session")
def bare_python() -> Path:
    """The interpreter of a virtual environment that holds copies of our pytest and what it needs."""
    return bare.bare_python()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """SQLAlchemy URL of a real Postgres with an empty database."""
    binaries = postgres_binaries()
    if binaries is None:
        pytest.skip("no Postgres server on this machine (Debian: postgresql)")
    with postgres(binaries) as url:
        yield url


@pytest.fixture(scope="session")
def s3_variables() -> Iterator[dict[str, str]]:
    """The variables that name a real S3 server with the bucket `tables`."""
    with s3_server() as variables:
        yield variables


@pytest.fixture
def s3(s3_variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is where this test and its processes look for S3."""
    for name, value in s3_variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
