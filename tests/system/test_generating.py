"""Generated workloads from outside: from cassettes, and by exchanged files, round by round."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfquarry.data import demo
from perfquarry.data.records import LlmCall, Verdict, Workload
from perfquarry.data.store import TableStore

pytestmark = pytest.mark.timeout(900)  # the first test waits for three stages
CASSETTES = Path(demo.__file__).parent / "cassettes"
VARIANCE = "eca1e8f899"
REFUSED = "13d1da85d5"


def answers() -> dict[str, dict]:
    """The demo's answers by address."""
    recordings = [json.loads(path.read_text()) for path in CASSETTES.glob("*.json")]
    return {recording["address"]: recording for recording in recordings}


def rows(home: Path) -> list[Workload]:
    return list(TableStore(home / "tables").records(Workload, "demo"))


def response(address: str, recording: dict) -> dict:
    """A line of a batch's output, or as a person would write it."""
    if recording.get("stop") != "refusal":
        return {"custom_id": address, "answer": recording["answer"]}
    choice = {"message": {"role": "assistant", "refusal": recording["text"]}, "finish_reason": "stop"}
    return {"custom_id": address, "response": {"status_code": 200, "body": {"choices": [choice]}}}


@pytest.fixture(scope="module")
def built(tmp_path_factory, perfquarry) -> Path:
    """A home with two changes of the demo built."""
    home = tmp_path_factory.mktemp("generated")
    for stage in ("mine", "judge", "build"):
        perfquarry(home, stage, "demo", "--no-server", "--changes", f"{VARIANCE},{REFUSED}")
    return home


def generate(perfquarry, home: Path, llm: str, code: int = 0):
    options = ("--no-server", "--changes", f"{VARIANCE},{REFUSED}", "--workloads", "generated", "--llm", llm)
    return perfquarry(home, "generate", "demo", *options, code=code)


def test_the_demo_is_sampled_from_cassettes_offline(built: Path, perfquarry, facts) -> None:
    generate(perfquarry, built, f"cassette:{CASSETTES}")
    found = facts(built, "sampling", "demo")["rounds"]
    (first,) = found
    assert (first["round"], first["scripts"], first["kept"], first["hidden"]) == (1, 2, 2, 1)
    assert first["rejected"] == {"refused": 1}
    assert "refused 1" in perfquarry(built, "sampling", "demo").stdout
    calls = len(list(TableStore(built / "tables").records(LlmCall, "demo")))
    before = rows(built)
    verdicts = TableStore(built / "tables").records(Verdict, "demo")
    assert {one.change_id for one in verdicts if one.functions} == {row.change_id for row in before}
    generate(perfquarry, built, f"cassette:{CASSETTES}")
    assert len(list(TableStore(built / "tables").records(LlmCall, "demo"))) == calls
    assert rows(built) == before


@pytest.mark.slow
def test_a_run_waits_for_answers_and_goes_on(built: Path, perfquarry, tmp_path: Path) -> None:
    known, before = answers(), rows(built)
    for number, finished in ((1, 0), (2, 1)):
        ended = generate(perfquarry, built, f"exchange:{tmp_path}", code=1)
        assert "not done yet" in ended.stderr and "waiting for 1 of 1 answers" in ended.stderr
        assert "Traceback" not in ended.stderr + ended.stdout
        assert len(rows(built)) - len(before) == finished, "the refused change alone, and nothing half-done"
        asked = [json.loads(text) for path in tmp_path.glob("requests-*") for text in path.read_text().splitlines()]
        with (tmp_path / f"responses-{number}.jsonl").open("w") as file:
            for address in {line["custom_id"] for line in asked}.intersection(known):
                print(json.dumps(response(address, known.pop(address))), file=file)
    generate(perfquarry, built, f"exchange:{tmp_path}")
    again = [row for row in rows(built) if row not in before]
    assert {(row.workload_id, row.reason, row.role) for row in again} == {
        (row.workload_id, row.reason, row.role) for row in before
    }


def test_who_writes_them_must_be_named(built: Path, perfquarry) -> None:
    options = ("--no-server", "--workloads", "generated")
    assert "--llm" in perfquarry(built, "generate", "demo", *options, code=2).stderr
    assert "names no model" in perfquarry(built, "generate", "demo", *options, "--llm", "gpt", code=2).stderr
    missing = perfquarry(built, "generate", "demo", *options, "--llm", "cassette:/nowhere", code=2).stderr
    assert "no folder of cassettes" in missing


@pytest.mark.slow
def test_a_cassette_without_an_answer_says_how_to_write_it(built: Path, perfquarry, tmp_path: Path) -> None:
    before = rows(built)
    ended = generate(perfquarry, built, f"cassette:{tmp_path}", code=1)
    assert "written by hand" in ended.stderr and rows(built) == before
