"""Cache, limits, budget: one call for one request, never too many at once, never too dear."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asking import PRICES, calls, question
from model_server import Act, ModelServer

from perfquarry.data.errors import BudgetExceeded, InputError, ModelFailed
from perfquarry.data.home import Home
from perfquarry.llm.client import Client
from perfquarry.llm.pace import Bucket
from perfquarry.llm.prices import Prices, published
from perfquarry.llm.request import Request, Usage

Clients = Callable[..., Client]

PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from asking import STAMP, question, PRICES
from perfquarry.data.home import Home
from perfquarry.llm.settings import LlmSettings
from perfquarry.data.store import TableStore
from perfquarry.llm.client import open_client
home = Home(Path(sys.argv[2]))
settings = LlmSettings(base_url=sys.argv[3], prices=PRICES, poll_seconds=0.05, batch=sys.argv[4] == "batch")
with open_client(sys.argv[5] + ":m", home, TableStore(home.tables), STAMP, settings) as client:
    for place, answer in client.ask_all([question(f"question {n}", change=f"c{n}") for n in range(int(sys.argv[6]))]):
        print(place, answer.status, answer.cached, flush=True)
"""


def most_of(request: Request[Any], *, batch: bool = False) -> float:
    """What a request may cost at most, USD."""
    most = Prices(PRICES).most(replace(request, model="m"), batch=batch)
    assert most is not None
    return most


def program(home: Home, server: ModelServer, kind: str, mode: str, count: int) -> subprocess.Popen[str]:
    """A process of its own that asks `count` questions."""
    address = f"{server.url}/v1" if kind == "openai" else server.url
    argv = [sys.executable, "-c", PROGRAM, str(Path(__file__).parent), str(home.root), address, mode, kind, str(count)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=dict(os.environ))


def test_the_same_request_is_asked_once(client: Clients, server: ModelServer, home: Home) -> None:
    first = client("openai").ask(question())
    assert not first.cached and first.cost_usd
    again = client("openai").ask(question(change="c2"))
    assert again.cached and again.cost_usd == 0.0 and again.value == first.value and len(server.asked) == 1
    for other in (
        question(seed=1),
        question(temperature=1.0),
        question(max_tokens=7),
        question("other"),
        question(model="n"),
    ):
        assert not client("openai").ask(other).cached
    assert len(server.asked) == 6
    rows = calls(home)
    assert [row.mode for row in rows[:2]] == ["live", "cache"] and rows[1].cost_usd == 0.0 and rows[1].change_id == "c2"


def test_equal_requests_of_one_call_are_one(client: Clients, server: ModelServer) -> None:
    answers = dict(client("openai").ask_all([question(), question("b"), question()]))
    assert sorted(answers) == [0, 1, 2] and len(server.asked) == 2


@pytest.mark.slow
def test_processes_share_the_cache(server: ModelServer, home: Home) -> None:
    """Three at once, asking the same: one call a question."""
    server.script = lambda number, body: Act(delay=0.2)
    running = [program(home, server, "openai", "live", 6) for _ in range(3)]
    outputs = [one.communicate(timeout=240)[0].splitlines() for one in running]
    assert [len(lines) for lines in outputs] == [6, 6, 6] and all(one.returncode == 0 for one in running)
    assert len(server.asked) == 6
    assert sum(line.endswith("False") for lines in outputs for line in lines) == 6


def test_a_kill_loses_only_calls_under_way(server: ModelServer, home: Home) -> None:
    server.script = lambda number, body: Act(delay=0.05 * number)
    killed = program(home, server, "openai", "live", 30)
    assert killed.stdout
    done = {killed.stdout.readline().split()[0] for _ in range(6)}
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    asked = len(server.asked)
    server.script = lambda number, body: Act()
    after = program(home, server, "openai", "live", 30)
    lines = after.communicate(timeout=240)[0].splitlines()
    assert len(lines) == 30 and done <= {line.split()[0] for line in lines if line.endswith("True")}
    assert asked < 30 and len(server.asked) <= 30 + 8, "more than those under way were asked twice"


