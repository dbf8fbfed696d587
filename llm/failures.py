"""The one seam where the SDKs' errors become ours; no text of theirs passes with a key in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from perfquarry.data.errors import ModelFailed
from perfquarry.llm.request import Reply
from perfquarry.llm.secrets import without_secrets

_REMEDIES = {
    401: "is the key in the environment right?",
    403: "may this key use the model?",
    404: "does this server have the model?",
    429: "still too many requests after all retries: lower concurrency, requests_per_minute or tokens_per_minute",
}
_ABOUT_THE_TEXT = (
    "context_length_exceeded", "prompt is too long", "maximum context length", "request_too_large",
    "string_above_max_length", "content_filter", "content_policy", "content management policy",
)  # fmt: skip


def words_of(body: object) -> str:
    """The words of an error's body, without keys."""
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str)
    return without_secrets(text)[:800]


def failed(what: str, where: str, error: Exception) -> ModelFailed:
    """The error to raise for one of an SDK."""
    status = getattr(error, "status_code", None)
    if status is None:
        kind = type(error).__name__
        text = f"{kind} after all retries: is the server up, and `timeout` long enough?"
    else:
        text = f"HTTP {status}: {words_of(getattr(error, 'body', ''))}"
        if remedy := _REMEDIES.get(status):
            text += f" ({remedy})"
    return ModelFailed(f"cannot ask {what} at {where}: {text}. What was answered is kept: run again to go on.")


def about_the_text(status: int, body: object) -> Reply | None:
    """A reply in place of an error that speaks of this one request: too long, or against the provider's rules."""
    words = words_of(body)
    if status == 413 or (status in (400, 422) and any(mark in words.lower() for mark in _ABOUT_THE_TEXT)):
        return Reply(text=f"HTTP {status}: {words}", stop="refusal")
    return None


def loaded(text: str) -> Mapping[str, Any]:
    """A response's body. An empty mapping when it is no JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
