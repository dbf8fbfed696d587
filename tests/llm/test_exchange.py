"""Answers from files: exchange in three formats, cassettes, specs."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import STAMP, Verdict, calls, question
from model_server import Act, anthropic_body, openai_body
from typer.testing import CliRunner

from perfquarry.data.errors import AnswerMissing, AnswersAwaited, InputError
from perfquarry.data.home import Home
from perfquarry.data.store import TableStore
from perfquarry.flows.cli import app
from perfquarry.llm import exchange_folder
from perfquarry.llm.client import Client, open_client
from perfquarry.llm.request import Request
from perfquarry.llm.settings import LlmSettings
from perfquarry.llm.spec import ModelSpec

GOOD = {"verdict": "yes", "confidence": 1.0}
QUESTIONS = [question(f"question {n}", change=f"c{n}") for n in range(3)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "exchange"


def opened(home: Home, spec: str, **settings: Any) -> Client:
    return open_client(spec, home, TableStore(home.tables), STAMP, LlmSettings(**settings))


def requests_in(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("requests-*.jsonl")):
        yield from map(json.loads, path.read_text().splitlines())


def respond(folder: Path, name: str, *lines: dict[str, Any]) -> None:
    (folder / f"responses-{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def in_format(form: str, address: str, text: str) -> dict[str, Any]:
    if form == "openai":
        body = openai_body(Act(text=text), "m")
        return {
            "id": "r",
            "custom_id": address,
            "response": {"status_code": 200, "request_id": "r", "body": body},
            "error": None,
        }
    if form == "anthropic":
        return {"custom_id": address, "result": {"type": "succeeded", "message": anthropic_body(Act(text=text), "m")}}
    return {"custom_id": address, "text": text}


@pytest.mark.parametrize("form", ["openai", "anthropic", "by hand"])
@pytest.mark.parametrize("kind", ["exchange", "exchange-anthropic"])
def test_a_round_trip(kind: str, form: str, home: Home, folder: Path) -> None:
    with pytest.raises(AnswersAwaited, match=r"3 of 3 answers.*requests-0001\.jsonl"):
        list(opened(home, f"{kind}:{folder}", model="big").ask_all(QUESTIONS))
    lines = list(requests_in(folder))
    assert [line["custom_id"] for line in lines] == [one.address for one in QUESTIONS]
    if kind == "exchange":
        assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/chat/completions")}
        assert lines[0]["body"]["model"] == "big" and lines[0]["body"]["response_format"]
    else:
        assert set(lines[0]) == {"custom_id", "params"} and lines[0]["params"]["max_tokens"] == 100

    respond(folder, "a", in_format(form, QUESTIONS[2].address, json.dumps(GOOD)))
    got = []
    with pytest.raises(AnswersAwaited, match="2 of 3 answers"):
        for place, answer in opened(home, f"{kind}:{folder}").ask_all(QUESTIONS):
            got.append((place, answer.status))
    assert got == [(2, "ok")] and len(list(requests_in(folder))) == 3, "requests were written again"

    respond(folder, "b", *(in_format(form, one.address, json.dumps(GOOD)) for one in QUESTIONS[:2]))
    answers = dict(opened(home, f"{kind}:{folder}").ask_all(QUESTIONS))
    assert [answers[n].value for n in range(3)] == [Verdict(**GOOD)] * 3 and answers[0].cost_usd is None
    rows = calls(home)
    assert len(rows) == 3 and {row.mode for row in rows} == {"exchange"}
    assert rows[0].input_tokens == (0 if form == "by hand" else 120)


def test_questions_of_a_run_share_a_file_that_nobody_else_adds_to(home: Home, folder: Path) -> None:
    first = opened(home, f"exchange:{folder}")
    for number, one in enumerate(QUESTIONS[:2], 1):
        with pytest.raises(AnswersAwaited, match=r"requests-0001\.jsonl"):
            first.ask(one)
        assert len(list(requests_in(folder))) == number
    with pytest.raises(AnswersAwaited, match=r"requests-0002\.jsonl"):
        list(opened(home, f"exchange:{folder}").ask_all(QUESTIONS))
    assert [len(path.read_text().splitlines()) for path in sorted(folder.glob("requests-*"))] == [2, 1]


def test_a_file_of_requests_is_not_longer_than_somebody_reads(
    home: Home, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange_folder, "FILE_REQUESTS", 2)
    client = opened(home, f"exchange:{folder}")
    with pytest.raises(AnswersAwaited, match=r"requests-0001\.jsonl, requests-0002\.jsonl"):
        list(client.ask_all(QUESTIONS))
    (folder / "requests-0001.jsonl").unlink()
    with pytest.raises(AnswersAwaited, match=r"requests-0003\.jsonl"):
        list(opened(home, f"exchange:{folder}").ask_all(QUESTIONS))


def test_a_line_that_a_kill_cut_off_is_asked_again(home: Home, folder: Path) -> None:
    with pytest.raises(AnswersAwaited):
        list(opened(home, f"exchange:{folder}").ask_all(QUESTIONS))
    path = folder / "requests-0001.jsonl"
    path.write_text(path.read_text()[:-20])
    with pytest.raises(AnswersAwaited, match=r"requests-0002\.jsonl"):
        list(opened(home, f"exchange:{folder}").ask_all(QUESTIONS))
    (last,) = (folder / "requests-0002.jsonl").read_text().splitlines()
    assert json.loads(last)["custom_id"] == QUESTIONS[2].address


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        ("yaml", "verdict: |-\n  yes\nconfidence: 1.0\n"),
        ("yaml", "verdict: yes\nconfidence: 1.0\nnote: null\n"),
        ("json", json.dumps(GOOD)),
        ("txt", f"Surely:\n```json\n{json.dumps(GOOD)}\n```\n"),
    ],
)
def test_an_answer_by_hand_is_a_file_of_its_own(suffix: str, text: str, home: Home, folder: Path) -> None:
    (folder / "answers").mkdir(parents=True)
    (folder / "answers" / f"{QUESTIONS[1].address}.{suffix}").write_text(text)
    (folder / "answers" / "notes.md").write_text("not an answer")
    got = []
    with pytest.raises(AnswersAwaited, match="2 of 3"):
        for place, answer in opened(home, f"exchange:{folder}").ask_all(QUESTIONS):
            got.append((place, answer.value))
    assert got == [(1, Verdict(**GOOD))]


@pytest.mark.parametrize(
    "text",
    ["a: [", "- 1", "", "just words", "a: &b [x]\nc: *b\n", "a: !!binary aGVsbG8=", "a: !!python/object:os.system 1",
     "a: &a\n  <<: *a\n", "a: !!timestamp 2020-01-01"],
)  # fmt: skip
def test_an_answer_by_hand_that_cannot_be_read_is_named(text: str, home: Home, folder: Path) -> None:
    (folder / "answers").mkdir(parents=True)
    (folder / "answers" / f"{QUESTIONS[1].address}.yaml").write_text(text)
    with pytest.raises(InputError, match=rf"{QUESTIONS[1].address}\.yaml: .*mend or remove"):
        opened(home, f"exchange:{folder}").ask(QUESTIONS[0])


def test_words_of_an_answer_in_yaml_stay_words(home: Home, folder: Path) -> None:
    path = folder / "answers" / f"{QUESTIONS[1].address}.yaml"
    path.parent.mkdir(parents=True)
    for word in ("yes", "off", "2020-01-01", "1:30", "0x10", "1_000", "=", "007", "+1", "No"):
        path.write_text(f"verdict: {word}\nconfidence: 1e-2\n")
        with pytest.raises(AnswersAwaited):
            for place, answer in opened(home, f"exchange:{folder}").ask_all(QUESTIONS):
                assert (place, answer.value) == (1, Verdict(verdict=word, confidence=0.01)), answer.detail


@pytest.mark.parametrize("line", [{"body": [1]}, {"body": "x"}, {"params": None}, {}, {"body": {"messages": []}}])
def test_requests_of_others_are_shown_as_they_are(line: dict[str, Any], folder: Path) -> None:
    folder.mkdir()
    (folder / "requests-0001.jsonl").write_text(json.dumps({"custom_id": "a", **line}) + "\n")
    respond(folder, "1", {"custom_id": "a", "text": "{}"})
    assert command("check", folder)[0] == 0 and "an answer" in command("status", folder)[1]


def command(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["exchange", *map(str, words)])
    return result.exit_code, result.output


@pytest.mark.parametrize("kind", ["exchange", "exchange-anthropic"])
def test_the_command_leads_from_request_to_answer(kind: str, home: Home, folder: Path) -> None:
    spec = f"{kind}:{folder}"
    with pytest.raises(AnswersAwaited, match="perfquarry exchange next"):
        list(opened(home, spec).ask_all(QUESTIONS))
    respond(folder, "1", {"custom_id": QUESTIONS[0].address, "answer": GOOD})
    (row,) = json.loads(command("status", folder, "--json")[1])
    assert (row["form"], row["requests"], row["answered"], row["waiting"]) == ("Verdict", 3, 1, 2)
    code, shown = command("status", folder)
    assert code == 0 and "Verdict" in shown and "exchange next" in shown

    code, text = command("next", folder)
    assert code == 0 and "You judge." in text and "question 1" in text and "question 2" not in text
    facts = json.loads(command("next", folder, "--json", "-n", 5)[1])
    assert [one["custom_id"] for one in facts] == [one.address for one in QUESTIONS[1:]]
    assert facts[0]["answer_file"] in text and set(facts[0]["schema"]["properties"]) == set(Verdict.model_fields)
    for one in facts:  # the example that it shows, filled in
        Path(one["answer_file"]).write_text("verdict: |2\n  no\nconfidence: 0.5\nnote: |2\n    shown\n")
    code, said = command("check", folder)
    assert code == 0 and said.startswith("3 answers fit their forms")
    answers = dict(opened(home, spec).ask_all(QUESTIONS))
    assert answers[2].value == Verdict(verdict="no\n", confidence=0.5, note="  shown\n"), (
        "the first line keeps its indentation"
    )
    assert "run the same command again" in command("status", folder)[1] and "verdict: |" in text
    assert "confidence: number" in text
    assert "are answered" in command("next", folder)[1] and command("next", folder, "--json") == (0, "[]\n")


def test_answers_that_do_not_fit_are_listed_with_their_places(home: Home, folder: Path) -> None:
    with pytest.raises(AnswersAwaited):
        list(opened(home, f"exchange:{folder}").ask_all(QUESTIONS))
    one, two, three = (request.address for request in QUESTIONS)
    respond(
        folder, "1",
        {"custom_id": one, "answer": {"verdict": "yes", "confidence": "high", "note": None}},
        {"custom_id": two, "text": "Surely."},
        {"custom_id": three, "answer": {**GOOD, "note": None}},
        {"custom_id": "0" * 32, "text": "{}"},
        {"custom_id": two, "error": {"message": "too late"}},
    )  # fmt: skip
    code, text = command("check", folder)
    assert code == 1 and text.splitlines()[-1] == "5 answers, 4 of them do not fit"
    assert f"responses-1.jsonl:1: {one}: confidence: 'high' is not of type 'number'" in text
    assert f"responses-1.jsonl:2: {two}: it is not JSON" in text and three not in text
    assert "responses-1.jsonl:4: " + "0" * 32 in text and "too late" in text
    assert [fault["line"] for fault in json.loads(command("check", folder, "--json")[1])] == [1, 2, 4, 5]


def test_a_folder_that_is_none_is_not_made(folder: Path) -> None:
    for verb in ("status", "next", "check"):
        result = CliRunner().invoke(app, ["exchange", verb, str(folder)])
        assert isinstance(result.exception, InputError) and str(folder) in str(result.exception)
    assert not folder.exists()


def test_a_bad_answer_has_its_second_round_in_a_second_file(home: Home, folder: Path) -> None:
    with pytest.raises(AnswersAwaited):
        opened(home, f"exchange:{folder}").ask(QUESTIONS[0])
    respond(folder, "1", in_format("openai", QUESTIONS[0].address, "Surely."))
    with pytest.raises(AnswersAwaited, match=r"requests-0002\.jsonl"):
        opened(home, f"exchange:{folder}").ask(QUESTIONS[0])
    first, second = requests_in(folder)
    assert first["custom_id"] != second["custom_id"] and "Surely." in json.dumps(second["body"]["messages"])
    respond(folder, "2", in_format("openai", second["custom_id"], "Surely!"))
    assert opened(home, f"exchange:{folder}").ask(QUESTIONS[0]).status == "malformed"
    respond(folder, "2", {"custom_id": second["custom_id"], "answer": GOOD})
    assert opened(home, f"exchange:{folder}").ask(QUESTIONS[0]).value == Verdict(**GOOD)


def test_unknown_double_and_failed_responses_are_reported(
    home: Home, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(AnswersAwaited):
        list(opened(home, f"exchange:{folder}").ask_all(QUESTIONS))
    one, two, three = (request.address for request in QUESTIONS)
    error = {
        "custom_id": three,
        "response": {"status_code": 500, "body": {"error": {"message": "overloaded"}}},
        "error": None,
    }
    respond(folder, "1", in_format("openai", one, json.dumps(GOOD)), in_format("openai", "0" * 32, "{}"), error)
    respond(folder, "2", {"custom_id": one, "answer": {"verdict": "no", "confidence": 0}})
    respond(
        folder, "3", {"custom_id": two, "error": {"code": "batch_expired", "message": "too late"}, "response": None}
    )
    answers = []
    with pytest.raises(AnswersAwaited) as awaited, caplog.at_level(logging.WARNING):
        for _, answer in opened(home, f"exchange:{folder}").ask_all(QUESTIONS):
            answers.append(answer.value)
    assert answers == [Verdict(**GOOD)], "the first of two answers counts"
    said = str(awaited.value)
    assert (
        "waiting for 2 of 3" in said
        and f"not ours: {'0' * 32}" in said
        and f"more than once, the first counts: {one}" in said
    )
    assert "overloaded" in said and "too late" in said and two in said
    assert "more than once" in caplog.text


@pytest.mark.parametrize("line", ["{", "[]", '{"id": 1}', "[" * 100_000])
def test_a_line_that_is_none_is_named(line: str, home: Home, folder: Path) -> None:
    folder.mkdir()
    (folder / "responses-x.jsonl").write_text(f'\ufeff{{"custom_id": "a", "text": ""}}\n\n{line}\n')
    with pytest.raises(InputError, match=r"responses-x\.jsonl, line 3"):
        opened(home, f"exchange:{folder}").ask(QUESTIONS[0])


@pytest.mark.parametrize(
    "line",
    [
        {"response": []},
        {"response": {"status_code": 200, "body": []}},
        {"result": {}},
        {"error": "x", "response": "y"},
        {},
    ],
)
def test_odd_responses_are_no_answers(line: dict[str, Any], home: Home, folder: Path) -> None:
    folder.mkdir()
    respond(folder, "x", {"custom_id": QUESTIONS[0].address, **line})
    with pytest.raises(AnswersAwaited):
        opened(home, f"exchange:{folder}").ask(QUESTIONS[0])


def cassette(folder: Path, request: Request[Any], **values: Any) -> None:
    folder.mkdir(exist_ok=True)
    recording = {"address": request.address, "origin": "written by hand", **values}
    (folder / f"{request.purpose.change_id}-{request.address[:6]}.json").write_text(json.dumps(recording))


def test_cassettes_answer_without_a_call(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "cassettes"
    cassette(folder, QUESTIONS[0], answer=GOOD, usage={"input_tokens": 10, "output_tokens": 5})
    cassette(folder, QUESTIONS[1], text="bad", note="no JSON")
    got = {}
    with pytest.raises(AnswerMissing) as missing:
        for place, answer in opened(home, f"cassette:{folder}").ask_all(QUESTIONS):
            got[place] = answer
    assert (
        got[0].value == Verdict(**GOOD) and got[0].cached and got[0].cost_usd == 0.0 and got[0].usage.input_tokens == 10
    )
    said = str(missing.value)
    assert QUESTIONS[2].address in said and str(folder) in said and "judge judge c2" in said and len(got) == 1
    rows = calls(home)
    assert {(row.mode, row.cached, row.reason) for row in rows} == {
        ("cassette", True, None),
        ("cassette", True, "malformed"),
    }


def test_a_cassette_may_have_a_recording_per_line(home: Home, tmp_path: Path) -> None:
    line = {"address": QUESTIONS[0].address, "origin": "written by hand", "answer": GOOD}
    file = tmp_path / "answers.jsonl"
    file.write_text(f"{json.dumps(line)}\n\n{json.dumps({**line, 'address': QUESTIONS[1].address})}\n")
    client = opened(home, f"cassette:{tmp_path}")
    assert [client.ask(one).value for one in QUESTIONS[:2]] == [Verdict(**GOOD)] * 2
    with file.open("a") as more:
        more.write("{\n")
    with pytest.raises(InputError, match=r"answers\.jsonl, line 4 is no recording"):
        opened(home, f"cassette:{tmp_path}")


def test_what_is_recorded_can_be_replayed(home: Home, tmp_path: Path, client: Any, server: Any) -> None:
    server.script = lambda number, body: Act(text="bad" if number == 0 else json.dumps(GOOD))
    folder = tmp_path / "cassettes"
    live = client("openai", record=str(folder), concurrency=1).ask(QUESTIONS[0])
    replayed = opened(home, f"cassette:{folder}").ask(QUESTIONS[0])
    assert replayed.value == live.value == Verdict(**GOOD) and replayed.usage == live.usage and len(server.asked) == 2
    recording = json.loads(next(folder.rglob(f"{QUESTIONS[0].address}.json")).read_text())
    assert recording["text"] == "bad" and recording["purpose"]["change_id"] == "c0"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"address": "a"}', "'answer' or 'text'"),
        ("{", "no recording"),
        ('{"address": "a", "text": "", "origin": "me"}', "origin"),
    ],
)
def test_a_file_that_is_no_cassette_is_named(text: str, complaint: str, home: Home, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(text)
    with pytest.raises(InputError, match=complaint):
        opened(home, f"cassette:{tmp_path}")


def test_two_cassettes_of_one_request_are_refused(home: Home, tmp_path: Path) -> None:
    for name in ("one", "two"):
        cassette(tmp_path / name, QUESTIONS[0], answer=GOOD)
    with pytest.raises(InputError, match="twice"):
        opened(home, f"cassette:{tmp_path}")
    with pytest.raises(InputError, match="no folder"):
        opened(home, f"cassette:{tmp_path / 'none'}")


def test_specs() -> None:
    assert ModelSpec.parse("openai:ft:gpt:org") == ("openai", "ft:gpt:org")
    assert ModelSpec.parse("exchange-anthropic:a/b").rest == "a/b"
    for wrong in ("heuristic", "openai", "openai:", "openai: ", "mistral:x", ""):
        with pytest.raises(InputError, match="names no model"):
            ModelSpec.parse(wrong)