def test_a_damaged_file_of_the_cache_is_asked_anew(client: Clients, server: ModelServer, home: Home) -> None:
    client("openai").ask(question())
    (path,) = (home.llm / "replies").rglob("*.json")
    path.write_text(path.read_text()[:40])
    assert not client("openai").ask(question()).cached and client("openai").ask(question()).cached


@pytest.mark.parametrize("limit", [1, 3])
def test_the_server_sees_no_more_calls_at_once(limit: int, client: Clients, server: ModelServer) -> None:
    server.script = lambda number, body: Act(delay=0.5)  # so long that threads on a busy machine start meanwhile
    answers = list(client("openai", concurrency=limit).ask_all([question(str(n)) for n in range(9)]))
    assert len(answers) == 9 and server.most_at_once == limit


def test_threads_of_the_caller_share_the_limit(client: Clients, server: ModelServer) -> None:
    server.script = lambda number, body: Act(delay=0.1)
    asking = client("openai", concurrency=2)
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(asking.ask, [question(str(n)) for n in range(8)]))
    assert all(answer.status == "ok" for answer in answers) and server.most_at_once == 2


def test_calls_a_minute(client: Clients, server: ModelServer) -> None:
    asking = client("openai", requests_per_minute=2.0)
    bucket = asking._backend._pace._requests  # type: ignore[attr-defined]
    assert [bucket.take(1), bucket.take(1)] == [0.0, 0.0]
    assert bucket.take(0.05) == pytest.approx(1.5, abs=0.1)
    begun = time.monotonic()
    bucket._level = 0.98
    asking.ask(question())
    assert server.times[0] - begun >= 0.5


def test_a_bucket_gives_credit_and_refills() -> None:
    bucket = Bucket(60_000)
    assert bucket.take(60_000) == 0.0
    assert bucket.take(120_000) == pytest.approx(120, abs=1)


def test_the_budget_stops_and_a_rerun_goes_on(client: Clients, server: ModelServer, home: Home) -> None:
    questions = [question(f"question {n}", change=f"c{n}") for n in range(12)]
    one = most_of(questions[0])
    settings: dict[str, Any] = {"concurrency": 1, "budget_usd": one * 2}
    answered = []
    with pytest.raises(BudgetExceeded, match=r"USD spent.*perfquarry costs") as stopped:
        for place, _ in client("openai", **settings).ask_all(questions):
            answered.append(place)
    spent = sum(row.cost_usd or 0.0 for row in calls(home))
    assert 0 < len(answered) < 12 and len(server.asked) == len(answered) and spent <= one * 2
    assert f"{spent:.4f} USD spent" in str(stopped.value)
    with pytest.raises(BudgetExceeded):
        list(client("openai", **settings).ask_all(questions[len(answered) :]))
    assert len(server.asked) == len(answered), "a second run had money of its own"
    all_of_them = dict(client("openai", budget_usd=1.0).ask_all(questions))
    assert len(all_of_them) == 12 and len(server.asked) == 12
    assert sum(answer.cached for answer in all_of_them.values()) == len(answered)


def test_calls_at_once_share_the_budget(client: Clients, server: ModelServer, home: Home) -> None:
    server.script = lambda number, body: Act(delay=0.1, usage=(400, 0, 100))
    most = most_of(question())
    with pytest.raises(BudgetExceeded, match="under way"):
        list(client("openai", budget_usd=most * 3.5).ask_all([question(f"q{n:02}") for n in range(20)]))
    assert sum(row.cost_usd or 0.0 for row in calls(home)) <= most * 3.5 and server.most_at_once <= 3


def test_a_budget_needs_a_price(client: Clients, server: ModelServer, home: Home) -> None:
    with pytest.raises(InputError, match=r"price of unheard-of.*llm\.prices"):
        client("openai", model="unheard-of", budget_usd=1.0).ask(question())
    assert not server.asked
    answer = client("openai", model="unheard-of").ask(question())
    assert answer.status == "ok" and answer.cost_usd is None
    (row,) = calls(home)
    assert row.cost_usd is None and row.input_tokens == 120


