"""What is kept of a command's output: its beginning and its end, however much comes between."""

from __future__ import annotations


class Kept:
    """Takes a stream of any length and keeps at most `limit` bytes, half of them its last.

    The end of a build's log says that it failed and the beginning how it was called; which
    of the two is needed is not known while it is read.
    """

    def __init__(self, limit: int) -> None:
        self._first = limit - limit // 2
        self._last = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.truncated = False
        """Whether something was thrown away."""

    def take(self, data: bytes | memoryview) -> None:
        """The next piece of the stream."""
        room = self._first - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        over = len(self._tail) - self._last
        if over > 0:
            del self._tail[:over]
            self.truncated = True

    def __bytes__(self) -> bytes:
        return bytes(self._head + self._tail)
