"""Token counts without a tokenizer and without a network."""

from __future__ import annotations

from typing import Any

from perfquarry.llm.request import Request

_PER_REQUEST = 200
"""Tokens a provider may add around messages and schema."""


def most_tokens(text: str) -> int:
    """An upper bound: a token of a byte-level tokenizer covers at least one byte of UTF-8. 3 to 4 times too high."""
    return len(text.encode(errors="replace"))


def about_tokens(text: str) -> int:
    """An estimate on the high side: 3 bytes of UTF-8 a token. English is at about 4 characters, code below."""
    return -(-most_tokens(text) // 3)


def most_tokens_of(request: Request[Any]) -> int:
    """Upper bound of a request's prompt."""
    return most_tokens(request.text) + _PER_REQUEST
