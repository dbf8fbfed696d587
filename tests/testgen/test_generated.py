"""Sampling rounds of real scripts, tried by the real probe, with answers from files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_context import patch
from two_trees import change, verdict

from perfquarry.curation.sampling import by_round
from perfquarry.data import demo
from perfquarry.data.demo.expectations import expected
from perfquarry.data.errors import AnswersAwaited, BudgetExceeded
from perfquarry.data.home import Home
from perfquarry.data.records import LlmCall, Reason, Stamp, TouchedFunction, Workload
from perfquarry.data.store import TableStore
from perfquarry.harness.contracts import BuiltSide
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.sandbox import choose_sandbox
from perfquarry.llm.client import open_client
from perfquarry.llm.prompts import Prompt
from perfquarry.llm.recordings import Recording
from perfquarry.llm.settings import LlmSettings, Price
from perfquarry.testgen.case import Case
from perfquarry.testgen.generated import NONE_CAN, PROMPTS, VERSION, Generated, Sample, Samples, portable
from perfquarry.testgen.settings import GeneratedSettings, GenerateSettings
from tests.bare_python import bare_python, bare_tools
from tests.six_functions import REST

STAMP = Stamp(repo="lib", stage_version="1", config_hash="c")
DEMO = Path(demo.__file__).parent / "cassettes"
REAL = Path(__file__).parent / "cassettes"
BASE = {
    "pkg/__init__.py": "",
    "pkg/words.py": """\
def distinct(words):
    found = []
    for word in words:
        if word not in found:
            found.append(word)
    return found


def longest(words):
    return max(words, key=len)
""",
}
HEAD = {
    "pkg/words.py": BASE["pkg/words.py"].replace(
        BASE["pkg/words.py"].partition("\n\n\n")[0], "def distinct(words):\n    return list(dict.fromkeys(words))"
    )
}
CODE = """from pkg.words import distinct, longest


def setup():
    return {data}


def experiment(data):
    return {call}

