"""Script workloads: texts that define the six functions of GSO's tests, so that GSO's tooling runs them, too.

`setup() -> data` (untimed, deterministic), `experiment(data) -> result` (what is timed),
`store_result(result, filename)`, `load_result(filename) -> result` (JSON or the like, never pickle),
`check_equivalence(reference_result, current_result)` (asserts), and
`run_test(eqcheck=False, reference=False, prefix="") -> float` (seconds).
"""

from __future__ import annotations

from dataclasses import dataclass

from data.records import Source


@dataclass(frozen=True)
class Script:
    """One script, before it is known whether it is usable."""

    code: str
    source: Source
    note: str = ""
    """One line for people: what it exercises."""
