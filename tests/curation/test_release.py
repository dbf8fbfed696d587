"""Releases: what goes in, what the folder holds, and what the gate finds when something is wrong with it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from release_parts import STAMP, candidate, failed, manifest, repository, sample_task, timings_of
from sample_change import BASE, CHANGE_ID
from simulated_timings import MACHINE

from perfquarry.curation.formats import GSO_SCHEMA, SWEPERF_SCHEMA
from perfquarry.curation.problems import texts_for_solvers
from perfquarry.curation.release import check as gate
from perfquarry.curation.release import folder as files
from perfquarry.curation.release.card import counted_once, measured_again, schema_page
from perfquarry.curation.release.changelog import why_changed
from perfquarry.curation.release.manifest import Family, Manifest
from perfquarry.curation.release.selection import (
    ReleaseCandidate,
    Selection,
    as_task,
    read_intents,
    read_reviews,
    select,
)
from perfquarry.curation.release.sources import pack, pack_of, patched, tree_of, unpack
from perfquarry.curation.release.writing import write_release
from perfquarry.data.errors import InputError
from perfquarry.data.records import Finding, Intent, IntentClass, Problem, Revalidation, Task
from perfquarry.data.records.revalidation import RevalidatedWorkload
from perfquarry.harness.trees.clone_git import git


def test_a_release_passes_its_gate(release: Path) -> None:
    assert failed(release) == {}
    done = subprocess.run(["sha256sum", "--check", "--quiet", files.SUMS], cwd=release, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_every_configuration_loads_with_datasets(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from datasets import load_dataset

    named = files.configurations_of(release)
    assert set(files.CONFIGURATIONS) - set(named) == {"tasks", "withdrawn", *files.ASIDE}, "they have no rows"
    for name in named:
        loaded = load_dataset(str(release), name, split="test", cache_dir=str(tmp_path))
        assert loaded.column_names == files.CONFIGURATIONS[name].names and loaded.num_rows > 0
    default = load_dataset(str(release), split="test", cache_dir=str(tmp_path))
    assert default[0]["recipe"]["python"] == "3.11.7"
    for name, schema in (("gso", GSO_SCHEMA), ("sweperf", SWEPERF_SCHEMA)):
        (line,) = (release / "jsonl" / f"{name}.jsonl").read_text().splitlines()
        assert list(json.loads(line)) == schema.names and len(schema.names) == 15


def test_every_column_is_described(release: Path) -> None:
    page = schema_page(files.CONFIGURATIONS)
    assert (release / "SCHEMA.md").read_text() == page
    lines = [line for line in page.splitlines() if line.startswith("| `")]
    assert "| `workloads[].speedup` |" in page and "| `machine.cpu` |" in page
    assert [line for line in lines if line.split("|")[4].strip() == ""] == []


def test_the_card_states_the_facts(release: Path) -> None:
    card = (release / "README.md").read_text()
    assert "| 1 | 0 | owner\\_\\_sample-0123456789 (no\\_gain) |" in card
    for words in (
        "at most 0.0004",
        "Decontamination date: 2020-01-02",
        "| owner/sample | MIT | 1 |",
        "plots/speedups.svg",
    ):
        assert words in card
    assert "| owner/sample | 8 | 7 | 6 | 5 | 4 | 3 | 1 | 15 |" in card
    assert Manifest.read(release).rows == {"default": 1, "gso": 1, "sweperf": 1, "timings": 184, "revalidations": 1} | {
        "side_effect": 0,
        "behaviour_changed": 0,
        "tasks": 0,
        "withdrawn": 0,
    }


def intent_of(task: Task, name: IntentClass) -> Intent:
    return Intent(
        repo="sample", stage_version="1", config_hash="1", task_id=task.task_id, change_id=task.change_id, intent=name,
        evidence=["pkg/old.py: Frob is gone", "asked by jane@somewhere.org"],
    )  # fmt: skip


@pytest.mark.parametrize("name", ["intended", "side_effect", "behaviour_changed"])
def test_what_was_not_meant_has_a_configuration_of_its_own(name: IntentClass, tmp_path: Path) -> None:
    clone, base, _, patch = repository(tmp_path / "clone")
    first = sample_task(base, patch)
    other = first.model_copy(update={"task_id": "owner__sample-0000000000"})
    some = [candidate(one, tree_of(clone, base)) for one in (first, other)]
    some[1] = replace(some[1], intent=intent_of(other, name))
    selection = select(some, {}, {})
    folder = tmp_path / "release"
    made, _ = write_release(folder, manifest(), selection, timings_of(selection), {"sample": clone})
    aside = [] if name == "intended" else [name]
    assert [one for one in files.ASIDE if made.rows[one]] == aside
    rows = {one.task_id: one for one in files.read_every_task(folder)}
    assert rows.keys() == {first.task_id, other.task_id}
    assert rows[first.task_id].intent is None and rows[other.task_id].intent == name
    assert "jane@" not in str(rows[other.task_id].intent_evidence)
    assert (other.task_id in {one.task_id for one in files.read_tasks(folder)}) == (not aside)
    assert made.rows["gso"] == made.rows["default"] == 2 - len(aside)
    assert [f"config_name: {one}" in (folder / "README.md").read_text() for one in files.ASIDE] == [
        one in aside for one in files.ASIDE
    ]
    assert failed(folder) == {}


def test_the_class_that_a_curator_sets_is_read_from_the_reviews(tmp_path: Path) -> None:
    def review(uid: str, decision: str, intent: str | None, undoes: str | None = None) -> dict[str, str | None]:
        at = f"2026-01-0{uid}T00:00:00.000000+00:00"
        return {"uid": uid, "task_id": "a", "reviewer": "ann", "decision": decision, "at": at, "intent": intent,
                "undoes": undoes}  # fmt: skip

    rows = [review("1", "accept", "side_effect"), review("2", "accept", "intended"), review("3", "accept", None)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "reviews.parquet")
    assert read_intents(tmp_path / "reviews.parquet") == {"a": ("intended", "ann")}
    pq.write_table(pa.Table.from_pylist([*rows, review("4", "undo", None, "2")]), tmp_path / "undone.parquet")
    assert read_intents(tmp_path / "undone.parquet") == {"a": ("side_effect", "ann")}
    old = {name: value for name, value in rows[0].items() if name != "intent"}
    pq.write_table(pa.Table.from_pylist([old]), tmp_path / "old.parquet")
    assert read_intents(tmp_path / "old.parquet") == {}


def rewrite(folder: Path, change: Callable[[dict[str, object]], None]) -> None:
    """Changes the one row of the canonical table, and the checksums with it."""
    file = files.parquet_of(folder, "default")
    table = pq.read_table(file, partitioning=None)
    (row,) = table.to_pylist()
    change(row)
    pq.write_table(pa.Table.from_pylist([row], schema=table.schema), file)
    files.write_sums(folder)


@pytest.mark.parametrize(
    ("column", "value", "check", "words"),
    [
        ("problem_oracle", "Use _frob_memo in Frob.run", "no leak", "_frob_memo"),
        ("problem_gso", "keeps earlier answers in a dictionary", "no leak", "keeps earlier answers"),
        ("message", "Signed-off-by: A <someone@somewhere.org>", "no leak", "someone@somewhere.org"),
        ("version", "AKIA" + "ABCDEFGHIJKLMNOP", "no leak", "AWS key"),
        ("patch", "--- a/no\n+++ b/no\n@@ -1 +1 @@\n-a\n+b\n", "recipes", "apply"),
        ("licence", "", "licences", "no licence"),
        ("speedup", 0.9, "figures", "not above 1"),
        ("task_id", "other__task-0123456789", "rows", "other tasks"),
        ("test_patch", "+more\n", "rows", "gt_diff is not what default says"),
        ("apis", [], "rows", "api is not what default says"),
    ],
)  # fmt: skip
def test_the_gate_finds(copy: Path, column: str, value: object, check: str, words: str) -> None:
    rewrite(copy, lambda row: row.update({column: value}))
    assert any(words in problem for problem in failed(copy)[check])


def test_the_gate_finds_a_base_that_is_not_there(copy: Path) -> None:
    rewrite(copy, lambda row: row["recipe"].update({"tree": "f" * 40}))  # type: ignore[attr-defined]
    assert any("does not have all files of its base" in problem for problem in failed(copy)["recipes"])
    pack_of(copy, "sample").write_bytes(b"PACK but no more")
    assert any("no whole pack" in problem for problem in failed(copy)["recipes"])


def test_the_gate_finds_changed_missing_and_foreign_files(copy: Path) -> None:
    (copy / "SCHEMA.md").write_text("other")
    (copy / "CHANGELOG.md").unlink()
    (copy / "more").write_text("")
    found = failed(copy)["checksums"]
    assert found == [
        "CHANGELOG.md is missing",
        "SCHEMA.md is not what was written",
        f"more is not in {files.SUMS}",
    ]


def test_the_gate_finds_other_columns(copy: Path) -> None:
    file = files.parquet_of(copy, "gso")
    pq.write_table(pq.read_table(file, partitioning=None).drop(["arch"]), file)
    shutil.rmtree(copy / "data" / "timings")
    assert {"checksums", "schema", "rows", "figures"} <= set(failed(copy))
    with pytest.raises(InputError, match="is no release"):
        gate.check(copy.parent, None)


def test_the_same_selection_is_the_same_sources(release: Path, tmp_path: Path) -> None:
    clone, base, _, _ = repository(tmp_path / "clone")
    trees = [tree_of(clone, base)]
    pack(clone, trees, tmp_path / "a.pack")
    pack(clone, trees * 2, tmp_path / "b.pack")
    assert (tmp_path / "a.pack").read_bytes() == (tmp_path / "b.pack").read_bytes()
    unpack(tmp_path / "a.pack", tmp_path / "bare.git")
    unpack(tmp_path / "a.pack", tmp_path / "bare.git")
    kinds = git(tmp_path / "bare.git", "cat-file", "--batch-all-objects", "--batch-check=%(objecttype)").split()
    assert set(kinds) == {b"tree", b"blob"}, "no commit: neither authors nor history"
    assert len(kinds) == 3, "nothing of the head"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pack", "b.pack", "bare.git", "clone"]
    with pytest.raises(InputError, match="does not have the commit"):
        tree_of(clone, "f" * 40)


def test_a_patch_makes_the_tree_of_the_head(tmp_path: Path) -> None:
    clone, base, head, patch = repository(tmp_path / "clone")
    bare = tmp_path / "bare.git"
    pack(clone, [tree_of(clone, base)], tmp_path / "a.pack")
    unpack(tmp_path / "a.pack", bare)
    assert patched(bare, tree_of(clone, base), patch) == tree_of(clone, head)
    assert patched(bare, tree_of(clone, base), "") == tree_of(clone, base)
    assert patched(bare, tree_of(clone, base), patch.replace("return", "never")) is None


# what goes in

TREE = "a" * 40


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    _, base, _, patch = repository(tmp_path_factory.mktemp("task") / "clone")
    return sample_task(base, patch)


def finding(severity: str) -> Finding:
    return Finding(
        **STAMP.fields(), task_id="owner__sample-0123456789", change_id=CHANGE_ID, check="memo-survives",
        severity=severity, evidence="one call of two is answered from the memo",
    )  # fmt: skip


def problem(setting: str, text: str, author: str = "template", day: int = 1, status: str = "kept") -> Problem:
    return Problem(
        **STAMP.fields(), status=status, task_id="owner__sample-0123456789", change_id=CHANGE_ID, setting=setting,
        author=author, text=text, created_at=datetime(2026, 1, day, tzinfo=UTC),
    )  # fmt: skip


def why_not(one: ReleaseCandidate, reviews: dict[str, bool] | None = None) -> str:
    selection = select([one], reviews or {}, {})
    assert len(selection.rows) + len(selection.left_out) == 1 and len(selection.rows) == len(selection.tasks)
    return selection.left_out[0].why if selection.left_out else ""


def test_reviews_and_findings_decide(task: Task) -> None:
    plain, warned, blocked = (
        candidate(task, TREE, findings=[finding(severity)]) for severity in ("info", "warning", "blocking")
    )
    mine = task.task_id
    assert why_not(plain) == "" and "rejected by a curator" in why_not(plain, {mine: False})
    assert "memo-survives" in why_not(blocked)
    assert why_not(blocked, {mine: True}) == ""
    (row,) = select([warned], {mine: True}, {}).rows
    assert row.review == "accepted" and row.warnings == ["memo-survives: one call of two is answered from the memo"]
    assert select([plain], {}, {}).rows[0].review == "unreviewed"


def test_what_must_not_be_public_stays_out(task: Task) -> None:
    def changed(**fields: object) -> ReleaseCandidate:
        return candidate(task.model_copy(update=fields), TREE)

    assert "no licence" in why_not(changed(licence=""))
    assert "e-mail address" in why_not(changed(patch=task.patch + "+# ask me@somewhere.org\n"))
    assert "secret (private key)" in why_not(changed(test_patch="+-----BEGIN RSA PRIVATE KEY-----\n"))
    assert "reveal the fix" in why_not(changed(problem_oracle="Call `_frob_memo` instead."))
    assert "tables" in why_not(candidate(task, TREE, base=None))
    (row,) = select([changed(message="x\n\nCo-authored-by: B <b@somewhere.org>")], {}, {}).rows
    assert row.message == "x\n\nCo-authored-by: B <<address removed>>"


def test_what_the_gate_refused_stays_out(tmp_path: Path, task: Task) -> None:
    ran = {"null_detail": "gains without a patch", "gold_detail": "test_x: failed at the head"}
    outcomes = {task.task_id: (False, True), "fine": (True, True), "null": (True, False)}
    runs = [{"task_id": name, "gold": gold, "null": null, **ran} for name, (gold, null) in outcomes.items()]
    (tmp_path / "checked.json").write_text(json.dumps({"runs": runs}))
    failed = gate.read_failed(tmp_path / "checked.json")
    assert failed == {task.task_id: "the gate: test_x: failed at the head", "null": "the gate: gains without a patch"}
    (left,) = select([candidate(task, TREE)], {}, failed).left_out
    assert left.why == "the gate: test_x: failed at the head"
    for text in ("no JSON", "[]", "{}", '{"runs": [1]}'):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(InputError, match=r"other\.json is no output"):
            gate.read_failed(tmp_path / "other.json")


def test_plans_are_never_released_and_models_texts_come_first(task: Task) -> None:
    problems = [
        problem("oracle", "by a model", author="openai:x", day=1),
        problem("oracle", "by the template", day=9),
        problem("realistic", "older", day=2),
        problem("realistic", "newer", day=3),
        problem("realistic", "gives it away", author="openai:x", day=4, status="rejected"),
        problem("plan", "the plan: _frob_memo"),
    ]
    assert texts_for_solvers(task, problems) == {"oracle": "by a model", "realistic": "newer"}
    (row,) = select([candidate(task, TREE, problems=problems, build_version="1.2.dev0")], {}, {}).rows
    assert row.recipe.build_version == "1.2.dev0"
    assert (row.problem_oracle, row.problem_realistic, row.problem_gso) == ("by a model", "newer", "")
    assert "the plan" not in row.model_dump_json()


def test_a_task_whose_texts_all_reveal_the_fix_stays_out(task: Task) -> None:
    problems = [problem("realistic", "fine at first"), problem("realistic", "revealed", day=2, status="rejected")]
    assert "each of setting realistic" in why_not(candidate(task, TREE, problems=problems))
    assert why_not(candidate(task, TREE, problems=[*problems, problem("realistic", "anew", "openai:x", day=3)])) == ""


def test_a_task_that_failed_when_measured_again_counts_when_it_is_no_longer_released() -> None:
    def row(name: str, run: str, *held: bool) -> Revalidation:
        one = RevalidatedWorkload(workload_id="w", node="t", held=True, published=2.0)
        return Revalidation(
            repo="sample", stage_version="1", config_hash="1", task_id=name, change_id=CHANGE_ID, run_id=run,
            status="kept" if all(held) else "rejected", reason=None if all(held) else "no_gain", python="3.11.7",
            machine=MACHINE, seconds=1.0, workloads=[one.model_copy(update={"held": each}) for each in held],
        )  # fmt: skip

    rows = [row("a", "r1", True), row("b", "r1", True), row("c", "r1", False, True), row("c", "r2", True, True)]
    first, second = measured_again(rows, {"a", "c"})
    assert {name: first[name] for name in ("tasks", "held", "released", "released_held", "not_held")} == {
        "tasks": 3, "held": 2, "released": 2, "released_held": 1, "not_held": ["c (no_gain)"],
    }  # fmt: skip
    assert (second["tasks"], second["held"]) == (1, 1)
    assert counted_once(rows, {"a", "c", "d"}) == {"tasks": 3, "held": 2, "partly": 3, "released": 2}


def test_of_each_reviewer_the_newest_decision_counts(tmp_path: Path) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [
        ("a", "eve", "reject", 1), ("a", "eve", "accept", 2),
        ("b", "eve", "accept", 1), ("b", "bob", "reject", 2),
        ("c", "bob", "more-tests", 1), ("d", "bob", "note", 1), ("e", "bob", "reject", 1), ("e", "bob", "undo", 2),
    ]  # fmt: skip
    names = ("task_id", "reviewer", "decision", "at")
    table = [dict(zip(names, (*row[:3], moment + timedelta(days=row[3])), strict=True)) for row in rows]
    pq.write_table(pa.Table.from_pylist(table[:5]), tmp_path / "standing.parquet")
    assert read_reviews(tmp_path / "standing.parquet") == {"a": True, "b": False, "c": False}
    log = [{**row, "uid": str(place), "undoes": None} for place, row in enumerate(table)]
    log[-1]["undoes"] = log[-2]["uid"]
    pq.write_table(pa.Table.from_pylist(log), tmp_path / "log.parquet")
    assert read_reviews(tmp_path / "log.parquet") == {"a": True, "b": False, "c": False}
    pq.write_table(pa.table({"task_id": ["a"]}), tmp_path / "other.parquet")
    for name in ("other.parquet", "none.parquet"):
        with pytest.raises(InputError, match=name):
            read_reviews(tmp_path / name)


def test_changelog_says_what_and_why(tmp_path: Path, task: Task) -> None:
    clone, base, _, patch = repository(tmp_path / "clone")
    tree = tree_of(clone, base)

    def version(number: str, tasks: list[Task], reviews: dict[str, bool], previous: Path | None) -> Path:
        ours = [one.model_copy(update={"base_sha": base, "patch": patch}) for one in tasks]
        selection = select([candidate(one, tree) for one in ours], reviews, {})
        place = tmp_path / number
        write_release(place, manifest(number), selection, timings_of(selection), {"sample": clone}, previous)
        return place

    other = task.model_copy(update={"task_id": "owner__sample-1"})
    third = task.model_copy(update={"task_id": "owner__sample-2"})
    first = version("1.0.0", [task, other], {}, None)
    again = task.model_copy(update={"speedup": (task.speedup or 0) * 1.001, "title": "Other words"})
    second = version("1.1.0", [again, other, third], {"owner__sample-1": False}, first)
    text = (second / "CHANGELOG.md").read_text()
    assert "First version: 2 tasks." in text and text.index("## 1.1.0") < text.index("## 1.0.0")
    assert "1 added, 1 removed, 1 changed" in text
    assert "owner\\_\\_sample-1: rejected by a curator" in text
    assert "measured again (speedup); other texts or facts (title)" in text.replace("\\", "")
    assert Manifest.read(second).previous == "1.0.0"


def test_more_tests_of_a_repository_are_no_new_measurement() -> None:
    assert why_changed(["workloads", "q_value"]) == "corrected for other tests (workloads, q_value)"
    assert why_changed(["workloads", "q_value", "low"]) == "measured again (workloads, q_value, low)"


def test_a_folder_that_is_no_release_is_left_alone(tmp_path: Path, task: Task) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    selection = select([candidate(task, TREE)], {}, {})
    with pytest.raises(InputError, match="is no release"):
        write_release(tmp_path / "mine", manifest(), selection, [], {})
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    with pytest.raises(InputError, match="no task"):
        write_release(tmp_path / "new", manifest(), Selection(), [], {})
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_manifest_of_another_version_is_read(release: Path, copy: Path) -> None:
    facts = json.loads((release / "release.json").read_text())
    source = facts["sources"][0]
    source["family"] = {"workloads": 4, "accepted": 2, "max_q": 0.01}
    for part in (facts, *facts["machines"], source, source["funnel"], *source["funnel"]["stages"]):
        part["unheard-of"] = 1
    (copy / "release.json").write_text(json.dumps(facts))
    assert Manifest.read(copy).sources[0].family.accepted == 2


def test_expected_false_tasks() -> None:
    family = Family(workloads=900, accepted=70, max_p=0.002, max_confirming_p=0.01, rounds=3)
    assert family.expected_false == pytest.approx(0.054)
    assert Family(workloads=900, accepted=0).expected_false == 0


def test_a_released_task_is_a_task_again(release: Path, task: Task) -> None:
    (row,) = files.read_tasks(release)
    lost = {
        "stage_version",
        "config_hash",
        "created_at",
        "measured_at",
        "durations",
        "detail",
        "base_sha",
        "patch",
        "margin",
    }
    again = as_task(row.model_copy(update={"base_commit": BASE}))
    assert again.model_dump(exclude=lost) == task.model_dump(exclude=lost)


@pytest.mark.parametrize(
    "altered",
    [{"repo": "../../outside"}, {"tree": "--help"}, {"source_roots": ["../.."]}, {"source_roots": ["/etc"]}],
)
def test_a_strangers_release_names_nothing_outside(copy: Path, altered: dict[str, object]) -> None:
    file = files.parquet_of(copy, "default")
    rows = pq.read_table(file, partitioning=None)
    (row,) = rows.to_pylist()
    (row if "repo" in altered else row["recipe"]).update(altered)
    pq.write_table(pa.Table.from_pylist([row], schema=rows.schema), file)
    with pytest.raises(InputError, match="is refused"):
        files.read_tasks(copy)
