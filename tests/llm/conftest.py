"""A home, a server, and clients of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field
from server import ModelServer, serving

from data.home import Home
from data.records import LlmCall, Stamp
from data.settings import LlmSettings, Price
from data.store import TableStore
from llm.client import Client, open_client
from llm.request import Message, Purpose, Request

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


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canaries; never the caller's own keys, never a real server."""
    for provider in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{provider}_API_KEY", KEY)
        monkeypatch.setenv(f"{provider}_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving(ModelServer()) as running:
        yield running


@pytest.fixture
def client(home: Home, server: ModelServer) -> Iterator[Callable[..., Client]]:
    """`client(kind, **settings)`: a client of the server, closed at the end."""
    with ExitStack() as stack:

        def make(kind: str, model: str = "m", **settings: Any) -> Client:
            address = f"{server.url}/v1" if kind == "openai" else server.url
            options = {"base_url": address, "prices": PRICES, "poll_seconds": 0.02, **settings}
            own = LlmSettings(**options)
            return stack.enter_context(open_client(f"{kind}:{model}", home, TableStore(home.tables), STAMP, own))

        yield make
