"""What must not be written down."""

from __future__ import annotations

import os
import re

_NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?|HEADERS)$", re.IGNORECASE)
_SHORTEST = 8
"""Shorter values are no keys; taking them out would mutilate texts."""


def without_secrets(text: str) -> str:
    """The text without the keys in this process's environment: a server may repeat the one it was given."""
    found = [value for name, value in os.environ.items() if _NAMES.search(name)]
    values = {part for value in found for part in (value.strip(), *value.split())}
    for value in sorted((value for value in values if len(value) >= _SHORTEST), key=len, reverse=True):
        text = text.replace(value, "<key>")
    return text
