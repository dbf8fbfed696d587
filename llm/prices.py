"""What calls cost."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from perfquarry.llm.request import Request, Usage
from perfquarry.llm.settings import Price
from perfquarry.llm.tokens import about_tokens, most_tokens

_DATED = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")
MILLION = 1e6
_PER_REQUEST = 200
"""Tokens a provider may add around messages and schema."""


@cache
def published() -> tuple[Mapping[str, Price], float]:
    """The prices of `prices.toml` by model, and what a batch costs of them."""
    table = tomllib.loads((resources.files("perfquarry.llm") / "prices.toml").read_text())
    return {name: Price.model_validate(price) for name, price in table["models"].items()}, float(table["batch"])


class Prices:
    """Published prices, with the user's own before them."""

    def __init__(self, own: Mapping[str, Price] | None = None) -> None:
        known, self._batch = published()
        self._known = {**known, **(own or {})}

    def of(self, model: str) -> Price | None:
        """A model's price; a dated name ('-2026-01-31', '-20260131') has that of the undated one."""
        return self._known.get(model) or self._known.get(_DATED.sub("", model))

    def cost(self, model: str, usage: Usage, *, batch: bool = False) -> float | None:
        """USD of one call, or None where no price is known."""
        price = self.of(model)
        if price is None or (price.up_to is not None and usage.input_tokens > price.up_to):
            return None
        cached = price.input if price.cached_input is None else price.cached_input
        fresh = max(0, usage.input_tokens - usage.cached_tokens)
        usd = fresh * price.input + usage.cached_tokens * cached + usage.output_tokens * price.output
        return usd / MILLION * (self._batch if batch else 1)

    def most(self, request: Request[Any], *, batch: bool = False) -> float | None:
        """Upper bound of a request's USD: every byte a token of its own, and the longest answer."""
        price = self.of(request.model)
        if price is None or (price.up_to is not None and about_tokens(request.text) > price.up_to):
            return None
        usd = (most_tokens(request.text) + _PER_REQUEST) * price.input + request.max_tokens * price.output
        return usd / MILLION * (self._batch if batch else 1)
