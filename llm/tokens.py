"""Token counts without a tokenizer and without a network."""

from __future__ import annotations


def most_tokens(text: str) -> int:
    """An upper bound: a token of a byte-level tokenizer covers at least one byte of UTF-8. 3 to 4 times too high."""
    return len(text.encode(errors="replace"))


def about_tokens(text: str) -> int:
    """An estimate on the high side: 3 bytes of UTF-8 a token. English is at about 4 characters, code below."""
    return -(-most_tokens(text) // 3)
