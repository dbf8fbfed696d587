"""What tests of the probe call, and how they read its report."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

from uv import find_uv_bin

from perfquarry.harness.contracts import ProbeItem, ProbeReport

Probe = Callable[..., ProbeReport]


def uv(*arguments: str) -> None:
    done = subprocess.run([find_uv_bin(), *arguments], capture_output=True, text=True, check=False, env={**os.environ})
    assert done.returncode == 0, done.stderr


def by_name(report: ProbeReport) -> dict[str, ProbeItem]:
    assert report.outcome == "finished", report.output
    return {item.node.split("::", 1)[1]: item for item in report.items}
