"""Changes of the next wave are built and searched while a core is free of the present wave's timings.

The last change of a wave may be timed for minutes: without this the other cores had nothing to do meanwhile.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from perfquarry.data.errors import MachineBusy
from perfquarry.flows.display import muted
from perfquarry.flows.run import Run
from perfquarry.flows.stages import Batch, Stage
from perfquarry.harness.measuring.machine import measurement_lock

LOOK_SECONDS = 3.0
"""Between two looks whether a core is free."""
LEAST_SECONDS = 60.0
"""Of a run's time that must be left for something to be begun ahead: its end would wait for it."""
_log = logging.getLogger("perfquarry.flows")

Attempt = Callable[[Run, Stage, Batch, float], object]
"""Does a batch, and keeps what goes wrong to itself: the wave whose turn it is tries it again, and reports it."""


class Ahead:
    """Does stages of changes beside the timings of others; what it begins, it ends before the next wave begins.

    Args:
        run: the run.
        stages: those before the timing, in their order.
        attempt: does a batch.
    """

    def __init__(self, run: Run, stages: Sequence[Stage], attempt: Attempt) -> None:
        self._run, self._stages, self._attempt = run, stages, attempt
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, changes: Sequence[str], spare: Callable[[], bool]) -> None:
        """Begins with the first of these changes once a core is free.

        Args:
            changes: in the order in which they are taken.
            spare: whether the timings leave one of the run's jobs to it.
        """
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(changes, spare, self._ended), name="ahead")
        self._thread.start()

    @property
    def is_at_work(self) -> bool:
        """Whether something that it has begun is not done yet."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """Nothing more is begun."""
        self._ended.set()

    def join(self) -> None:
        """Nothing more is begun, and what was is waited for."""
        self.stop()
        if self._thread:
            self._thread.join()

    def _work(self, changes: Sequence[str], spare: Callable[[], bool], ended: threading.Event) -> None:
        with muted():
            for change in changes:
                for stage in self._stages:
                    try:
                        while not ended.wait(LOOK_SECONDS) and not (spare() and _a_core_is_free()):
                            pass
                        if ended.is_set() or self._run.seconds_left < LEAST_SECONDS:
                            return
                        self._do(stage, change)
                    except BaseException as error:  # noqa: BLE001  # Ctrl-C ends it together with the timings
                        _log.info("%s of %s ahead of its wave was not done: %r", stage.name, change, error)
                        return

    def _do(self, stage: Stage, change: str) -> None:
        since = self._run.claims.now()
        if (change,) in stage.todo(self._run):
            self._attempt(self._run, stage, (change,), since)


def _a_core_is_free() -> bool:
    try:
        with measurement_lock(0.0):
            return True
    except MachineBusy:
        return False