"""


def script(data: str, call: str, note: str = "words") -> dict[str, str]:
    return {"note": note, "code": CODE.format(data=data, call=call) + REST}


MANY = script('["w%d" % (number * 7919 % 1500) for number in range(2500)]', "distinct(data)", "one list of many words")
FEW = script(
    '[["%d" % (size * word % 53) for word in range(300)] for size in range(60)]',
    "[len(distinct(words)) for words in data]",
    "many lists of few words",
)
SAME = script('["v%d" % (number * 7919 % 1700) for number in range(2600)]', "distinct(data)", "other words")
ELSEWHERE = script('["w" * (number % 99) for number in range(90000)]', "longest(data)", "the longest word")
SHORT = script('["a", "b", "a"]', "distinct(data)", "three words")
BROKEN = {"note": "broken", "code": "def setup(:\n"}
NUMBERS = script("list(range(1800))", "sum(distinct(data)) + len(distinct(data[::-1]))", "numbers, none twice")


class Sampling:
    """A change, a folder in which its questions are answered, and what comes of it."""

    def __init__(self, folder: Path, prober: Prober, **settings: Any) -> None:
        self.home, self.exchange = Home(folder / "home"), folder / "exchange"
        self.store = TableStore(self.home.tables)
        self.wishes: dict[str, tuple[str, ...]] = {}
        sides = {}
        for side, files in (("base", BASE), ("head", BASE | HEAD)):
            for path, text in files.items():
                place = folder / f"tree-{side}" / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text)
            tree = (folder / f"tree-{side}").resolve()
            sides[side] = BuiltSide(side, side * 10, tree, bare_python(), "environment", (tree,))  # type: ignore[arg-type]
        made = change(BASE, HEAD).model_copy(update={"patch": patch(BASE, HEAD)})
        own = GenerateSettings(
            repeats=1, generated=GeneratedSettings(**{"samples": 3, "wanted": 3, "held_out": 1, **settings})
        )
        tools = dict.fromkeys(("base", "head"), bare_tools())
        touched = TouchedFunction(path="pkg/words.py", name="distinct", change="modified")
        self.case = Case(made, verdict(made, touched), sides["base"], sides["head"], prober, own, STAMP, tools)  # type: ignore[arg-type]

    def rows(self) -> list[Workload]:
        with open_client(f"exchange:{self.exchange}", self.home, self.store, STAMP) as client:
            return Generated(client.ask, self.wishes).workloads(self.case)

    def requests(self) -> list[dict[str, Any]]:
        files = sorted(self.exchange.glob("requests-*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    def asked(self) -> str:
        """Runs until an answer is awaited; what was asked last."""
        with pytest.raises(AnswersAwaited):
            self.rows()
        return str(self.requests()[-1]["body"]["messages"][-1]["content"])

    def answer(self, *scripts: dict[str, str], **reply: Any) -> None:
        """Answers the last question by hand."""
        line = {"custom_id": self.requests()[-1]["custom_id"], **(reply or {"answer": {"scripts": list(scripts)}})}
        (self.exchange / f"responses-{len(self.requests())}.jsonl").write_text(json.dumps(line))


@pytest.fixture(scope="module")
def prober(tmp_path_factory: pytest.TempPathFactory) -> Prober:
    return Prober(choose_sandbox(), tmp_path_factory.mktemp("scratch"))


def outcomes(rows: Sequence[Workload]) -> dict[str, tuple[int, str | None]]:
    return {row.code: (row.round, row.reason) for row in rows}


def test_a_second_round_is_shown_why_and_every_script_is_a_row(tmp_path: Path, prober: Prober) -> None:
    sampling = Sampling(tmp_path, prober)
    first = sampling.asked()
    assert "-    found = []" in first and "pkg.words.distinct" in first and "at the head" not in first
    assert sampling.asked() == first and len(sampling.requests()) == 1, "nothing is asked twice"
    sampling.answer(MANY, ELSEWHERE, BROKEN)
    second = sampling.asked()
    assert "## kept: one list of many words" in second and MANY["code"] not in second
    assert "## rejected, misses_change: " in second and ELSEWHERE["code"].strip() in second
    assert "## rejected, does_not_parse: " in second and "at the head" in second
    assert str(tmp_path) not in first + second
    assert sampling.asked() == second and len(sampling.requests()) == 2
    sampling.answer(FEW, SAME, SHORT)
    rows = sampling.rows()
    assert outcomes(rows) == {
        MANY["code"]: (1, None),
        FEW["code"]: (2, None),
        ELSEWHERE["code"]: (1, Reason.MISSES_CHANGE),
        BROKEN["code"]: (1, Reason.UNPARSABLE),
        SAME["code"]: (2, Reason.DUPLICATE),
        SHORT["code"]: (2, Reason.TOO_SHORT),
    }
    assert sorted(row.role for row in rows if row.reason is None) == ["hidden", "visible"]
    assert all(row.role == "visible" for row in rows if row.reason)
    assert [row.status for row in rows] == ["kept"] * 2 + ["rejected"] * 4
    assert len({row.workload_id for row in rows}) == 6 and {row.source for row in rows} == {"generated"}
    table = by_round(rows)
    assert [(one["round"], one["scripts"], one["kept"], one["hidden"]) for one in table] == [
        (1, 3, 1, table[0]["hidden"]),
        (2, 3, 1, 1 - table[0]["hidden"]),
    ]
    assert table[1]["rejected"] == {"duplicate": 1, "too_short": 1}
    ledger = {(row.stage, row.change_id, row.prompt) for row in sampling.store.records(LlmCall, "lib")}
    assert ledger == {("generate", sampling.case.change.change_id, "generate")}


def test_no_further_round_once_enough_are_kept(tmp_path: Path, prober: Prober) -> None:
    sampling = Sampling(tmp_path, prober, wanted=2)
    sampling.asked()
    sampling.answer(MANY, FEW, NUMBERS)
    rows = sampling.rows()
    assert sorted(str(row.reason) for row in rows) == ["None", "None", "surplus"]
    assert len(sampling.requests()) == 1


def test_what_is_missing_in_scripts_is_asked_for_in_one_more_round(tmp_path: Path, prober: Prober) -> None:
    sampling = Sampling(tmp_path, prober, samples=2, wanted=1)
    sampling.wishes = {sampling.case.change.change_id: ("No input repeats.",), "another": ("Larger inputs.",)}
    assert "shortcomings" not in sampling.asked()
    sampling.answer(MANY)
    wished = sampling.asked()
    assert "- No input repeats." in wished and "Larger inputs" not in wished and "## kept: one list" in wished
    sampling.answer(NUMBERS)
    assert outcomes(sampling.rows()) == {MANY["code"]: (1, None), NUMBERS["code"]: (3, None)}


def test_more_scripts_than_asked_for_and_the_same_text_again(tmp_path: Path, prober: Prober) -> None:
    sampling = Sampling(tmp_path, prober, samples=1)
    sampling.asked()
    sampling.answer(MANY, FEW)
    sampling.asked()
    sampling.answer({**MANY, "note": "again", "code": f"```python\n{MANY['code']}```"})
    (row,) = sampling.rows()
    assert (row.code, row.round, row.role, row.reason) == (MANY["code"], 1, "visible", None)


def test_an_empty_answer_ends_the_sampling(tmp_path: Path, prober: Prober) -> None:
    sampling = Sampling(tmp_path, prober)
    sampling.asked()
    sampling.answer(answer={"scripts": []})
    (row,) = sampling.rows()
    assert (row.reason, row.code, row.detail) == (Reason.NO_WORKLOADS, "", NONE_CAN)


def test_answers_that_are_none_are_rows(tmp_path: Path, prober: Prober) -> None:
    sampling = Sampling(tmp_path / "malformed", prober)
    sampling.asked()
    sampling.answer(text="Here is a script.")
    assert "not a valid answer" in sampling.asked()
    sampling.answer(text=json.dumps({"scripts": [{"note": "nothing", "code": " \n"}]}))
    (row,) = sampling.rows()
    assert (row.status, row.reason, row.code, row.round) == ("rejected", Reason.MALFORMED, "", 1)
    assert "the script is empty" in row.detail
    (table,) = by_round([row])
    assert (table["scripts"], table["share"], table["rejected"]) == (0, None, {"malformed": 1})

    refused = Sampling(tmp_path / "refused", prober)
    refused.asked()
    message = {"role": "assistant", "content": None, "refusal": "I won't."}
    refused.answer(response={"status_code": 200, "body": {"choices": [{"message": message, "finish_reason": "stop"}]}})
    (row,) = refused.rows()
    assert (row.reason, row.detail) == (Reason.REFUSED, "I won't.")


def test_a_spent_budget_ends_before_anything_is_asked(
    tmp_path: Path, prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-pqcanary0123456789abcdef")
    sampling, prices = Sampling(tmp_path, prober), {"m": Price(input=1.0, output=2.0)}
    settings = LlmSettings(base_url="http://127.0.0.1:9/v1", budget_usd=1e-6, prices=prices)
    with (
        open_client("openai:m", sampling.home, sampling.store, STAMP, settings) as client,
        pytest.raises(BudgetExceeded),
    ):
        Generated(client.ask).workloads(sampling.case)
    assert not list(sampling.store.records(LlmCall, "lib"))


def test_a_change_without_an_executable_line_is_not_asked_about(tmp_path: Path, prober: Prober) -> None:
    sampling = Sampling(tmp_path, prober)
    (sampling.case.head.tree / "pkg/words.py").write_text("# faster\n" + BASE["pkg/words.py"])
    sampling.case = replace(sampling.case, verdict=verdict(sampling.case.change))
    assert sampling.rows() == []
    assert not sampling.exchange.exists()


@pytest.mark.parametrize(
    ("detail", "shown"),
    [
        ('File "/work/home/trees/ab12/pkg/words.py", line 3, in f', 'File "words.py", line 3, in f'),
        ("<function f at 0x7fa6dfbc5530>", "<function f at 0x…>"),
        ("a call takes 2.54e-06 s, under 0.001 s", "a call takes some microseconds, under some milliseconds"),
        ("3.2 s, then 31 s, 0.25 s and 0 s", "some seconds, then some seconds, some milliseconds and no time"),
        ("    f(x)\n    ~^^^\nE", "    f(x)\nE"),
        ("12 s of lines: a/b.py 5 samples", "some seconds of lines: a/b.py 5 samples"),
        ("\n".join(map(str, range(20))), "\n".join(map(str, range(12, 20)))),
    ],
)
def test_details_are_the_same_on_every_machine(detail: str, shown: str) -> None:
    assert portable(detail) == shown


def test_a_fence_around_a_script_is_taken_off() -> None:
    assert Sample(note="n", code="```python\nx = 1\n```\n").code == "x = 1\n"
    assert Sample(note="n", code="x = '''```'''\n").code == "x = '''```'''\n"


@pytest.mark.parametrize("path", sorted([*DEMO.glob("*.json"), *REAL.rglob("*.json")]), ids=lambda path: path.stem)
def test_cassettes_are_labelled_and_answer_the_prompt_of_today(path: Path) -> None:
    recording = Recording.model_validate_json(path.read_bytes())
    assert recording.origin == "written by hand" and recording.note
    assert recording.purpose, "python -m benchmarks.answers address"
    assert recording.purpose.prompt_hash == Prompt(PROMPTS, "generate", VERSION).hash
    if recording.answer is not None:
        Samples.model_validate(recording.answer)


def test_a_dozen_real_changes_and_most_of_the_demo_have_answers() -> None:
    demo, real = ({path.stem.partition("-")[0] for path in folder.rglob("*.json")} for folder in (DEMO, REAL))
    accepted = {one.head_sha[:10] for one in expected() if one.accepted}
    assert accepted <= demo and len(demo - accepted) >= 2
    assert len(real) >= 12
