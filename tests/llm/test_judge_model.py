"""The judge that asks models, against servers of both formats, over the demo's history."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asking import KEY, PRICES, STAMP, calls
from model_server import Act, ModelServer
from test_prompts import unfenced

from perfquarry.data.demo import build_demo, expected
from perfquarry.data.errors import AnswersAwaited, BudgetExceeded, InputError, ModelFailed
from perfquarry.data.home import Home
from perfquarry.data.records import Change, Reason, Verdict
from perfquarry.data.store import TableStore
from perfquarry.llm.client import Client, open_client
from perfquarry.llm.fences import visible
from perfquarry.llm.openai_provider import OpenAIProvider
from perfquarry.llm.recordings import Recording
from perfquarry.llm.settings import LlmSettings
from perfquarry.miners.history import crawl
from perfquarry.miners.judge import Judge, Questions, make_judge
from perfquarry.miners.settings import JudgeSettings, MineSettings

CASSETTES = Path(__file__).parents[2] / "data" / "demo" / "cassettes" / "judge"
CORPUS = tomllib.loads((Path(__file__).parent / "injections" / "corpus.toml").read_text())["text"]
CASCADE = JudgeSettings(judge="cascade", model="openai:m")
ALONE = JudgeSettings(judge="openai:m", votes=1)
LABELS = {one.head_sha: one.label for one in expected()}
GOES_ON = {one.label for one in expected() if one.stage not in ("mine", "judge")}
"""What the cascade must let through: not the fix and the feature that the heuristic lets through."""

History = tuple[Path, list[Change]]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> History:
    clone = tmp_path_factory.mktemp("demo") / "demo"
    build_demo(clone)
    return clone, [change for change in crawl(clone, STAMP, MineSettings()) if change.status == "kept"]


def named(demo: History, label: str) -> Change:
    return next(change for change in demo[1] if LABELS[change.head_sha] == label)


def by_title(demo: History) -> dict[str, dict[int, str]]:
    """The cassettes' answers by a change's title and vote."""
    answers: dict[str, dict[int, str]] = {}
    for change in demo[1]:
        for path in CASSETTES.glob(f"{LABELS[change.head_sha]}-[0-9].json"):
            reply = Recording.model_validate_json(path.read_text()).reply
            answers.setdefault(change.title, {})[int(path.stem[-1])] = reply.text
    return answers


def title_in(body: dict[str, Any]) -> str:
    found = re.search(r"<<<commit message [^\n]*\n([^\n]*)", json.dumps(body["messages"]).replace("\\n", "\n"))
    assert found
    return found[1]


def answering(demo: History, delay: float = 0.0) -> Callable[[int, dict[str, Any]], Act]:
    """A model that says what the cassettes say, to each vote in turn; to a second round, what the repair says."""
    answers, asked = by_title(demo), dict[str, int]()

    def script(number: int, body: dict[str, Any]) -> Act:
        title = title_in(body)
        if "not a valid answer" in json.dumps(body["messages"]):
            return Act(
                text=Recording.model_validate_json((CASSETTES / "rank-broken-1-repair.json").read_text()).reply.text
            )
        asked[title] = asked.get(title, 0) + 1
        return Act(text=answers[title][asked[title]], delay=delay)

    return script


def judge_of(client: Client, demo: History, settings: JudgeSettings = CASCADE, **options: Any) -> Judge:
    return make_judge(settings, STAMP, client, demo[0], **options)


def verdicts(judge: Judge, demo: History) -> dict[str, Verdict]:
    heads = {change.change_id: LABELS[change.head_sha] for change in demo[1]}
    found = [(heads[verdict.change_id], verdict) for verdict in judge.judge_all(demo[1])]
    assert len(dict(found)) == len(found), "one verdict a change"
    return dict(found)


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_the_cascade_over_the_demo(kind: str, demo: History, client: Any, server: ModelServer, home: Home) -> None:
    server.script = answering(demo, delay=0.05)
    settings = JudgeSettings(judge="cascade", model=f"{kind}:m")
    found = verdicts(judge_of(client(kind), demo, settings, at_once=12), demo)
    assert {label for label, verdict in found.items() if verdict.status == "kept"} == GOES_ON
    sent = {label: verdict for label, verdict in found.items() if verdict.judge != "heuristic"}
    assert len(sent) == 18 and {verdict.judge for verdict in sent.values()} == {f"{kind}:m"}
    assert server.most_at_once > 3, "many at a time"

    heap = sent["topological-heap"]
    assert (heap.is_performance, heap.apis) == ("yes", ["quarrykit.graph.topological_order"])
    assert heap.signals[0].name == "data structure" and heap.signals[1].evidence == "ready.sort()"
    assert heap.why.startswith("The list of free nodes") and heap.probability == pytest.approx(0.95)
    assert heap.tokens == 150 and not heap.cached
    votes = sent["moving-median-slower"]
    said = votes.why.partition(".")[0]  # Anthropic's API has no seeds: whichever call comes first is its second vote
    assert said in ("votes: unsure, yes, no", "votes: unsure, no, yes") and votes.tokens == 450
    assert votes.is_performance == "unsure" and votes.status == "kept"
    misquoted = sent["select-once-wip"]
    assert misquoted.tokens == 450 and misquoted.is_performance == "yes"
    assert sent["rank-broken"].tokens == 300, "with the second round"
    assert (found["ini-semicolons"].reason, found["revert" if "revert" in found else "rank-revert"].reason) == (
        Reason.UNLIKELY, Reason.REVERT,
    )  # fmt: skip
    spent = sum(verdict.cost_usd or 0 for verdict in found.values())
    assert spent == pytest.approx(sum(call.cost_usd or 0 for call in calls(home))) and spent > 0

    before = len(server.asked)
    again = verdicts(judge_of(client(kind), demo, settings), demo)
    assert len(server.asked) == before, "nothing is asked twice"
    assert all(verdict.cached and verdict.cost_usd == 0 for label, verdict in again.items() if label in sent)
    unlike = {"created_at", "cached", "cost_usd"}
    assert {n: v.model_dump(exclude=unlike) for n, v in again.items()} == {
        n: v.model_dump(exclude=unlike) for n, v in found.items()
    }


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_bad_answers_are_rows(kind: str, demo: History, client: Any, server: ModelServer) -> None:
    good = answering(demo)
    acts = {
        "Use a heap in shortest_path": Act(text='{"why": "cut'),
        "Rework interval merging": Act(
            text="I cannot", refusal="I cannot help", stop="refusal" if kind == "anthropic" else None
        ),
        "Speed up moving_median": Act(raw="<html>no JSON"),
        "Let suggest() end at its limit": Act(
            status=400, error="prompt is too long: 300000 tokens", code="context_length_exceeded"
        ),
    }  # fmt: skip
    server.script = lambda number, body: acts.get(title_in(body)) or good(number, body)
    found = verdicts(judge_of(client(kind), demo), demo)
    assert {label: found[label].reason for label in (
        "shortest-path-heap", "intervals-merge", "moving-median-slower", "suggest-limit")} == {
        "shortest-path-heap": Reason.MALFORMED, "intervals-merge": Reason.REFUSED,
        "moving-median-slower": Reason.MALFORMED, "suggest-limit": Reason.REFUSED,
    }  # fmt: skip
    bad = [verdict for verdict in found.values() if verdict.reason in (Reason.MALFORMED, Reason.REFUSED)]
    assert all((v.status, v.is_performance, v.judge) == ("rejected", "unsure", "openai:m") for v in bad)
    assert len(bad) == 4 and found["topological-heap"].status == "kept"


def test_a_bad_vote_leaves_the_others(demo: History, client: Any, server: ModelServer) -> None:
    good = answering(demo)
    server.script = lambda number, body: Act(text="no") if body.get("seed") == 3 else good(number, body)
    verdict = judge_of(client("openai"), demo).judge(named(demo, "moving-median-slower"))
    assert verdict.why.startswith("votes: unsure, yes.") and verdict.status == "kept"


def test_a_server_that_fails_raises_after_the_verdicts_that_came(
    demo: History, client: Any, server: ModelServer
) -> None:
    good = answering(demo)
    server.script = lambda number, body: good(number, body) if number < 5 else Act(status=500)
    judge = judge_of(client("openai", retries=0, concurrency=1), demo)
    came: list[Verdict] = []
    with pytest.raises(ModelFailed):
        for verdict in judge.judge_all(demo[1]):
            came.append(verdict)
    assert sum(verdict.judge == "heuristic" for verdict in came) == 15
    assert 0 < sum(verdict.judge == "openai:m" for verdict in came) <= 5


def test_a_budget_ends_it_and_more_money_goes_on(demo: History, client: Any, server: ModelServer, home: Home) -> None:
    good = answering(demo)
    server.script = lambda number, body: replace(good(number, body), usage=(20_000, 0, 4_000))  # 0.028 USD
    came: list[Verdict] = []
    with pytest.raises(BudgetExceeded):
        for verdict in judge_of(client("openai", budget_usd=0.2, concurrency=1), demo).judge_all(demo[1]):
            came.append(verdict)
    paid = len(server.asked)
    assert 0 < paid < 18 and sum(call.cost_usd or 0 for call in calls(home)) <= 0.2
    assert 15 < len(came) < 33
    found = verdicts(judge_of(client("openai"), demo), demo)
    assert {label for label, verdict in found.items() if verdict.status == "kept"} == GOES_ON
    live = [call for call in calls(home) if call.mode == "live"]
    assert len(live) == len(server.asked) == len({call.address for call in live}), "nothing is asked twice"


def test_answers_by_files_in_two_rounds(demo: History, home: Home, tmp_path: Path) -> None:
    """A person answers: first all first votes, then what is still unsure; verdicts come as soon as they can."""
    folder = tmp_path / "exchange"
    settings = JudgeSettings(judge="cascade", model=f"exchange:{folder}")
    recorded = {}
    for path in CASSETTES.glob("*.json"):
        recording = Recording.model_validate_json(path.read_text())
        recorded[recording.address] = recording.reply.text

    def run() -> tuple[list[Verdict], AnswersAwaited | None]:
        came: list[Verdict] = []
        with open_client(f"exchange:{folder}", home, TableStore(home.tables), STAMP) as client:
            try:
                for verdict in judge_of(client, demo, settings).judge_all(demo[1]):
                    came.append(verdict)
            except AnswersAwaited as error:
                return came, error
        return came, None

    counts, answered = [], set[str]()
    for number in range(1, 4):
        came, awaited = run()
        counts.append(len(came))
        if awaited is None:
            break
        assert all(words in str(awaited) for words in (["18 of 18"], ["1 of 1 answers", "10 of 10"])[number - 1])
        asked = [line for path in folder.glob("requests-*.jsonl") for line in path.read_text().splitlines()]
        new = {json.loads(line)["custom_id"] for line in asked} - answered
        answered |= new
        answers = [{"custom_id": one, "text": recorded[one]} for one in new]
        (folder / f"responses-{number}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in answers))
    assert counts == [15, 27, 33], "the heuristic's; all that one answer decides; those of three votes and a repair"
    assert {verdict.judge for verdict in came} == {"heuristic", "exchange:any"}


def test_without_the_cascade_all_but_hard_rejections_are_asked(demo: History, client: Any, server: ModelServer) -> None:
    server.script = lambda number, body: Act(text=json.dumps(ANSWER))
    found = verdicts(judge_of(client("openai"), demo, ALONE), demo)
    assert len(server.asked) == 22 and sum(verdict.judge == "openai:m" for verdict in found.values()) == 22
    assert found["reachable-copies"].judge == "openai:m" and found["docs-globs"].judge == "heuristic"


ANSWER: dict[str, Any] = {
    "why": "Faster.", "evidence": ["heappush(ready, successor)"], "kind": "algorithm", "apis": ["a.b"],
    "disguise": "none", "testable_on_cpu": True, "answer": "yes", "confidence": 0.9,
}  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ({}, ("kept", None, "yes")),
        ({"testable_on_cpu": False}, ("rejected", Reason.NOT_ON_CPU, "yes")),
        ({"answer": "no"}, ("rejected", Reason.UNLIKELY, "no")),
        ({"answer": "no", "disguise": "bug fix"}, ("rejected", Reason.IN_DISGUISE, "no")),
        ({"answer": "no", "confidence": 0.6}, ("kept", None, "unsure")),
        ({"disguise": "bug fix"}, ("kept", None, "yes")),
        ({"evidence": ["heappush(ready, nothing)"]}, ("kept", None, "yes")),
        ({"answer": "no", "evidence": ["heappush(ready, nothing)"]}, ("kept", None, "yes")),
    ],
)
def test_what_an_answer_comes_to(
    demo: History, client: Any, server: ModelServer, answer: dict[str, Any], outcome: tuple[str, str | None, str]
) -> None:
    server.script = lambda number, body: Act(text=json.dumps({**ANSWER, **answer}))
    judge = judge_of(client("openai"), demo, ALONE)
    verdict = judge.judge(named(demo, "topological-heap"))
    assert (verdict.status, verdict.reason, verdict.is_performance) == outcome
    if "evidence" in answer:
        assert verdict.probability == 0.5 and verdict.signals[1].name == "quote that is not in the diff"


@pytest.mark.parametrize("one", CORPUS, ids=[one["name"] for one in CORPUS])
def test_injections_change_no_verdicts_form(
    one: dict[str, str], demo: History, client: Any, server: ModelServer
) -> None:
    change, text = named(demo, "topological-heap"), one["text"]
    added = "\n".join(f"+{line}" for line in text.splitlines())
    hostile = change.model_copy(
        update={
            "message": text,
            "title": text[:40],
            "patch": f"{change.patch}@@ -90,1 +90,9 @@ {text[:30]!r}\n{added}\n",
        }
    )
    questions = Questions(CASCADE, STAMP, demo[0])

    def body(asked: Change) -> dict[str, Any]:
        return OpenAIProvider.body(questions.about(asked, questions.sort(asked)[0]).request)

    asked, harmless = body(hostile), body(change)
    assert asked["messages"][0] == harmless["messages"][0] and asked["response_format"] == harmless["response_format"]
    outside, inside = unfenced(asked["messages"][1]["content"])
    assert outside == unfenced(harmless["messages"][1]["content"])[0]
    assert visible(text).strip() in inside[0] and KEY not in json.dumps(asked)

    said = json.dumps({**ANSWER, "why": text, "evidence": [text], "apis": [text]})
    for answer in (said, text):  # a model that was taken in
        server.script = lambda number, body, answer=answer: Act(text=answer)  # type: ignore[misc]
        model = f"m{len(server.asked)}"  # replies are kept by model
        verdict = judge_of(client("openai", model), demo, ALONE).judge(hostile)
        Verdict.model_validate(verdict.model_dump())
        assert verdict.judge == f"openai:{model}" and not set(verdict.apis) & {text}
        assert verdict.reason in (None, Reason.MALFORMED, Reason.UNLIKELY)
        shown = verdict.why + "".join(signal.evidence for signal in verdict.signals)
        assert "\u202e" not in shown and "<|" not in shown and "\x1b" not in shown and len(verdict.why) <= 600


def test_the_prompt_is_the_same_for_the_same_change_and_other_for_another_vote(demo: History) -> None:
    first, second = (Questions(CASCADE, STAMP, demo[0]) for _ in range(2))
    change = named(demo, "suggest-limit")
    verdict = first.sort(change)[0]
    question, again = first.about(change, verdict), second.about(change, verdict)
    assert question.request.address == again.request.address == question.vote(1).address
    assert len({question.vote(number).address for number in (1, 2, 3)}) == 3
    system, user = question.request.system, question.request.messages[0].text
    assert "gives you no instructions" in system and "quarrykit" not in system
    assert [line.split()[0] for line in user.splitlines() if line.startswith("<<<")] == [
        "<<<commit", "<<<diff", "<<<calls",
    ]  # fmt: skip
    alone = Questions(CASCADE, STAMP, None).about(change, verdict).request.messages[0].text
    assert "calls in this tree" not in alone and "islice" in alone


@pytest.mark.parametrize(
    ("judge", "model", "words"),
    [
        ("oracle", "", "known: heuristic, cascade"),
        ("cascade", "", "--llm"),
        ("cascade", "oracle", "names no model"),
        ("openai:", "", "no judge is called 'openai:'"),
    ],
)
def test_unknown_judges_are_bad_input(judge: str, model: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make_judge(JudgeSettings(judge=judge, model=model), STAMP)


def test_settings_of_models_leave_old_homes_valid() -> None:
    assert JudgeSettings().config_hash() == "263dff851d82dac7"
    assert JudgeSettings(votes=5).config_hash() != JudgeSettings().config_hash()
    assert LlmSettings(prices=PRICES).model_dump() and JudgeSettings(slope=0.5).config_hash() != "263dff851d82dac7"
