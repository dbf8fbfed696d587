"""An exported task in a real container, where the grader is root and what it starts is nobody."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from perfquarry.data.errors import SandboxUnavailable
from perfquarry.data.home import Home
from perfquarry.harness.images.sides import Images
from perfquarry.harness.sandbox import choose_sandbox
from tests.system.cheats.gradings import SCHEDULE, Exported, export_task
from tests.system.hostile.host import visible_folder

pytestmark = pytest.mark.slow
IMAGE = "perfquarry-test/harbor:container"
MEDDLES = """
import json, os, shutil
for place in ("/logs/verifier/reward.json", "/tests/task.json", "/perfquarry/base/quarrykit/graph.py", "/tmp/left"):
    try:
        with open(place, "w") as file:
            json.dump({"reward": 1}, file)
    except OSError:
        pass
if os.fork() == 0:
    os.setsid()
    while True:
        pass
"""


def docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=1000, check=False)
    assert done.returncode == 0, f"docker {arguments}: {done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def exported() -> Iterator[Exported]:
    if shutil.which("docker") is None:
        pytest.skip("no `docker` command (Debian: apt-get install docker.io)")
    try:
        choose_sandbox("docker")
    except SandboxUnavailable as error:
        pytest.skip(f"docker does not work here: {error}")
    with visible_folder() as place:
        images = Images(Home(place / "home"))
        made = export_task(place, lambda side: images.ensure(side, datetime(2024, 1, 1, tzinfo=UTC)).name)
        task = json.loads((made.folder / "tests" / "task.json").read_text())
        task["schedule"] |= SCHEDULE
        (made.folder / "tests" / "task.json").write_text(json.dumps(task))
        docker("build", "-q", "--network", "none", "-t", IMAGE, str(made.folder / "environment"))
        try:
            yield made
        finally:
            docker("image", "rm", "-f", IMAGE)


def grade(exported: Exported, change: str) -> tuple[dict[str, Any], list[str]]:
    """What the grader says of the base after a shell command, and what lies in /logs/verifier and /tmp then."""
    mounts = ["-v", f"{exported.folder / 'tests'}:/given:ro", "-v", f"{exported.folder / 'solution'}:/solution:ro"]
    show = (
        "cat /logs/verifier/grading.json; echo; cat /logs/verifier/reward.json || echo {}; echo; ls /logs/verifier /tmp"
    )
    script = f"cp -r /given /tests; {change}; /tests/test.sh >/dev/null; {show}"
    said = docker("run", "--rm", "--network", "none", *mounts, IMAGE, "sh", "-c", script)
    text, _, rest = said.partition("\n}\n")
    facts = json.loads(text + "\n}")
    reward, *files = rest.strip().splitlines()
    assert json.loads(reward).get("reward") == facts["reward"]
    return facts, files


def test_the_experts_files_score(exported: Exported) -> None:
    facts, _ = grade(exported, "sh /solution/solve.sh")
    assert facts["reward"] == 1, facts


def test_what_meddles_changes_nothing(exported: Exported) -> None:
    (exported.folder / "solution" / "meddles.py").write_text(MEDDLES)
    facts, files = grade(exported, "cat /solution/meddles.py >> /testbed/quarrykit/__init__.py")
    assert facts["reward"] == 0 and facts["changed"] == ["quarrykit/__init__.py"], facts
    assert "left" not in files and set(files) >= {"grading.json", "reward.json"}


def test_the_image_has_no_more_than_the_base(exported: Exported) -> None:
    listing = docker("run", "--rm", "--network", "none", IMAGE, "sh", "-c", "find / -xdev -name '*.py' -path '*graph*'")
    trees = [line for line in listing.splitlines() if "quarrykit" in line]
    assert trees == ["/testbed/quarrykit/graph.py"]
    text = docker("run", "--rm", "--network", "none", IMAGE, "cat", "/testbed/quarrykit/graph.py")
    assert "seen | {successor}" in text
