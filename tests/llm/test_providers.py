"""Both SDK backends against a server that speaks their wire formats."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable

import pytest
from asking import KEY, PRICES, calls, question
from model_server import Act, ModelServer

from perfquarry.data.errors import InputError, ModelFailed
from perfquarry.data.home import Home
from perfquarry.llm.client import Client

Clients = Callable[..., Client]
BOTH = pytest.mark.parametrize("kind", ["openai", "anthropic"])


def scripted(*acts: Act) -> Callable[..., Act]:
    """The acts in turn, then good answers."""
    return lambda number, body: acts[number] if number < len(acts) else Act()


@BOTH
def test_an_answer_is_validated_counted_and_priced(kind: str, client: Clients, server: ModelServer, home: Home) -> None:
    answer = client(kind).ask(question(temperature=0.5, seed=7))
    assert answer.status == "ok" and answer.value is not None
    assert (answer.value.verdict, answer.value.confidence) == ("yes", 0.5)
    assert (answer.usage.input_tokens, answer.usage.cached_tokens, answer.usage.output_tokens) == (120, 20, 30)
    assert answer.cost_usd == pytest.approx((100 * 1.0 + 20 * 0.1 + 30 * 2.0) / 1e6)
    (row,) = calls(home)
    assert (row.provider, row.model, row.mode, row.cached, row.status) == (kind, "m", "live", False, "kept")
    assert (row.stage, row.change_id, row.prompt, row.prompt_version) == ("judge", "c1", "judge", "v1")
    assert (row.input_tokens, row.cached_tokens, row.output_tokens) == (120, 20, 30)
    assert row.cost_usd == answer.cost_usd
    (body,) = server.asked
    if kind == "openai":
        assert body["response_format"]["json_schema"]["strict"] and (body["temperature"], body["seed"]) == (0.5, 7)
        assert [message["role"] for message in body["messages"]] == ["system", "user"]
    else:
        assert body["output_config"]["format"]["type"] == "json_schema" and body["system"] == "You judge."
        assert "temperature" not in body and "seed" not in body


@BOTH
def test_429_500_and_lost_connections_are_tried_again(
    kind: str, client: Clients, server: ModelServer, home: Home
) -> None:
    server.script = scripted(Act(status=429, headers={"Retry-After": "1"}), Act(status=500), Act(cut=True))
    assert client(kind).ask(question()).status == "ok"
    assert len(server.asked) == 4
    assert server.times[1] - server.times[0] >= 1.0, "Retry-After was not honoured"
    assert len(calls(home)) == 1


@BOTH
def test_a_server_that_stays_down_is_a_fault_not_an_answer(
    kind: str, client: Clients, server: ModelServer, home: Home
) -> None:
    server.script = lambda number, body: Act(status=503)
    with pytest.raises(ModelFailed, match="HTTP 503"):
        client(kind, retries=1).ask(question())
    assert len(server.asked) == 2 and not calls(home)


@BOTH
def test_a_timeout_is_tried_again(kind: str, client: Clients, server: ModelServer) -> None:
    server.script = scripted(Act(delay=1.5))
    assert client(kind, timeout=0.5, retries=1).ask(question()).status == "ok"
    server.script = lambda number, body: Act(delay=1.5)
    with pytest.raises(ModelFailed, match="Timeout"):
        client(kind, timeout=0.3, retries=0).ask(question("again"))


@BOTH
def test_a_malformed_answer_is_repaired(kind: str, client: Clients, server: ModelServer, home: Home) -> None:
    server.script = scripted(Act(text='{"verdict": "yes", "confidence": 7}'))
    answer = client(kind).ask(question())
    assert answer.status == "ok" and answer.usage.input_tokens == 240
    said = json.dumps(server.asked[1]["messages"])
    assert "confidence: Input should be less than or equal to 1" in said and '\\"confidence\\": 7' in said
    assert [(row.status, row.reason, row.repair) for row in calls(home)] == [
        ("rejected", "malformed", False),
        ("kept", None, True),
    ]


@BOTH
@pytest.mark.parametrize(
    ("act", "detail"),
    [
        (Act(text="I think so."), "Invalid JSON"),
        (Act(text=""), "empty"),
        (Act(text='{"verdict": "yes", "confi', stop="length"), "cut off"),
        (Act(text="[" * 50_000), "Invalid JSON"),
        (Act(raw='{"id": "x", "choices": ['), "cannot be read"),
        (Act(raw='{"choices": [], "content": null}'), "cannot be read"),
        (Act(raw="<html>busy</html>"), "cannot be read"),
    ],
)
def test_a_bad_answer_never_raises(
    kind: str, act: Act, detail: str, client: Clients, server: ModelServer, home: Home
) -> None:
    if act.stop and kind == "anthropic":
        act = Act(text=act.text, stop="max_tokens")
    server.script = lambda number, body: act
    answer = client(kind).ask(question())
    assert (answer.status, answer.value) == ("malformed", None) and detail in answer.detail
    assert len(server.asked) == 2
    assert {row.reason for row in calls(home)} == {"malformed"}


@BOTH
def test_refusals_are_neither_repaired_nor_raised(kind: str, client: Clients, server: ModelServer, home: Home) -> None:
    acts = [
        Act(refusal="I cannot help with that.", text="I cannot help with that.", stop="refusal"),
        Act(status=400, error="prompt is too long: 9 tokens > 8 maximum", code="context_length_exceeded"),
        Act(status=413, error="too large"),
    ]
    server.script = scripted(*acts)
    answers = [client(kind).ask(question(text)) for text in ("a", "b", "c")]
    assert [answer.status for answer in answers] == ["refused"] * 3
    assert len(server.asked) == 3 and {row.reason for row in calls(home)} == {"refused"}


ANSWER = '{"verdict": "no", "confidence": 1}'


@pytest.mark.parametrize(
    "text", [ANSWER, f"So:\n```json\n{ANSWER}\n```\nThat is all.", f"I see {{braces}} and say {ANSWER}."]
)
@BOTH
def test_servers_without_json_schema_get_the_schema_in_words(
    kind: str, text: str, client: Clients, server: ModelServer
) -> None:
    parameter = "response_format" if kind == "openai" else "output_config"
    server.script = lambda number, body: (
        Act(status=400, error=f"{parameter}: Extra inputs are not permitted") if parameter in body else Act(text=text)
    )
    asking = client(kind)
    assert [asking.ask(question(one)).status for one in ("a", "b")] == ["ok", "ok"]
    assert len(server.asked) == 3, "what the server does not support was not remembered"
    words = server.asked[1]["messages"][0]["content"] if kind == "openai" else server.asked[1]["system"]
    assert '"confidence"' in words


@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
def test_other_parameters_a_server_does_not_know_are_left_out(limit: str, client: Clients, server: ModelServer) -> None:
    unsupported = (*({"max_tokens", "max_completion_tokens"} - {limit}), "temperature", "seed")
    server.script = lambda number, body: next(
        (Act(status=400, error=f"Unsupported parameter: '{name}'") for name in unsupported if name in body), Act()
    )
    assert client("openai").ask(question(temperature=0.0, seed=1)).status == "ok"
    assert server.asked[-1][limit] == 100 and not set(unsupported) & set(server.asked[-1])


def test_usage_that_a_server_does_not_give_is_held_against_the_budget(client: Clients, server: ModelServer) -> None:
    server.script = lambda number, body: Act(usage=(0, 0, 0))
    cost = client("openai").ask(question()).cost_usd
    assert cost and cost > 100 * 2.0 / 1e6


@BOTH
@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_what_is_wrong_with_all_requests_ends_the_run(
    kind: str, status: int, client: Clients, server: ModelServer
) -> None:
    server.script = lambda number, body: Act(status=status, error="no such thing")
    with pytest.raises(ModelFailed, match=f"HTTP {status}.*no such thing"):
        client(kind).ask(question())
    assert len(server.asked) == 1


@BOTH
def test_no_key_is_left_anywhere(
    kind: str, client: Clients, server: ModelServer, home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    """Even when the server repeats it in errors and answers."""
    caplog.set_level(logging.DEBUG)
    server.script = scripted(
        Act(status=500, error=f"key {KEY} at backend"),
        Act(text=f"your key is {KEY}"),
        Act(text=json.dumps({"verdict": KEY, "confidence": 1})),
        Act(status=401, error=f"Incorrect API key provided: {KEY}"),
    )
    asking = client(kind, record=str(home.root / "cassettes"))
    answer = asking.ask(question())
    assert answer.value is not None and answer.value.verdict == "<key>"
    with pytest.raises(ModelFailed) as raised:
        asking.ask(question("again"))
    assert any(KEY in " ".join(headers.values()) for headers in server.headers), "the server never got the key"
    trace = "".join(traceback.format_exception(raised.value))
    error: BaseException | None = raised.value
    while error is not None:
        assert KEY not in repr(vars(error)) + repr(error) + str(error)
        error = error.__cause__ or error.__context__
    written = "".join(path.read_bytes().decode("latin-1") for path in home.root.rglob("*") if path.is_file())
    rows = repr(calls(home))
    for place in (trace, caplog.text, written, rows, repr(answer), repr(asking), repr(vars(asking))):
        assert KEY not in place
    assert "<key>" in written


def test_keys_and_addresses_are_checked_before_anything_is_asked(
    client: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    for provider in ("openai", "anthropic"):
        monkeypatch.delenv(f"{provider.upper()}_API_KEY")
        monkeypatch.delenv(f"{provider.upper()}_BASE_URL")
        with pytest.raises(InputError, match=f"{provider.upper()}_API_KEY"):
            client(provider, base_url=None)
        assert client(provider, prices=PRICES).ask(question()).status == "ok", "a server of one's own needs no key"
        monkeypatch.setenv(f"{provider.upper()}_BASE_URL", f"http://user:{KEY}@127.0.0.1:9/")
        with pytest.raises(InputError, match="credentials") as raised:
            client(provider, base_url=None)
        assert KEY not in str(raised.value)
