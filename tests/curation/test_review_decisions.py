"""The log of decisions, on SQLite and on Postgres: conflicts, undo, outcomes, agreement, Parquet."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import DBAPIError

from perfquarry.curation.intents import curated
from perfquarry.curation.review.agreement import agreements, agreements_in, kappa
from perfquarry.curation.review.database import open_database
from perfquarry.curation.review.decisions import Conflict, Decisions
from perfquarry.curation.review.queue import Filter, Queue
from perfquarry.curation.review.transfer import export_decisions, export_log, import_decisions
from perfquarry.data.errors import InputError, StoreError
from perfquarry.data.home import Home
from perfquarry.data.store import TableStore
from tests.review_home import desk_of, fill, finding, task_of


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/reviews.db"
    return new_database(request)


def new_database(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database on a server of Postgres."""
    server = make_url(request.getfixturevalue("postgres_url"))
    name = f"reviews_{uuid4().hex}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.set(database=name).render_as_string(hide_password=False)


@pytest.fixture
def decisions(url: str) -> Iterator[Decisions]:
    made = Decisions(open_database(url))
    yield made
    made.engine.dispose()


def actions(decisions: Decisions, task: str) -> list[tuple[str, str]]:
    return sorted((one.reviewer, one.action) for one in decisions.opinions(task))


def test_a_conflict_is_reported_and_nothing_is_overwritten(decisions: Decisions) -> None:
    decisions.record("t", "ann", "accept", seen=0)
    with pytest.raises(Conflict) as conflict:
        decisions.record("t", "bob", "reject", seen=0, reason="trivial")
    assert [(one.reviewer, one.action) for one in conflict.value.since] == [("ann", "accept")]
    assert actions(decisions, "t") == [("ann", "accept")]
    decisions.record("t", "bob", "reject", seen=conflict.value.version, reason="trivial")
    assert actions(decisions, "t") == [("ann", "accept"), ("bob", "reject")]


def test_notes_of_others_and_ones_own_steps_are_no_conflicts(decisions: Decisions) -> None:
    decisions.record("t", "bob", "note", seen=0, note="look at the cache")
    decisions.record("t", "ann", "reject", seen=0, reason="trivial")
    decisions.record("t", "ann", "accept", seen=0)
    assert actions(decisions, "t") == [("ann", "accept")]


