"""Sources of workloads: each gives what it has for a change."""

from __future__ import annotations

from typing import Protocol

from data.records import Source, Workload
from testgen.case import Case


class WorkloadSource(Protocol):
    """Unit tests, benchmarks of the repository, generated scripts, replayed calls."""

    @property
    def name(self) -> Source:
        """What `--workloads` calls it, and the `source` of its rows."""

    def workloads(self, case: Case) -> list[Workload]:
        """Rows of a change: kept ones first, best first, then rejected ones, each with its reason; possibly none.

        Called from several threads.

        Raises:
            SandboxUnavailable: the sandbox itself could not start.
        """
