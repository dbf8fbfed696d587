"""Problem texts: by template, by a model, and plans that nobody is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from screened_task import STAMP, task, workload

from perfquarry.curation import Format
from perfquarry.curation.formats import export
from perfquarry.curation.problems import Fix, shown, templates, texts_for_solvers
from perfquarry.curation.problems.texts import problem_of
from perfquarry.curation.problems.written import plan_in, plan_request, statements_request, texts_in
from perfquarry.data.home import Home
from perfquarry.data.records import LlmCall, Problem, Task
from perfquarry.data.store import TableStore
from perfquarry.llm.client import open_client
from perfquarry.llm.recordings import Recording

CASSETTES = Path(__file__).parent / "cassettes"
SPEC = f"cassette:{CASSETTES}"
SCRIPT = '"""Sums."""\ndef setup():\n    return list(range(9))\n\ndef experiment(data):\n    return total(data)\n'
TASK = task(
    workloads=[
        workload(SCRIPT, source="generated", workload_id="1"),
        workload("hidden = 1", source="generated", workload_id="0", role="hidden"),
    ]
)
FIX = Fix.of(TASK, identifiers=["fast_table"], lines=["table = fast_table(items)"])


def test_templates_show_the_visible_script_and_the_functions() -> None:
    rows = {row.setting: row for row in templates(TASK, FIX, STAMP)}
    assert set(rows) == {"gso", "oracle", "realistic", "fuzzy"}
    assert "return total(data)" in rows["gso"].text and "hidden = 1" not in rows["gso"].text
    assert all(row.status == "kept" and not row.leaks for row in rows.values())
    assert [row.setting for row in templates(task(problem_oracle="", workloads=[]), FIX, STAMP)] == [
        "realistic",
        "fuzzy",
    ]


def test_a_text_that_reveals_the_fix_is_rejected_but_the_templates_own_words_reveal_nothing() -> None:
    words = Fix.of(TASK, identifiers=["prefix", "results", "load_result"])
    assert {row.status for row in templates(task(), words, STAMP)} == {"kept"}
    fix = Fix.of(TASK, identifiers=["total", "results"])
    rows = {row.setting: row for row in templates(TASK, fix, STAMP)}
    assert {row.status for name, row in rows.items() if name != "fuzzy"} == {"rejected"}
    assert rows["gso"].reason == "tells_the_fix" and rows["gso"].leaks == ["identifier total"]
    assert [row.setting for row in shown(rows.values())] == ["fuzzy"]


def test_a_users_report_names_the_part_and_the_time_but_no_function() -> None:
    (row,) = (row for row in templates(TASK, FIX, STAMP) if row.setting == "fuzzy")
    assert "`core`" in row.text and " ms " in row.text
    assert "total" not in row.text and row.status == "kept"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Sums take long.", []),
        ("In total it takes long.", []),
        ("Calls of `total` take long.", ["function total"]),
        ("It is total(items) that takes long.", ["function total"]),
    ],
)
def test_a_users_report_that_names_a_target_as_code_is_rejected(text: str, named: list[str]) -> None:
    row = problem_of(TASK, "fuzzy", text, FIX, STAMP, "openai:x")
    assert row.leaks == named and row.status == ("rejected" if named else "kept")


def ask(tmp_path: Path) -> tuple[TableStore, list[Problem]]:
    store = TableStore(tmp_path / "tables")
    with open_client(SPEC, Home(tmp_path), store, STAMP) as client:
        texts, plan = client.ask(statements_request(TASK)).value, client.ask(plan_request(TASK)).value
    assert texts and plan
    return store, [*texts_in(TASK, texts, FIX, SPEC, STAMP), plan_in(TASK, plan, SPEC, STAMP)]


def test_a_model_writes_texts_that_are_checked_like_all_others(tmp_path: Path) -> None:
    store, rows = ask(tmp_path)
    outcome = {row.setting: (row.status, row.leaks) for row in rows}
    assert outcome == {
        "gso": ("kept", []),
        "oracle": ("kept", []),
        "realistic": ("rejected", ["identifier fast_table"]),
        "fuzzy": ("kept", []),
        "plan": ("kept", []),
    }
    by_setting = {row.setting: row for row in rows}
    assert by_setting["gso"].text.endswith("```") and "return total(data)" in by_setting["gso"].text
    assert {row.author for row in rows} == {SPEC}
    assert {row.prompt for row in store.records(LlmCall, "sample")} == {"problem", "plan"}


def test_who_writes_a_text_is_shown_nothing_of_the_fix() -> None:
    question = statements_request(TASK).text
    assert FIX.leaks_in(question) == [] and "pkg/core.py::total" in question
    assert "fast_table" in plan_request(TASK).text


def test_plans_are_stored_and_never_shown(tmp_path: Path) -> None:
    _, rows = ask(tmp_path)
    secret = next(row.text for row in rows if row.setting == "plan")
    assert "fast_table" in secret
    assert "plan" not in {row.setting for row in shown(rows)}
    forms: tuple[Format, ...] = ("native", "gso", "sweperf")
    for form in forms:
        path = tmp_path / f"{form}.parquet"
        export([task()], path, form)
        assert secret[:40].encode() not in path.read_bytes()


def test_a_text_about_a_script_that_is_hidden_today_is_not_shown() -> None:
    one, other = SCRIPT.replace("Sums", "One"), SCRIPT.replace("Sums", "Two")

    def with_visible(script: str, hidden: str) -> Task:
        scripts = [workload(script, source="generated", workload_id="1")]
        return task(workloads=[*scripts, workload(hidden, source="generated", workload_id="2", role="hidden")])

    before, now = with_visible(other, one), with_visible(one, other)
    (old,) = (row for row in templates(before, FIX, STAMP) if row.setting == "gso")
    (new,) = (row for row in templates(now, FIX, STAMP) if row.setting == "gso")
    by_model = old.model_copy(update={"author": "openai:x"})
    assert texts_for_solvers(before, [old, by_model]) == {"gso": by_model.text}
    assert texts_for_solvers(now, [new, by_model]) == {"gso": new.text}
    assert texts_for_solvers(now, [by_model]) == {"gso": ""}


@pytest.mark.parametrize("path", sorted(CASSETTES.glob("*.json")), ids=lambda path: path.stem)
def test_cassettes_are_labelled_and_answer_the_prompts_of_today(path: Path) -> None:
    recording = Recording.model_validate_json(path.read_bytes())
    assert recording.origin == "written by hand" and recording.note
    assert recording.address in {statements_request(TASK).address, plan_request(TASK).address}
