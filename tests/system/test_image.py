"""`perfquarry image`: a task's base as a container image in a file, on a real engine."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perfquarry.data.demo import expected
from perfquarry.data.errors import SandboxUnavailable
from perfquarry.harness.contracts import Command, Limits
from perfquarry.harness.grading.task_folder import TESTBED
from perfquarry.harness.images.sides import import_image
from perfquarry.harness.sandbox import choose_sandbox
from perfquarry.harness.sandbox.docker import DockerSandbox
from perfquarry.harness.sandbox.engine import connected
from tests.system.hostile.host import visible_folder


@pytest.fixture
def home() -> Iterator[Path]:
    """Not in /tmp, which every container has of its own."""
    try:
        choose_sandbox("docker")
    except SandboxUnavailable as error:
        pytest.skip(f"docker does not work here: {error}")
    with visible_folder() as folder:
        yield folder / "home"


@pytest.mark.slow
def test_the_image_of_a_task_runs_its_tests_anywhere(
    home: Path, tmp_path: Path, perfquarry: Callable[..., Any], facts: Callable[..., Any], quick: Path
) -> None:
    largest = max((one for one in expected() if one.speedup), key=lambda one: one.speedup or (0, 0))
    perfquarry(home, "curate", "demo", "--no-server", "--changes", largest.head_sha, "--settings", str(quick))
    (task,) = facts(home, "tasks", "demo")
    archive = tmp_path / "task.tar"
    made = facts(home, "image", task["task_id"], "--to", str(archive))
    shown = facts(home, "show", task["task_id"])["task"]
    assert shown["image_digest"] == made["digest"] and shown["speedup"] == task["speedup"]
    assert len(made["layers"]) in (3, 4, 5) and made["bytes"] == archive.stat().st_size

    with connected("remove what is to come back from the file") as api:
        api.remove_image(made["image"])
    python = next((home / "environments").glob("*/*/bin/python"))
    shutil.rmtree(home / "trees")
    try:
        loaded = DockerSandbox(image=import_image(archive, made["digest"]), holds=(Path(TESTBED), python.parents[1]))
        (workload, *_) = shown["workloads"]
        done = loaded.run(
            Command(
                (str(python), "-m", "pytest", "-q", workload["code"]),
                cwd=Path(TESTBED),
                limits=Limits(wall_seconds=60.0),
            )
        )
        assert done.ok and b"1 passed" in done.stdout, done.stdout + done.stderr
    finally:
        with connected("remove what the test made") as api:
            api.remove_image(loaded.image)


def test_what_is_no_task_has_no_image(home: Path, tmp_path: Path, perfquarry: Callable[..., Any]) -> None:
    said = perfquarry(home, "image", "demo-0000000000", "--to", str(tmp_path / "x.tar"), code=2).stderr
    assert "no task 'demo-0000000000'" in said and not (tmp_path / "x.tar").exists()
