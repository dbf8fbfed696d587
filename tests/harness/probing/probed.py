"""What tests of the probe call, and how they read its report."""

from __future__ import annotations

from collections.abc import Callable

from perfquarry.harness.contracts import ProbeItem, ProbeReport

Probe = Callable[..., ProbeReport]


def by_name(report: ProbeReport) -> dict[str, ProbeItem]:
    assert report.outcome == "finished", report.output
    return {item.node.split("::", 1)[1]: item for item in report.items}
