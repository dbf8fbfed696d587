"""A home, a server, and clients of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from asking import KEY, PRICES, STAMP
from model_server import ModelServer, serving

from perfquarry.data.home import Home
from perfquarry.data.store import TableStore
from perfquarry.llm.client import Client, open_client
from perfquarry.llm.settings import LlmSettings


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