def test_of_simultaneous_reviewers_one_wins_and_all_others_are_notified(decisions: Decisions) -> None:
    barrier = threading.Barrier(6)
    results: list[str] = []

    def decide(name: str) -> None:
        barrier.wait()
        try:
            decisions.record("t", name, "accept", seen=0)
            results.append("recorded")
        except Conflict:
            results.append("refused")

    threads = [threading.Thread(target=decide, args=(f"r{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["recorded", *["refused"] * 5]
    assert decisions.version("t") == len(decisions.log("t")) == 1


def test_the_log_can_only_be_added_to(decisions: Decisions) -> None:
    decisions.record("t", "ann", "accept", seen=0)
    for statement in ("UPDATE events SET reviewer = 'bob'", "DELETE FROM events"):
        with pytest.raises(DBAPIError, match="can only be added to"), decisions.engine.begin() as connection:
            connection.execute(text(statement))
    assert actions(decisions, "t") == [("ann", "accept")]


def test_undo_brings_the_opinion_before_back_and_is_logged(decisions: Decisions) -> None:
    decisions.record("t", "ann", "accept", seen=0)
    decisions.record("t", "ann", "reject", seen=1, reason="weak_workload")
    undone = decisions.undo("ann")
    assert undone and undone.task_id == "t" and actions(decisions, "t") == [("ann", "accept")]
    assert decisions.undo("ann") and actions(decisions, "t") == []
    assert decisions.undo("ann") is None and decisions.undo("bob") is None
    assert [one.action for one in decisions.log("t")] == ["accept", "reject", "undo", "undo"]


@pytest.mark.parametrize(
    ("action", "reason", "note"), [("reject", None, ""), ("reject", "no such", ""), ("note", None, " "),
                                   ("reject", "other", ""), ("undo", None, ""), ("accept", None, "x" * 5000)],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(decisions: Decisions, action: str, reason: str | None, note: str) -> None:
    with pytest.raises(InputError):
        decisions.record("t", "ann", action, seen=0, reason=reason, note=note)  # type: ignore[arg-type]
    assert decisions.log() == []


def test_outcomes_with_one_and_with_two_reviewers(url: str, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    first, second = task_of(1, 2.0), task_of(2, 1.5)
    fill(home, [first, second])
    desk = desk_of(home, url, required=2)
    queue = Queue(desk.index.engine, "bob")
    record = desk.decisions.record
    record(first.task_id, "ann", "accept", seen=0)
    assert desk.queue("ann").counts() == {"open": 1, "waiting": 1}
    assert queue.count(Filter()) == 2 and desk.queue("ann").count(Filter()) == 1
    record(first.task_id, "bob", "accept", seen=1)
    record(second.task_id, "bob", "accept", seen=0)
    record(second.task_id, "ann", "reject", seen=1, reason="trivial")
    assert queue.counts() == {"accepted": 1, "disputed": 1}
    assert queue.count(Filter()) == 0 and desk.queue("cid").count(Filter()) == 1
    desk.decisions.required = 1
    desk.decisions.undo("bob", first.task_id)
    desk.decisions.settle_all()
    assert queue.counts() == {"accepted": 1, "disputed": 1}
    desk.close()


def test_a_candidate_that_was_sent_back_returns_when_its_figures_are_new(url: str, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    fill(home, [task_of(1, 2.0)])
    desk = desk_of(home, url)
    key = task_of(1, 2.0).task_id
    desk.decisions.record(key, "ann", "measure-again", seen=0)
    desk.refresh()
    assert desk.queue("ann").counts() == {"sent-back": 1} and desk.queue("ann").count(Filter()) == 0
    assert desk.decisions.standing()
    newer = task_of(1, 1.2, config_hash="c0ffee2")
    TableStore(home.tables).append([newer])
    desk.refresh()
    assert desk.queue("ann").counts() == {"open": 1} and desk.queue("ann").count(Filter()) == 1
    assert desk.queue("bob").first(Filter()) == key
    assert desk.decisions.standing() == set()
    desk.close()


def test_search_filters_order_and_neighbours(url: str, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    tasks = [task_of(number, 1.1 + number / 10) for number in range(8)]
    odd = task_of(50, 9.0, title="100 % faster_than 'before'", message="É")
    noisy = finding(tasks[3], "memo-survives", "a memo goes unnoticed", "blocking")
    old = finding(tasks[4], "old", "of an earlier screening").model_copy(update={"config_hash": "older"})
    done = [finding(one, "screened", "all checks", "info") for one in tasks]
    fill(home, [*tasks, odd], findings=[old, noisy, *done])
    desk = desk_of(home, url)
    queue = desk.queue("ann")

    def found(**wanted: str) -> list[str]:
        return [entry.task_id for entry in queue.page(Filter(**wanted))]  # type: ignore[arg-type]

    ordered = [odd.task_id, *(one.task_id for one in reversed(tasks))]
    assert found() == ordered and found(sort="-speedup") == ordered[::-1]
    assert found(sort="-date") == [*(one.task_id for one in tasks), odd.task_id]
    assert found(q="100 % FASTER_THAN") == found(q="é") == found(q="'before'") == [odd.task_id]
    assert found(q="%") == [odd.task_id] and found(q="100_%") == []
    assert found(q=tasks[5].head_sha[:12]) == [tasks[5].task_id]
    assert found(finding="blocking") == [tasks[3].task_id] == found(finding="warning")
    assert len(found(finding="none")) == 8 and found(repo="other") == []
    for sort in ("speedup", "-speedup", "date", "-date"):
        ids = found(sort=sort)
        for place, one in enumerate(ids):
            neighbours = queue.neighbours(Filter(sort=sort), one)  # type: ignore[arg-type]
            assert neighbours == (ids[place - 1] if place else None, ids[place + 1] if place < 8 else None)
    desk.close()


def test_decisions_travel_as_parquet(decisions: Decisions, tmp_path: Path) -> None:
    decisions.record("a", "ann", "accept", seen=0, note="clear")
    decisions.record("b", "ann", "reject", seen=0, reason="duplicate")
    decisions.record("b", "bob", "accept", seen=1)
    decisions.record("c", "bob", "accept", seen=0)
    decisions.undo("bob")
    assert export_decisions(decisions, tmp_path / "now.parquet") == 3
    assert export_log(decisions, tmp_path / "deep" / "log.parquet") == 5
    now = pq.read_table(tmp_path / "now.parquet").to_pylist()
    assert [(row["task_id"], row["reviewer"], row["decision"]) for row in now] == [
        ("a", "ann", "accept"), ("b", "ann", "reject"), ("b", "bob", "accept"),
    ]  # fmt: skip
    other = Decisions(open_database(f"sqlite:///{tmp_path}/other.db"))
    assert import_decisions(other, tmp_path / "deep" / "log.parquet") == (5, 5)
    assert import_decisions(other, tmp_path / "deep" / "log.parquet") == (5, 0)
    assert import_decisions(other, tmp_path / "now.parquet") == (3, 0)
    assert other.log() == decisions.log()
    assert actions(other, "b") == actions(decisions, "b") and actions(other, "c") == []
    with pytest.raises(Conflict):
        other.record("b", "cid", "accept", seen=1)
    other.engine.dispose()


def test_an_acceptance_sets_the_class_and_travels(decisions: Decisions, tmp_path: Path) -> None:
    decisions.record("a", "ann", "accept", seen=0, intent="side_effect")
    decisions.record("b", "ann", "reject", seen=0, reason="duplicate", intent="intended")
    decisions.record("c", "ann", "accept", seen=0)
    assert decisions.intents() == {"a": ("side_effect", "ann")}, "a rejection sets none"
    decisions.record("a", "bob", "accept", seen=1, intent="intended")
    export_log(decisions, tmp_path / "log.parquet")
    other = Decisions(open_database(f"sqlite:///{tmp_path}/other.db"))
    import_decisions(other, tmp_path / "log.parquet")
    assert other.intents() == decisions.intents() == {"a": ("intended", "bob")}
    decisions.undo("bob")
    assert decisions.intents() == {"a": ("side_effect", "ann")}
    other.engine.dispose()


def test_files_from_before_the_class_are_read(decisions: Decisions, tmp_path: Path) -> None:
    decisions.record("a", "ann", "accept", seen=0)
    export_log(decisions, tmp_path / "log.parquet")
    pq.write_table(pq.read_table(tmp_path / "log.parquet").drop_columns(["intent"]), tmp_path / "old.parquet")
    other = Decisions(open_database(f"sqlite:///{tmp_path}/other.db"))
    assert import_decisions(other, tmp_path / "old.parquet") == (1, 1)
    other.engine.dispose()


def test_what_is_no_file_of_decisions_is_refused_whole(decisions: Decisions, tmp_path: Path) -> None:
    good = {"uid": "u", "task_id": "a", "fingerprint": "", "reviewer": "ann", "decision": "accept", "reason": None,
            "note": "", "undoes": None, "at": "2026-01-01T00:00:00.000000+00:00"}  # fmt: skip
    for change in ({"decision": "perhaps"}, {"decision": "reject"}, {"undoes": "x"}, {"reviewer": ""}, {"at": None}):
        pq.write_table(pa.Table.from_pylist([good, good | {"uid": "v"} | change]), tmp_path / "bad.parquet")
        with pytest.raises(InputError, match="row 2"):
            import_decisions(decisions, tmp_path / "bad.parquet")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "bad.parquet")
    with pytest.raises(InputError, match="columns are missing"):
        import_decisions(decisions, tmp_path / "bad.parquet")
    with pytest.raises(InputError, match="cannot read"):
        import_decisions(decisions, tmp_path / "none.parquet")
    assert decisions.log() == []


def test_kappa() -> None:
    # Cohen's example form: 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: p_o 0.7, p_e 0.5, so 0.4
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert kappa(pairs) == pytest.approx(0.4)
    assert kappa([]) is None and kappa([("y", "y")] * 3) is None
    assert kappa([("y", "n"), ("n", "y")]) == pytest.approx(-1)


def test_agreement_is_over_what_both_decided(decisions: Decisions) -> None:
    rows = [("a", "ann", "accept"), ("a", "bob", "accept"), ("b", "ann", "reject"), ("c", "bob", "reject")]
    [one] = agreements(rows)
    assert (one.first, one.second, one.both, one.equal, one.kappa) == ("ann", "bob", 1, 1, None)
    for task, ann, bob in (("a", "accept", "accept"), ("b", "reject", "reject"), ("c", "accept", "reject")):
        decisions.record(task, "ann", ann, seen=0, reason="trivial")  # type: ignore[arg-type]
        decisions.record(task, "bob", bob, seen=1, reason="trivial")  # type: ignore[arg-type]
    decisions.record("a", "ann", "measure-again", seen=2)
    [one] = agreements_in(decisions.engine)
    assert (one.both, one.equal) == (2, 1)


def test_other_databases_are_refused() -> None:
    with pytest.raises(InputError, match="SQLite or Postgres"):
        open_database("mysql://x@y/z")
    with pytest.raises(InputError, match="URL"):
        open_database("reviews.db")


def test_a_home_knows_the_classes_that_its_curators_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERFQUARRY_DATABASE", raising=False)
    home = Home(tmp_path)
    assert curated(home) == {} and not list(tmp_path.iterdir()), "nothing is made by looking"
    decisions = Decisions(open_database(f"sqlite:///{tmp_path}/review/reviews.db"))
    decisions.record("a", "ann", "accept", seen=0)
    assert curated(home) == {}
    decisions.record("b", "ann", "accept", seen=0, intent="side_effect")
    assert curated(home) == {"b": ("side_effect", "ann")}
    decisions.engine.dispose()
    (tmp_path / "review" / "reviews.db").write_text("no database at all")
    with pytest.raises(StoreError, match=r"reviews\.db cannot be opened"):
        curated(home)
