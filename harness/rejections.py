"""What a step of a build returns when the commit, not our machinery, is at fault."""

from __future__ import annotations

from dataclasses import dataclass

from perfquarry.data.records import Reason

LOG_BYTES = 16 * 1024
"""Bytes of a log that rows keep: its end."""


@dataclass(frozen=True)
class Rejection:
    """The reason with the log that shows it; becomes a rejected row."""

    reason: Reason
    log: str


def tail(text: str, limit: int = LOG_BYTES) -> str:
    """The end of a text, at most `limit` bytes of UTF-8, its start marked when something was cut.

    Of what is cut, the first lines that report an error stay, up to a quarter of the limit: builds that run
    several compilers print the warnings of the others after the one that failed.
    """
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode("utf-8", "replace")
    cut = data[: len(data) - limit * 3 // 4].decode("utf-8", "ignore")
    errors = ""
    for line in cut.splitlines()[:-1]:
        if _reports_error(line) and len(errors) + len(line) < limit // 8:  # of characters that take two bytes
            errors += f"{line}\n"
    mark = f"[...]\n{errors}[...]\n" if errors else "[...]\n"
    return mark + data[-(limit - len(mark.encode())) :].decode("utf-8", "ignore")


def _reports_error(line: str) -> bool:
    """As compilers, meson, ninja, CMake and Python say it."""
    return line.lstrip().startswith(("FAILED: ", "ERROR: ")) or any(
        word in line for word in (" error: ", "Error: ", " ERROR: ")
    )
