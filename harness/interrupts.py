"""Ctrl-C at a bad moment: between the start of a process and the line that would end it."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def interrupts_held() -> Iterator[Callable[[], None]]:
    """Handlers of SIGINT and SIGTERM run where the function it yields is called, and at the block's end: nowhere else.

    What they raise then leaves no process running and no file open. Handlers are replaced, not
    blocked: a child would inherit a blocked signal. Only the main thread runs handlers; in
    others there is nothing to hold.
    """
    arrived: list[int] = []
    handlers: dict[int, Callable[[int, FrameType | None], object]] = {}

    def deliver() -> None:
        while arrived:
            number = arrived.pop(0)
            handlers[number](number, None)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            if callable(handler := signal.getsignal(number)):
                handlers[number] = handler
                signal.signal(number, lambda given, _: arrived.append(given))
    try:
        yield deliver
    finally:
        for held, handler in handlers.items():
            signal.signal(held, handler)
        deliver()
