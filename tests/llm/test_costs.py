"""The ledger summed up, and the verb that prints it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from asking import question
from model_server import Act, ModelServer
from typer.testing import CliRunner

from perfquarry.data.home import Home
from perfquarry.data.store import TableStore
from perfquarry.flows.cli import app
from perfquarry.llm.client import Client
from perfquarry.llm.costs import costs

ONE = (100 * 1.0 + 20 * 0.1 + 30 * 2.0) / 1e6
"""USD of the server's usual answer at the tests' prices."""


@pytest.fixture
def home_with_calls(client: Callable[..., Client], server: ModelServer, home: Home) -> Home:
    server.script = lambda number, body: Act(text="bad") if "c2" in json.dumps(body["messages"]) else Act()
    list(client("openai").ask_all([question(f"about c{n}", change=f"c{n}") for n in range(3)]))
    client("openai").ask(question("about c0", change="c0"))
    client("openai", model="unheard-of").ask(question("about c3", change="c3"))
    return home


def test_sums_by_stage_change_and_prompt(home_with_calls: Home) -> None:
    store = TableStore(home_with_calls.tables)
    known, unknown = costs(store, ["lib"])
    assert known.group == {"repo": "lib", "stage": "judge", "provider": "openai", "model": "m"}
    assert (known.changes, known.calls, known.cached, known.malformed, known.refused) == (3, 5, 1, 2, 0)
    assert (known.input_tokens, known.cached_tokens, known.output_tokens) == (480, 80, 120), "the cache's are not paid"
    assert known.usd == pytest.approx(4 * ONE) and known.usd_per_1000_changes == pytest.approx(4 * ONE / 3 * 1000)
    assert (unknown.group["model"], unknown.usd, unknown.unpriced, unknown.usd_per_1000_changes) == (
        "unheard-of",
        0,
        1,
        None,
    )
    changes = {cost.group["change_id"]: cost for cost in costs(store, ["lib"], "change")}
    assert {name: cost.calls for name, cost in changes.items()} == {"c0": 2, "c1": 1, "c2": 2, "c3": 1}
    assert changes["c2"].usd == pytest.approx(2 * ONE)
    assert {cost.group["prompt_version"] for cost in costs(store, ["lib"], "prompt")} == {"v1"}
    assert costs(store, []) == []


def test_the_verb_prints_a_table_or_json(home_with_calls: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")

    def said(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["costs", *arguments, "--home", str(home_with_calls.root)])
        assert done.exit_code == 0, done.output
        return done.output

    printed: dict[str, Any] = json.loads(said("--json"))
    assert printed["usd"] == pytest.approx(4 * ONE) and printed["unpriced"] == 1 and len(printed["rows"]) == 2
    assert len(json.loads(said("--by", "change", "--json"))["rows"]) == 4
    text = said()
    assert "unheard-of" in text and "0.0006 USD in all; the price of 1 calls is not known" in text
    assert "no model was asked for demo" in said("demo")
    assert json.loads(said("demo", "--json"))["rows"] == []
