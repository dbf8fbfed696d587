"""The output of a container as its engine sends it: frames of two streams over one socket, kept up to a limit."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Iterator
from typing import Any

import docker

from perfquarry.harness.sandbox.kept import Kept

BLOCK = 1 << 18
HEADER = 8
"""Bytes before each frame: the stream's number, three of nothing, and the length in four."""
OUT, ERR = 1, 2


class Attached:
    """Reads both streams; standard input stays open for as long as this is."""

    def __init__(self, raw: Any, limit: int) -> None:
        self._raw = raw
        self._header = b""
        self._stream = OUT
        self._left = 0
        self._kept = {OUT: Kept(limit), ERR: Kept(limit)}

    @property
    def truncated(self) -> bool:
        """Whether a stream was longer than the limit."""
        return any(kept.truncated for kept in self._kept.values())

    @property
    def stdout(self) -> bytes:
        """What was kept of it."""
        return bytes(self._kept[OUT])

    @property
    def stderr(self) -> bytes:
        """What was kept of it."""
        return bytes(self._kept[ERR])

    def read(self, seconds: float) -> bool:
        """Takes what comes within that time, at most one block; False at the end of both streams."""
        waiting = select.poll()  # not select.select: descriptors may be above 1023
        waiting.register(self._raw.fileno(), select.POLLIN)
        if not waiting.poll(max(0.0, seconds) * 1000):
            return True
        data = os.read(self._raw.fileno(), BLOCK)
        self._take(memoryview(data))
        return bool(data)

    def ask(self) -> None:
        """Sends one line; nothing happens when nobody reads there any more."""
        with contextlib.suppress(OSError):
            os.write(self._raw.fileno(), b"\n")

    def _take(self, data: memoryview) -> None:
        while data:
            if not self._left:
                missing = HEADER - len(self._header)
                self._header += data[:missing]
                data = data[missing:]
                if len(self._header) == HEADER:
                    self._stream = self._header[0]
                    self._left = int.from_bytes(self._header[4:], "big")
                    self._header = b""
                continue
            part, data = data[: self._left], data[self._left :]
            self._left -= len(part)
            kept = self._kept.get(self._stream)
            if kept is not None:
                kept.take(part)


@contextlib.contextmanager
def attached(api: docker.APIClient, container: str, limit: int) -> Iterator[Attached]:
    """Attached to a container that was created; start it inside."""
    raw = api.attach_socket(container, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
    try:
        yield Attached(raw, limit)
    finally:
        # the socket belongs to the response of the request that became it
        getattr(raw, "_response", raw).close()
