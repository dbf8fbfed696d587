"""How many calls at once, and how many a minute."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

MINUTE = 60.0


class Bucket:
    """A token bucket: `per_minute` units a minute, of which at most a minute's worth is saved up."""

    def __init__(self, per_minute: float) -> None:
        self._size = per_minute
        self._level = per_minute
        self._filled_at = time.monotonic()
        self._lock = threading.Lock()

    def take(self, units: float) -> float:
        """Takes the units, on credit if need be; returns the seconds to wait before using them."""
        with self._lock:
            now = time.monotonic()
            self._level = min(self._size, self._level + (now - self._filled_at) * self._size / MINUTE)
            self._filled_at = now
            self._level -= units
            return max(0.0, -self._level * MINUTE / self._size)


class Pace:
    """Limits of one process; retries of a call are within its slot."""

    def __init__(self, concurrency: int, requests_per_minute: float | None, tokens_per_minute: float | None) -> None:
        self.concurrency = concurrency
        self._slots = threading.BoundedSemaphore(concurrency)
        self._requests = Bucket(requests_per_minute) if requests_per_minute else None
        self._tokens = Bucket(tokens_per_minute) if tokens_per_minute else None

    @contextmanager
    def slot(self, tokens: int) -> Iterator[None]:
        """Waits until one more call of so many tokens fits."""
        with self._slots:
            waits = [self._requests.take(1)] if self._requests else []
            waits += [self._tokens.take(tokens)] if self._tokens else []
            if wait := max(waits, default=0.0):
                time.sleep(wait)
            yield
