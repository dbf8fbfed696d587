"""The logs of a run: one for people, one of JSON lines for machines, with the ids of what a line is about."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.logging import RichHandler

from perfquarry.data.errors import InputError

_ids: ContextVar[dict[str, str]] = ContextVar("ids", default={})  # noqa: B039 - never changed in place


@contextmanager
def bound(**ids: str) -> Iterator[None]:
    """Within it, lines logged by this thread carry these ids (`stage`, `change`, …)."""
    token = _ids.set({**_ids.get(), **ids})
    try:
        yield
    finally:
        _ids.reset(token)


def without_frames_of_ends() -> None:
    """From now on others do not report the threads that end because the command does, each with all its frames."""
    for name in ("prefect", "concurrent.futures"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, the ids, and the traceback of an error."""

    def __init__(self, **ids: str) -> None:
        super().__init__()
        self._of_run = ids

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **self._of_run,
            **_ids.get(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_to(folder: Path, console: Console, run: str, repository: str) -> Path:
    """Our log: everything to `RUN.log` and `RUN.jsonl` in the folder, warnings to the terminal too.

    Raises:
        InputError: the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{run}.log"
        text = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InputError(
            f"cannot write to {folder} in the home: {error.strerror}; name another home, such as --home var"
        ) from error
    text.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    lines = logging.FileHandler(path.with_suffix(".jsonl"), encoding="utf-8")
    lines.setFormatter(JsonLines(run=run, repository=repository))
    screen = RichHandler(console=console, show_path=False, show_time=False, level=logging.WARNING)
    root = logging.getLogger("perfquarry")
    for handler in root.handlers:
        handler.close()
    root.setLevel(logging.INFO)
    root.handlers[:] = [text, lines, screen]
    root.propagate = False
    return path
