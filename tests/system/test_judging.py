"""`perfquarry judge` from outside: the cascade over the demo without a network, its costs, its figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_demo import mismatches

from perfquarry.data.demo import build_demo, expected
from perfquarry.data.errors import InputError
from perfquarry.data.records import Change, Verdict
from perfquarry.data.store import TableStore
from perfquarry.miners.judge.labels import read_labels
from tests.drawn import Drawn

CASSETTES = Path(__file__).parents[2] / "data" / "demo" / "cassettes" / "judge"
Program = Callable[..., Any]
BEFORE = {"mine", "judge"}


@pytest.fixture(scope="module")
def mined(tmp_path_factory: pytest.TempPathFactory, perfquarry: Program) -> Path:
    home: Path = tmp_path_factory.mktemp("home")
    perfquarry(home, "mine", "demo", "--no-server")
    return home


def test_the_funnel_of_the_demo_under_the_cascade(mined: Path, perfquarry: Program) -> None:
    arguments = ("judge", "demo", "--no-server", "--json", "--judge", "cascade", "--llm", f"cassette:{CASSETTES}")
    stages = json.loads(perfquarry(mined, *arguments).stdout)["funnel"]["stages"]
    judge = next(stage for stage in stages if stage["stage"] == "judge")
    assert judge == {
        "stage": "judge", "in": 33, "kept": 18, "pending": 0,
        "rejected": {
            "no_source_change": 5, "unlikely_performance": 4, "comments_only": 3, "revert": 2, "rename_only": 1,
        },
    }  # fmt: skip
    assert mismatches(mined, "judge") == []
    store = TableStore(mined / "tables")
    heads = {change.change_id: change.head_sha for change in store.records(Change, "demo")}
    kept = [verdict for verdict in store.records(Verdict, "demo") if verdict.status == "kept"]
    assert {heads[one.change_id] for one in kept} == {one.head_sha for one in expected() if one.stage not in BEFORE}
    assert not any(verdict.functions for verdict in kept), "most are never taken up"
    costs = json.loads(perfquarry(mined, "costs", "demo", "--json").stdout)
    assert costs["usd"] == 0 and costs["rows"][0]["changes"] == 18
    again = json.loads(perfquarry(mined, *arguments).stdout)["funnel"]["stages"]
    assert again == stages and store.count(Verdict, "demo") == 33


def test_the_first_line_comes_before_the_work(mined: Path, perfquarry: Program) -> None:
    for stage in ("mine", "judge"):
        begin = perfquarry(mined, stage, "demo", "--no-server").stdout.split("\n")[0]
        assert begin.split()[:3] == [stage, "demo,", "home"]


@pytest.mark.slow
def test_it_waits_for_answers_cleanly_and_goes_on(mined: Path, tmp_path: Path, perfquarry: Program) -> None:
    folder = tmp_path / "exchange"
    arguments = ("curate", "demo", "--no-server", "--judge", "cascade", "--llm", f"exchange:{folder}")
    done = perfquarry(mined, *arguments, code=1)
    assert "of judge are not done yet; the first: waiting for 18 of 18 answers" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr and "run the same command again" in done.stderr
    assert "still to do 18" in perfquarry(mined, "funnel", "demo").stdout and "build " not in done.stdout
    recorded = {
        recording["address"]: recording for recording in map(json.loads, (p.read_text() for p in CASSETTES.glob("*")))
    }
    lines = (folder / "requests-0001.jsonl").read_text().splitlines()
    assert len(lines) == 18
    answers = []
    for line in lines:
        address = json.loads(line)["custom_id"]
        one = recorded[address]
        answers.append({"custom_id": address, **{name: one[name] for name in ("answer", "text") if name in one}})
    (folder / "responses-1.jsonl").write_text("".join(json.dumps(one) + "\n" for one in answers))
    done = perfquarry(mined, *arguments, code=1)
    assert "waiting for 1 of 1 answers" in done.stderr and "waiting for 10 of 10" in done.stderr
    assert "still to do 6" in perfquarry(mined, "funnel", "demo").stdout


def test_tokens_are_counted_without_a_call(mined: Path, perfquarry: Program) -> None:
    counted = json.loads(perfquarry(mined, "judge", "demo", "--count-tokens", "--json").stdout)
    assert (counted["changes"], counted["asked"], counted["votes"]) == (33, 18, 3)
    assert 18 * 800 < counted["tokens"] < 18 * 3000
    by_model = {one["model"]: one for one in counted["models"]}
    dear, cheap = by_model["gpt-6-sol"], by_model["gpt-6-luna"]
    assert dear["usd"] == pytest.approx((counted["tokens"] * 2 + 18 * counted["answer_tokens"] * 10) / 1e6)
    assert dear["usd_per_1000_changes"] == pytest.approx(1000 * dear["usd"] / 33)
    assert dear["usd_all_votes"] == pytest.approx(3 * dear["usd"]) and cheap["usd"] < dear["usd"]
    text = perfquarry(mined, "judge", "demo", "--count-tokens", "--judge", "openai:gpt-6-sol").stdout
    assert "22 of 33 changes are asked" in text and "gpt-6-sol" in text and "luna" not in text


def labels(tmp_path: Path, **columns: Any) -> Path:
    """The demo's improvements as labels; one change is not labelled."""
    source = tmp_path / "demo"
    build_demo(source)
    rows = [
        {"repo": "demo", "source": str(source), "sha": one.head_sha, "label": "yes" if one.accepted else "no"}
        for one in expected()
        if one.stage != "mine"
    ]
    rows[0]["label"] = "unsure"
    path = tmp_path / "labels.parquet"
    pq.write_table(pa.Table.from_pylist([{**row, **columns} for row in rows]), path)
    return path


