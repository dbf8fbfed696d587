"""The conversation with a process that has workloads loaded: a line asks, a line answers.

What answers is hostile: a line may be anything, come late, or not at all. The clock around a request is ours.
"""

import json
import os
import select
import time
from typing import Any, Callable, Dict, Tuple

LINE_BYTES = 1 << 20
"""Longest answer."""
POLL_SECONDS = 0.2
"""Between two looks at whether the process still lives."""


class ChannelFailed(Exception):
    """No answer came, or none that can be read: `late` distinguishes the one from the other."""

    def __init__(self, message: str, late: bool = False) -> None:
        Exception.__init__(self, message)
        self.late = late


def make_pipes(ask: str, answer: str) -> None:
    """Makes the two named pipes; everybody may open them, who can reach their folder."""
    for path in (ask, answer):
        os.mkfifo(path)
        os.chmod(path, 0o666)


class Channel(object):
    """Our ends of two named pipes.

    Args:
        ask: path of the pipe that the process reads.
        answer: path of the pipe that it writes.
        alive: whether the process still lives.
    """

    def __init__(self, ask: str, answer: str, alive: Callable[[], bool]) -> None:
        self._alive = alive
        self._rest = b""
        # for reading and writing: neither end waits for the other to open, and a process that dies breaks nothing
        self._ends = [os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC) for path in (ask, answer)]
        self._poll = select.poll()
        self._poll.register(self._ends[1], select.POLLIN)

    def close(self) -> None:
        """Closes both ends."""
        while self._ends:
            os.close(self._ends.pop())

    def send(self, *words: Any) -> None:
        """Asks, without waiting for the answer.

        Raises:
            ChannelFailed: the process reads nothing.
        """
        try:
            os.write(self._ends[0], (json.dumps(words) + "\n").encode())
        except OSError as error:
            raise ChannelFailed("it reads nothing: %s" % error)

    def receive(self, seconds: float) -> Dict[str, Any]:
        """The next answer.

        Raises:
            ChannelFailed: none came within that time, the process ended, or the answer is no JSON object.
        """
        until = time.monotonic() + seconds
        while b"\n" not in self._rest:
            left = until - time.monotonic()
            if left <= 0:
                raise ChannelFailed("no answer within %g s" % seconds, late=True)
            if self._poll.poll(1000 * min(left, POLL_SECONDS)):
                self._rest += os.read(self._ends[1], 1 << 16)
                if len(self._rest) > LINE_BYTES:
                    raise ChannelFailed("an answer of more than %d bytes" % LINE_BYTES)
            elif not self._alive():
                raise ChannelFailed("the process ended")
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            found = json.loads(line.decode())
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise ChannelFailed("an answer that is no JSON object")
        return found

    def ask(self, seconds: float, *words: Any) -> Tuple[Dict[str, Any], float]:
        """The answer to a request, and the seconds that passed outside of the process.

        Raises:
            ChannelFailed: as `receive`; or there was an answer before the question.
        """
        if self._rest or self._poll.poll(0):
            raise ChannelFailed("an answer that nobody asked for")
        begin = time.perf_counter()
        self.send(*words)
        answer = self.receive(seconds)
        return answer, time.perf_counter() - begin
