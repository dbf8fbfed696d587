"""Plugin of pytest: what runs is seen from outside, the end of a worker ends nothing else (decision 0069), and how
long each test took is kept (`.pytest_cache/v/SECONDS`).
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

SECONDS = "perfquarry/seconds"
"""Key in pytest's cache: by test the seconds that it and its fixtures took when it last ran."""
_took: Counter[str] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _took[report.nodeid] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if getattr(config, "cache", None) and not hasattr(config, "workerinput"):
        config.cache.set(
            SECONDS, config.cache.get(SECONDS, {}) | {name: round(took, 2) for name, took in _took.items()}
        )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool, bool]:
    """What runs is written down: `.ci/run` sees by it what hangs where no timer of the process can run."""
    file = item.config.rootpath / ".pytest_cache" / "running" / str(os.getpid())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(item.nodeid, encoding="utf-8")
    try:
        return (yield)
    finally:
        file.unlink(missing_ok=True)


class CrashedOnce(LoadFileScheduling):
    """A test that ends its worker is reported, and not run again in the next one, which it would end, too.

    After the end of a worker xdist's own scheduler hands out files of which nothing is left to run, and those who get
    them wait for ever; and it gives work to a worker that has not collected yet, or has just ended, which ends the run.
    """

    def _assign_work_unit(self, node: Any) -> None:
        with contextlib.suppress(OSError):  # it has ended, which is reported next: `remove_node` gives the work back
            super()._assign_work_unit(node)

    def _reschedule(self, node: Any) -> None:
        if node in self.registered_collections:
            super()._reschedule(node)

    def remove_node(self, node: Any) -> str | None:
        """The test that ran in a worker that is gone; what was left to it goes to the others."""
        units = self.assigned_work[node]
        crashed = next(((unit, name) for unit in units.values() for name, done in unit.items() if not done), None)
        if crashed is not None:
            crashed[0][crashed[1]] = True
        for scope in [scope for scope, unit in units.items() if all(unit.values())]:
            del units[scope]
        super().remove_node(node)
        return crashed[1] if crashed else None


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    return CrashedOnce(config, log) if config.getvalue("dist") == "loadfile" else None
