"""`perfquarry doctor`: what is missing on this machine, shown."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from perfquarry.data.home import Home
from perfquarry.flows.output import Listing, put
from perfquarry.harness.doctor import DoctorCheck, examine, verdict


def report(home: Home, *, as_json: bool) -> bool:
    """Prints all checks, the verdict first; whether this machine can curate."""
    checks = examine(home)
    put(checks, [verdict(checks), _checks(checks)], as_json=as_json)
    return all(check.ok or not check.needed for check in checks)


def _checks(checks: Sequence[DoctorCheck]) -> Listing:
    table = Listing(("", "check", "found"), head=False)
    for check in checks:
        mark = Text("✓", "green") if check.ok else Text("✗", "red") if check.needed else Text("!", "yellow")
        costs, remedy = ("\ncosts: ", "dim"), ("\nto do: ", "dim")
        more = () if check.ok else (costs, check.cost, remedy, check.remedy)
        table.add(mark, check.name, Text.assemble(check.found, *more))
    return table
