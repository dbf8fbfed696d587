"""What the tests ask, and what the ledger says of it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from perfquarry.data.home import Home
from perfquarry.data.records import LlmCall, Stamp
from perfquarry.data.store import TableStore
from perfquarry.llm.request import Message, Purpose, Request
from perfquarry.llm.settings import Price

STAMP = Stamp(repo="lib", stage_version="1", config_hash="c")
KEY = "sk-pqcanary0123456789abcdef"
PRICES = {"m": Price(input=1.0, cached_input=0.1, output=2.0)}


class Verdict(BaseModel):
    verdict: str
    confidence: float = Field(ge=0, le=1)
    note: str | None = None


def question(text: str = "Is it faster?", change: str = "c1", **options: Any) -> Request[Verdict]:
    purpose = Purpose(stage="judge", change_id=change, prompt="judge", prompt_version="v1", prompt_hash="aa")
    options = {"max_tokens": 100, **options}
    return Request((Message(role="user", text=text),), Verdict, purpose, system="You judge.", **options)


def calls(home: Home) -> list[LlmCall]:
    return list(TableStore(home.tables).records(LlmCall, "lib"))
