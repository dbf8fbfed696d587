"""Who answers, as the command line and the settings name it."""

from __future__ import annotations

from typing import NamedTuple

from perfquarry.data.errors import InputError

_KINDS: dict[str, str] = {
    "openai": "MODEL",
    "anthropic": "MODEL",
    "exchange": "DIR",
    "exchange-anthropic": "DIR",
    "cassette": "DIR",
}


class ModelSpec(NamedTuple):
    """Who answers: 'openai:MODEL', 'anthropic:MODEL', 'exchange:DIR', 'exchange-anthropic:DIR', 'cassette:DIR'."""

    kind: str
    rest: str

    @classmethod
    def parse(cls, text: str) -> ModelSpec:
        """Reads a spec.

        Raises:
            InputError: it is none.
        """
        kind, colon, rest = text.partition(":")
        if kind not in _KINDS or not colon or not rest.strip():
            known = ", ".join(f"{name}:{what}" for name, what in _KINDS.items())
            raise InputError(f"{text!r} names no model: {known}")
        return cls(kind, rest.strip())

    def __str__(self) -> str:
        return f"{self.kind}:{self.rest}"
