"""Whether pytest can collect test files of a built side."""

from __future__ import annotations

from collections.abc import Sequence

from harness.contracts import BuiltSide, Limits, Prober, ProbeRequest

NOTHING = "::(nothing)"
"""Ending of an argument that names no test of the file: it is collected, and nothing is run."""


def uncollectable(prober: Prober, side: BuiltSide, files: Sequence[str], limits: Limits) -> str:
    """What keeps pytest from collecting the files, relative to the tree; empty when it can.

    Raises:
        SandboxUnavailable: the sandbox itself could not start.
    """
    there = [name for name in files if (side.tree / name).is_file()]
    if not there:
        return ""
    request = ProbeRequest(mode="check", arguments=[name + NOTHING for name in there])
    report = prober.run(side, request, limits=limits)
    errors = [f"{name}:\n{text}" for name, text in sorted(report.collect_errors.items())]
    if report.outcome != "finished":  # a conftest that fails ends pytest
        errors.append(f"pytest {report.outcome}:\n{report.output}")
    return "\n".join(errors)