def test_prices_of_models() -> None:
    prices, batch = published()
    assert batch == 0.5 and all(price.output > price.input > 0 for price in prices.values())
    known = Prices()
    usage = Usage(input_tokens=50_000, cached_tokens=10_000, output_tokens=1000)
    assert known.cost("claude-haiku-5-5-20261007", usage) == pytest.approx(
        (40_000 * 0.1 + 10_000 * 0.01 + 1000 * 0.5) / 1e6
    )
    assert known.cost("claude-haiku-5-5", Usage(input_tokens=100_001)) is None, "longer prompts cost more"
    assert known.cost("gpt-6-sol", usage, batch=True) == pytest.approx((known.cost("gpt-6-sol", usage) or 0) / 2)
    assert known.cost("llama", usage) is None


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_batches_cost_half_and_repair_in_a_second_one(
    kind: str, client: Clients, server: ModelServer, home: Home
) -> None:
    def script(number: int, body: dict[str, Any]) -> Act:
        bad = "question 1" in json.dumps(body) and len(json.dumps(body)) < 1400 and number < 4
        return Act(text="no JSON") if bad else Act()

    server.script, server.ready_after = script, 3
    questions = [question(f"question {n}", change=f"c{n}") for n in range(4)]
    answers = dict(client(kind, batch=True).ask_all(questions))
    assert [answers[n].status for n in range(4)] == ["ok"] * 4 and len(server.batches) == 2 and server.polls >= 6
    whole = (100 * 1.0 + 20 * 0.1 + 30 * 2.0) / 1e6
    assert answers[0].cost_usd == pytest.approx(whole / 2) and answers[1].cost_usd == pytest.approx(whole)
    assert {row.mode for row in calls(home)} == {"batch"} and len(calls(home)) == 5
    assert list((home.llm / "batches").rglob("*.json")) == []
    assert client(kind).ask(questions[0]).cached, "live calls know what batches answered"


@pytest.mark.parametrize("kind", ["openai", pytest.param("anthropic", marks=pytest.mark.slow)])
def test_a_batch_is_taken_up_after_a_kill(kind: str, server: ModelServer, home: Home) -> None:
    server.ready_after = 10**6
    killed = program(home, server, kind, "batch", 5)
    while not list((home.llm / "batches").rglob("*.json")):
        assert killed.poll() is None
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert len(server.batches) == 1 and not calls(home)
    server.ready_after = 0
    after = program(home, server, kind, "batch", 5)
    lines = after.communicate(timeout=240)[0].splitlines()
    assert [line.split()[1] for line in lines] == ["ok"] * 5
    assert len(server.batches) == 1 and len(server.asked) == 5, "it was submitted again"


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_what_fails_of_a_batch_is_asked_anew(kind: str, client: Clients, server: ModelServer, home: Home) -> None:
    server.script = lambda number, body: Act(status=500, error="overloaded") if "bad" in json.dumps(body) else Act()
    answered = []
    with pytest.raises(ModelFailed, match=r"1 requests of batches failed.*overloaded"):
        for place, _ in client(kind, batch=True).ask_all([question("good"), question("bad")]):
            answered.append(place)
    assert answered == [0]
    server.script = lambda number, body: Act()
    assert len(dict(client(kind, batch=True).ask_all([question("good"), question("bad")]))) == 2
    assert len(server.asked) == 3


def test_a_batch_is_as_large_as_the_budget_bears(client: Clients, server: ModelServer, home: Home) -> None:
    most = most_of(question("q00"), batch=True)
    questions = [question(f"q{n:02}") for n in range(10)]
    with pytest.raises(BudgetExceeded):
        list(client("openai", batch=True, budget_usd=most * 4.5).ask_all(questions))
    assert len(server.asked) == 4 == len(calls(home))


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_request_of_a_batch_that_is_too_long_is_refused(kind: str, client: Clients, server: ModelServer) -> None:
    server.script = lambda number, body: Act(status=400, error="prompt is too long: 9 tokens > 8 maximum")
    ((_, answer),) = client(kind, batch=True).ask_all([question()])
    assert answer.status == "refused" and "too long" in answer.detail
