"""What a person sees while a run works: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

LINE_SECONDS = 15.0
"""Without a terminal, a stage reports at most this often (seconds)."""


class Display:
    """Where stages report what they do, from any thread; this one shows nothing itself, and passes it on."""

    shown: Display | None = None
    """Receives the same."""

    def stage(self, name: str, total: int | None) -> None:
        """A stage begins; `total` is the number of steps where it is known."""
        if self.shown:
            self.shown.stage(name, total)

    def advance(self, steps: int = 1) -> None:
        """Steps of the current stage are done."""
        if self.shown:
            self.shown.advance(steps)

    def note(self, text: str) -> None:
        """What is being worked on right now."""
        if self.shown:
            self.shown.note(text)

    def finish(self, summary: str) -> None:
        """The current stage is done."""
        if self.shown:
            self.shown.finish(summary)

    def announce(self, about: str, text: str) -> None:
        """Something to be read, between two stages."""
        if self.shown:
            self.shown.announce(about, text)


class Bars(Display):
    """One progress bar a stage, kept on the screen with its summary."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓[/]"),
            TextColumn("[bold]{task.fields[name]:<9}[/]"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.description}[/]", markup=True),
            console=console,
            refresh_per_second=4,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def stage(self, name: str, total: int | None) -> None:
        """Adds the stage's bar."""
        self._task = self._progress.add_task("", total=total, name=name)

    def advance(self, steps: int = 1) -> None:
        """Moves the bar."""
        if self._task is not None:
            self._progress.advance(self._task, steps)

    def note(self, text: str) -> None:
        """Shows the text beside the bar."""
        if self._task is not None:
            self._progress.update(self._task, description=_plain(text, 60))

    def finish(self, summary: str) -> None:
        """Fills the bar and leaves the summary."""
        if self._task is None:
            return
        done = next(task for task in self._progress.tasks if task.id == self._task)
        total = done.total if done.total is not None else max(done.completed, 1)
        self._progress.update(self._task, description=summary, total=total or 1, completed=total or 1)

    def announce(self, about: str, text: str) -> None:
        """Leaves a line above the bars."""
        self._progress.console.print(f"[bold green]{escape(about):<11}[/]{escape(text)}", highlight=False)


class Lines(Display):
    """A line when a stage begins and ends and now and then between: for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._name, self._done = "", 0
        self._total: int | None = None
        self._began = self._said = time.monotonic()

    def stage(self, name: str, total: int | None) -> None:
        """Begins a stage."""
        self._name, self._total, self._done = name, total, 0
        self._began = self._said = time.monotonic()

    def advance(self, steps: int = 1) -> None:
        """Says how far it is, at most every `LINE_SECONDS`."""
        with self._lock:
            self._done += steps
            if time.monotonic() - self._said >= LINE_SECONDS:
                self._said = time.monotonic()
                of = f" of {self._total}" if self._total else ""
                self._say(f"{self._done}{of} after {time.monotonic() - self._began:.0f} s")

    def note(self, text: str) -> None:
        """Says what is worked on, or waited for, once nothing was said for `LINE_SECONDS`."""
        with self._lock:
            if text and time.monotonic() - self._said >= LINE_SECONDS:
                self._said = time.monotonic()
                self._say(_plain(text, 100))

    def finish(self, summary: str) -> None:
        """Says the summary and the time."""
        self._say(f"{summary} ({time.monotonic() - self._began:.1f} s)")

    def announce(self, about: str, text: str) -> None:
        """A line of its own."""
        self._console.print(f"{about:<9} {text}", highlight=False, soft_wrap=True, markup=False)

    def _say(self, text: str) -> None:
        self._console.print(f"{self._name:<9} {text}", highlight=False, soft_wrap=True)


_current = Display()
_muted: ContextVar[bool] = ContextVar("muted", default=False)


def current() -> Display:
    """The display of this process: stages report to it wherever they run."""
    return Display() if _muted.get() else _current


@contextmanager
def muted() -> Iterator[None]:
    """What this thread does is not shown."""
    token = _muted.set(True)
    try:
        yield
    finally:
        _muted.reset(token)


@contextmanager
def showing(console: Console, *, silent: bool = False, also: Display | None = None) -> Iterator[Display]:
    """Makes the fitting display the current one: bars on a terminal, lines elsewhere; `also` passes on to it."""
    global _current
    before = _current
    with ExitStack() as stack:
        shown = Display()
        if not silent:
            shown = stack.enter_context(Bars(console)) if console.is_terminal else Lines(console)
        _current = also or shown
        _current.shown = shown if also else None
        try:
            yield _current
        finally:
            _current = before


@contextmanager
def waiting(console: Console, about: str, text: str, *, silent: bool = False) -> Iterator[None]:
    """Says what is waited for: a spinner on a terminal; elsewhere a line, and another each `LINE_SECONDS`."""
    if silent:
        yield
        return
    line = f"{about:<9} {text}"
    if console.is_terminal:
        with console.status(escape(line)):
            yield
        console.print(escape(line), highlight=False, soft_wrap=True)
        return
    over, began = threading.Event(), time.monotonic()

    def repeat() -> None:
        console.print(line, highlight=False, soft_wrap=True, markup=False)
        while not over.wait(LINE_SECONDS):
            again = f"{about:<9} goes on after {time.monotonic() - began:.0f} s"
            console.print(again, highlight=False, soft_wrap=True, markup=False)

    repeating = threading.Thread(target=repeat, daemon=True)
    repeating.start()
    try:
        yield
    finally:
        over.set()
        repeating.join()


def _plain(text: str, width: int) -> str:
    line = text.replace("[", "\\[").splitlines()[0] if text else ""
    return line if len(line) <= width else line[: width - 1] + "…"


def waiting_for_core(waited: float) -> None:
    """Shows that other timings hold every core, and for how many seconds."""
    current().note(f"other timings run on every core: {waited:.0f} s")
