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
    """The end of a text, at most `limit` bytes of UTF-8, its start marked when something was cut."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode("utf-8", "replace")
    mark = "[...]\n"
    return mark + data[-(limit - len(mark)) :].decode("utf-8", "ignore")