def test_a_judge_is_compared_with_labels(tmp_path: Path, perfquarry: Program) -> None:
    file = labels(tmp_path, weight=2.0, note="further columns are passed over")
    arguments = ("judge", "--evaluate", str(file), "--judge", "cascade", "--llm", f"cassette:{CASSETTES}")
    plot = tmp_path / "plots" / "cascade.svg"
    scores = json.loads(perfquarry(tmp_path / "home", *arguments, "--plot", str(plot), "--json").stdout)
    assert (scores["judge"], scores["labels"], scores["improvements"], scores["asked"]) == ("cassette:any", 32, 8, 18)
    assert scores["goes_on"] == {"chosen": 18, "found": 8, "missed": 0, "precision": pytest.approx(8 / 18), "recall": 1}
    assert 0 < scores["brier"] < 0.3 and scores["calibration"]["slope"] > 0
    assert sum(one["labels"] for one in scores["bins"]) == 32
    drawn = Drawn(plot.read_text())
    assert len(drawn.marks("bin")) == len(drawn.group("interval")) == len(scores["bins"])
    assert len(drawn.marks("threshold")) == len(scores["curve"]) and len(drawn.marks("choice")) == 2
    assert {"recall, %", "precision, %", "probability, %"} <= set(drawn.texts)
    for one in scores["curve"]:
        assert one["precision_low"] <= one["precision"] <= one["precision_high"]
        assert one["recall_low"] <= one["recall"] <= one["recall_high"]
    assert (scores["curve"][-1]["recall"], scores["curve"][-1]["precision"]) == (1.0, 0.25)
    assert not (tmp_path / "home" / "tables" / "verdicts").exists()

    heuristic = perfquarry(tmp_path / "home", "judge", "--evaluate", str(file)).stdout
    assert "40.0 %" in heuristic and "Brier score" in heuristic and "labels-heuristic.svg" in heuristic


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("judge", "demo", "--plot", "x.svg"), "give a repository"),
        (("judge", "demo", "--no-server", "--judge", "cassette:/nowhere"), "no folder of cassettes"),
        (("judge", "demo", "--count-tokens"), "perfquarry mine demo"),
    ],
)
def test_bad_usage(tmp_path: Path, perfquarry: Program, arguments: tuple[str, ...], words: str) -> None:
    done = perfquarry(tmp_path, *arguments, code=2)
    assert words in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("row", [{"label": "perhaps"}, {"sha": None}, {"weight": "much"}])
def test_bad_labels(tmp_path: Path, row: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="row 1"):
        read_labels(labels(tmp_path, **row))
