"""The schedule: plans as data, then whole sessions of a tiny repository in real processes."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from perfquarry.curation.blocks import runs_of
from perfquarry.data.home import Home
from perfquarry.data.records import Machine, Reason, Stamp, Timing, Workload, workload_id_of
from perfquarry.harness.contracts import BuiltSide, Limits, ProbeItem, ProbeReport, ProbeRequest, Sandbox
from perfquarry.harness.leases import eviction
from perfquarry.harness.measuring.machine import machine_facts, measurement_lock
from perfquarry.harness.measuring.schedule import Role, outcome_of, plan_pairs, run_session
from perfquarry.harness.probing.live import LiveProcess
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.settings import MeasureSettings
from perfquarry.harness.trees.tree_copies import second_copy

SETTINGS = MeasureSettings(
    pairs=6, max_pairs=6, aa_every=3, warmups=1, turn_seconds=0.01, fewest_turns=3, most_turns=5, fresh_seconds=0.002
)
FEW: dict[str, Any] = {"pairs": 2, "max_pairs": 2, "aa_every": 9}
"""For sessions whose length is not what a test is about: five processes instead of fourteen."""
STAMP = Stamp(repo="tiny", stage_version="1", config_hash="c")
FAST = "test_tiny.py::test_function"
METHOD = "test_tiny.py::Case::test_method"
TESTS = """
    import os, time, unittest
    import pytest
    from tiny import work
    calls = []
    def test_function():
        assert work(100) == sum(range(100))
    class Case(unittest.TestCase):
        def test_method(self):
            self.assertEqual(work(10), 45)
    def test_sides():
        assert work.__doc__ == "base"
    def test_dies():
        if work.__doc__ == "head": os._exit(3)
    def test_hangs():
        while True: pass
    @pytest.fixture(scope="module")
    def alone():
        calls.append("alone")
    def test_needs_a_fresh_process(alone):
        assert calls == ["alone"], "another test ran before"
    def test_leaves_something():
        calls.append("something")
    def test_ends_where_others_ran():
        if "something" in calls: os._exit(0)
    @pytest.fixture
    def prepared():
        until = time.process_time() + 0.06
        while time.process_time() < until: pass
    @pytest.mark.parametrize("number", range(5))
    def test_is_long_prepared(prepared, number):
        work(10)
"""


def no_stop(timings: Sequence[Timing]) -> Collection[str]:
    return ()


def workload(code: str) -> Workload:
    identity = workload_id_of("change", "unit-test", code)
    return Workload(**STAMP.fields(), workload_id=identity, change_id="change", source="unit-test", code=code)


def tree(folder: Path, side: str) -> Path:
    folder.mkdir()
    (folder / "tiny.py").write_text(f"def work(n):\n    {side!r}\n    return sum(range(n))\n")
    (folder / "test_tiny.py").write_text(textwrap.dedent(TESTS))
    return folder


@pytest.fixture
def machine(sandbox: Sandbox) -> Machine:
    return machine_facts(sandbox.name)


@pytest.fixture
def sides(tmp_path: Path, bare_python: Path) -> tuple[BuiltSide, BuiltSide]:
    base, head = tree(tmp_path / "tree-0", "base"), tree(tmp_path / "tree-1", "head")
    return BuiltSide("base", "0", base, bare_python, "e", (base,)), BuiltSide(
        "head", "1", head, bare_python, "e", (head,)
    )


@dataclass
class Recorder:
    """A real prober that keeps what it was asked."""

    inner: Prober
    opened: list[tuple[Path, tuple[str, ...], int, int | None]] = field(default_factory=list)
    ran: list[tuple[Path, dict[str, int], tuple[str, ...], int, int | None]] = field(default_factory=list)

    @property
    def scratch(self) -> Path:
        return self.inner.scratch

    def run(
        self, built: BuiltSide, request: ProbeRequest, *, limits: Limits, hash_seed: int = 0, core: int | None = None
    ) -> ProbeReport:
        self.ran.append((built.tree, request.calls, tuple(request.arguments), hash_seed, core))
        return self.inner.run(built, request, limits=limits, hash_seed=hash_seed, core=core)

    @contextlib.contextmanager
    def open(
        self, built: BuiltSide, request: ProbeRequest, *, limits: Limits, hash_seed: int = 0, core: int | None = None
    ) -> Iterator[LiveProcess]:
        self.opened.append((built.tree, tuple(request.arguments), hash_seed, core))
        with self.inner.open(built, request, limits=limits, hash_seed=hash_seed, core=core) as partner:
            yield partner


@pytest.fixture
def prober(sandbox: Sandbox, tmp_path: Path) -> Recorder:
    return Recorder(Prober(sandbox, tmp_path / "scratch"))


@dataclass
class Sessions:
    """Runs sessions of the tiny repository; by node its rows."""

    sides: tuple[BuiltSide, BuiltSide]
    prober: Recorder
    machine: Machine

    def __call__(self, *codes: str | Workload, **options: Any) -> dict[str, list[Timing]]:
        settings = SETTINGS.model_copy(update=options.pop("settings", {}))
        workloads = [workload(one) if isinstance(one, str) else one for one in codes]
        asked: dict[str, Any] = {"session": 1, "core": None, "stop": no_stop, **options}
        timings = run_session("change", workloads, *self.sides, self.prober, settings, STAMP, self.machine, **asked)
        keys = [tuple(getattr(one, name) for name in Timing.KEY) for one in timings]
        assert len(set(keys)) == len(keys)
        assert not any(self.prober.scratch.iterdir()), "nothing is left, the second copy neither"
        return {one.node: [row for row in timings if row.workload_id == one.workload_id] for one in workloads}


@pytest.fixture
def session(sides: tuple[BuiltSide, BuiltSide], prober: Recorder, machine: Machine) -> Sessions:
    return Sessions(sides, prober, machine)


# Plans


def test_a_plan_follows_from_seed_change_and_session() -> None:
    settings = MeasureSettings()
    plan = plan_pairs(settings, "change", 1)
    assert plan == plan_pairs(settings, "change", 1)
    others = [
        plan_pairs(settings, "change", 2),
        plan_pairs(settings, "other", 1),
        plan_pairs(MeasureSettings(seed=1), "change", 1),
    ]
    assert all(plan != other for other in others)


@pytest.mark.parametrize(("pairs", "aa_every"), [(16, 2), (6, 3), (7, 1), (9, 100)])
def test_a_plan_is_whole_balanced_and_mixed(pairs: int, aa_every: int) -> None:
    plan = plan_pairs(MeasureSettings(max_pairs=pairs, aa_every=aa_every), "change", 1)
    assert [pair.number for pair in plan] == list(range(pairs))
    plain = [[role for role in pair.roles if role != "again"] for pair in plan]
    assert all(sorted(roles) == ["base", "head"] for roles in plain)
    firsts = [roles[0] for roles in plain]
    assert abs(Counter(firsts)["base"] - Counter(firsts)["head"]) <= 2
    assert all(firsts[at : at + 4].count("base") == 2 for at in range(0, pairs - 3, 4))
    twice = [pair.number for pair in plan if "again" in pair.roles]
    assert twice == list(range(0, pairs, aa_every)), "spread over the session, from its first pair on"
    assert all(before < after for before, after in pairwise(twice))
    assert len({pair.hash_seed for pair in plan}) == len({pair.order_seed for pair in plan}) == pairs
    assert all(0 < pair.hash_seed < 2**32 for pair in plan)


def test_the_base_against_itself_has_every_place() -> None:
    plans = [plan_pairs(MeasureSettings(aa_every=1), f"change {number}", 1) for number in range(20)]
    assert {pair.roles.index("again") for plan in plans for pair in plan} == {0, 1, 2}
    assert len({pair.roles for plan in plans for pair in plan}) == 6


def test_more_pairs_begin_as_fewer_do() -> None:
    """What was stopped early has measured what the whole session would have measured first."""
    few, many = [plan_pairs(MeasureSettings(max_pairs=pairs), "change", 1) for pairs in (8, 16)]
    assert [set(pair.roles) for pair in few] == [set(pair.roles) for pair in many[:8]]


# Sessions


def test_a_session_of_equal_sides_is_symmetrical(session: Sessions) -> None:
    """Base and head get the same processes: as many, with the same turns, cores and hash seeds, in balanced order."""
    done: list[tuple[int, int]] = []
    core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    rows = session(FAST, METHOD, core=core, progress=lambda *count: done.append(count))
    assert done == [(number, 6) for number in range(7)]
    plan = plan_pairs(SETTINGS, "change", 1)
    prober, (base, head) = session.prober, session.sides
    assert prober.ran == [], "nothing had to be measured by itself"
    assert [(seed, where) for _, _, seed, where in prober.opened] == [
        (pair.hash_seed, core) for pair in plan for _ in pair.roles
    ]
    assert all(set(nodes) == {FAST, METHOD} for _, nodes, _, _ in prober.opened)
    trees = [tree for tree, *_ in prober.opened]
    assert Counter(trees)[base.tree] == Counter(trees)[head.tree] == 6
    (copy,) = set(trees) - {base.tree, head.tree}
    assert trees.count(copy) == 2
    for mine in rows.values():
        assert len(mine) == 2 * 6 + 2 and {row.outcome for row in mine} == {"passed"}
        assert {(row.schedule, row.session, row.core, row.attempt) for row in mine} == {("turns", 1, core, 0)}
        assert len({len(row.samples) for row in mine}) == 1, "as many turns for all, in all pairs"
        assert 3 <= len(mine[0].samples) <= 5
        for row in mine:
            roles: tuple[Role, ...] = plan[row.block].roles
            assert roles[row.position] == ("again" if row.aa else row.side)
            assert (row.hash_seed, row.order_seed) == (plan[row.block].hash_seed, plan[row.block].order_seed)
            assert len(row.outside) == len(row.samples)
            assert all(0 <= inside <= outside for inside, outside in zip(row.samples, row.outside, strict=True))
            assert row.stopped and row.untimed == 1 and row.cold and row.machine == session.machine
            assert row.copied == row.aa and row.status == "kept" and row.foreign_load >= 0
        shape = [
            sorted((row.block, row.hash_seed) for row in mine if row.side == s and not row.aa) for s in ("base", "head")
        ]
        assert shape[0] == shape[1]


def test_a_tree_too_large_for_a_copy_is_compared_with_itself(session: Sessions) -> None:
    rows = session(FAST, settings=FEW | {"copy_bytes": 10})[FAST]
    assert [row.copied for row in rows if row.aa] == [False]


def test_a_hopeless_workload_is_really_stopped(session: Sessions) -> None:
    seen: list[int] = []

    def stop(timings: Sequence[Timing]) -> Collection[str]:
        seen.append(len({one.block for one in timings if not one.aa}))
        return [workload(METHOD).workload_id]

    rows = session(FAST, METHOD, stop=stop, settings=FEW | {"max_pairs": 3})
    assert seen == [2, 3]
    assert {node: len({row.block for row in mine}) for node, mine in rows.items()} == {FAST: 3, METHOD: 2}
    assert session.prober.opened[-1][1] == (FAST,)


def test_a_session_ends_when_nothing_is_left(session: Sessions) -> None:
    rows = session(FAST, stop=lambda timings: {one.workload_id for one in timings}, settings=FEW | {"max_pairs": 9})
    assert {one.block for one in rows[FAST]} == set(range(2))


PREPARED = [f"test_tiny.py::test_is_long_prepared[{number}]" for number in range(5)]


@pytest.mark.parametrize(("seconds", "left_out"), [(0.9, PREPARED[3:]), (60.0, [])])
def test_slow_workloads_of_many_are_left_out(session: Sessions, seconds: float, left_out: list[str]) -> None:
    """With them, each pair would take 0.06 s x 2 calls x 2 sides more. No call of theirs is untimed."""
    kept: list[Sequence[Timing]] = []
    short = FEW | {"fewest_turns": 3, "slow_turns": 2}
    rows = session(*PREPARED[:3], FAST, *PREPARED[3:], pair_seconds=seconds, settings=short, keep=kept.append)
    assert [node for node in PREPARED if not rows[node]] == left_out
    timed = [node for node, mine in rows.items() if mine]
    assert {len({row.block for row in rows[node]}) for node in timed} == {2} and FAST in timed
    slow = [row for node in timed if node != FAST for row in rows[node]]
    assert {(row.untimed, len(row.samples)) for row in slow} == {(0, 2)} and len(rows[FAST][0].samples) >= 3
    session.prober.opened.clear()
    again = session(*PREPARED[:3], FAST, *PREPARED[3:], so_far=kept[0], pair_seconds=seconds, settings=short)
    assert [node for node, mine in again.items() if mine] == timed, "who goes on leaves out the same"
    assert {tuple(sorted(nodes)) for _, nodes, _, _ in session.prober.opened} == {tuple(sorted(timed))}


SIDES, GONE, DIES = (f"test_tiny.py::test_{name}" for name in ("sides", "gone", "dies"))


def test_what_fails_by_itself_too_has_failed_and_takes_no_other_along(session: Sessions) -> None:
    rows = session(FAST, SIDES, GONE, DIES, settings={"aa_every": 9})
    fast = rows.pop(FAST)
    assert {(row.outcome, row.schedule) for row in fast} == {("passed", "turns")}
    assert {row.block for row in fast} == set(range(6)), "a crash takes no other workload along"
    for node, (outcome, ends) in {
        SIDES: ("failed", "head"), GONE: ("failed", None), DIES: ("crashed", "head"),
    }.items():  # fmt: skip
        *before, last = rows[node]
        assert (last.outcome, last.status, last.reason) == (outcome, "rejected", Reason.WORKLOAD_FAILED)
        assert last.schedule == "fresh" and last.samples == [] and ends in (None, last.side)
        assert len(before) <= 1 and {row.outcome for row in before} <= {"passed"}


def test_a_hanging_workload_is_a_timeout_and_the_others_go_on(session: Sessions) -> None:
    hangs = "test_tiny.py::test_hangs"
    rows = session(FAST, hangs, settings=FEW | {"call_seconds": 0.5})
    assert [(row.outcome, row.reason, row.schedule) for row in rows[hangs]] == [
        ("timeout", Reason.WORKLOAD_TIMEOUT, "fresh")
    ]
    assert len(rows[FAST]) == 5 and {row.outcome for row in rows[FAST]} == {"passed"}


NEEDS, LEAVES, ENDS = (
    f"test_tiny.py::test_{name}" for name in ("needs_a_fresh_process", "leaves_something", "ends_where_others_ran")
)


def first_places(session: int, node: str) -> list[bool]:
    """Whether the workload comes before the other one, by pair."""
    found = []
    for pair in plan_pairs(SETTINGS, "change", session):
        order = [node, LEAVES]
        random.Random(pair.order_seed).shuffle(order)
        found.append(order[0] == node)
    return found


@pytest.mark.parametrize(("node", "late"), [pytest.param(NEEDS, False, marks=pytest.mark.slow), (ENDS, True)])
def test_what_cannot_live_beside_others_is_measured_by_itself(session: Sessions, node: str, late: bool) -> None:
    """It passes where nothing ran before it in the process, and fails, or ends the process, where something did.

    When that is found late, it catches up: a session is judged by one schedule.
    """
    number, first = next(
        (number, places.index(False))
        for number in range(1, 99, 2)
        if False in (places := first_places(number, node)) and places[0] == late
    )
    rows = session(node, LEAVES, session=number)
    assert {(row.schedule, row.outcome) for row in rows[LEAVES]} == {("turns", "passed")}
    assert {row.block for row in rows[LEAVES]} == set(range(6))
    fresh = [row for row in rows[node] if row.schedule == "fresh"]
    assert {row.outcome for row in rows[node]} == {"passed"}
    assert Counter(row.block for row in fresh) == {block: 2 + (block % 3 == 0) for block in range(6)}, "all pairs"
    assert all(row.samples and not row.outside and not row.stopped and row.order_seed is None for row in fresh)
    assert all(row.copied == row.aa for row in fresh)
    turned = {row.block for row in rows[node] if row.schedule == "turns"}
    assert turned == set(range(first)) == {row.block for row in fresh if row.attempt == 1}, "what was done is kept"
    (run,) = runs_of(rows[node])
    (one,) = run.sessions
    assert one.alone and len(one.plain) == 6 and len(one.aa) == 2
    calls = [asked for _, asked, *_ in session.prober.ran]
    assert calls[0] == {} and all(asked == calls[1] != {} for asked in calls[1:]), "the first process calibrates"


def test_what_is_known_not_to_live_beside_others_is_not_tried(session: Sessions) -> None:
    rows = session(FAST, METHOD, alone={workload(METHOD).workload_id}, settings=FEW)
    assert {row.schedule for row in rows[METHOD]} == {"fresh"} and {row.schedule for row in rows[FAST]} == {"turns"}
    assert {nodes for _, nodes, *_ in session.prober.opened} == {(FAST,)}


def test_scripts_and_unit_tests_are_measured_in_the_same_processes(session: Sessions) -> None:
    code = "from tiny import work\ndef setup(): return 100\ndef experiment(data): return work(data)\n"
    texts = {"good": code, "bad": code.replace("return work(data)", "assert work.__doc__ == 'base'")}
    scripts = {
        name: workload(text).model_copy(
            update={"source": "generated", "workload_id": workload_id_of("change", "generated", text)}
        )
        for name, text in texts.items()
    }
    rows = session(scripts["good"], FAST, scripts["bad"], settings=FEW)
    for node in (scripts["good"].node, FAST):
        assert {(row.outcome, row.schedule) for row in rows[node]} == {("passed", "turns")} and len(rows[node]) == 5
    bad = [row for row in rows[scripts["bad"].node] if row.outcome != "passed"]
    assert [(row.outcome, row.side, row.schedule) for row in bad] == [("failed", "head", "fresh")]
    assert len(session.prober.opened) == 5


@pytest.mark.skipif(len(getattr(os, "sched_getaffinity", lambda _: [0])(0)) < 2, reason="this machine has one core")
def test_two_sessions_run_on_two_cores_at_once(session: Sessions, tmp_path: Path) -> None:
    """Each holds the lock of its core; neither gets in the way of the other's processes."""
    together, found, few = threading.Barrier(2), {}, SETTINGS.model_copy(update=FEW)

    def measured(number: int) -> None:
        with measurement_lock(60, folder=tmp_path) as core:
            together.wait(60)
            timings = run_session(
                "change", [workload(FAST)], *session.sides, session.prober, few, STAMP, session.machine,
                session=number, core=core, stop=no_stop,
            )  # fmt: skip
            found[core] = timings

    threads = [threading.Thread(target=measured, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    for core, timings in found.items():
        assert len(timings) == 5 and {(row.outcome, row.core, row.schedule) for row in timings} == {
            ("passed", core, "turns")
        }


# The second copy


def test_a_copy_has_another_path_of_the_same_length(sides: tuple[BuiltSide, BuiltSide], tmp_path: Path) -> None:
    base, _ = sides
    (base.tree / ".git").mkdir()
    (base.tree / "link").symlink_to("tiny.py")
    with second_copy(base, tmp_path, 10**6) as copy:
        assert copy.tree != base.tree and len(str(copy.tree)) == max(len(str(base.tree)), len(str(tmp_path)) + 20)
        assert copy.source_roots == (copy.tree,) and (copy.sha, copy.python) == (base.sha, base.python)
        names = {path.name for path in copy.tree.iterdir()}
        assert names == {"tiny.py", "test_tiny.py", "link"} and (copy.tree / "link").is_symlink()
    assert not copy.tree.exists() and base.tree.exists()
    with second_copy(base, tmp_path, 10) as same:
        assert same is base


def test_a_copy_in_use_is_not_evicted_as_a_leftover(
    sides: tuple[BuiltSide, BuiltSide], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each build beside a timing of more than a minute took the copy away: a process of it ended, and the session."""
    monkeypatch.setattr(eviction, "UNLOCKED_SECONDS", -1.0)
    home = Home(tmp_path / "home")
    with second_copy(sides[0], home.scratch, 10**6) as copy:
        eviction.make_room(home, None)
        assert (copy.tree / "tiny.py").exists()
    (home.scratch / "copy-of-a-killed-run").mkdir()
    assert [thing.path.name for thing in eviction.make_room(home, None).removed] == ["copy-of-a-killed-run"]


def test_settings_of_a_project_above_do_not_reach_the_copy(sides: tuple[BuiltSide, BuiltSide], tmp_path: Path) -> None:
    """A home in a folder of a project: each base against base ended as "the workload failed"."""
    settings = "[tool.pytest.ini_options]\nfilterwarnings = ['error', 'ignore::no_such.One']\n"
    (tmp_path / "pyproject.toml").write_text(settings)
    scratch = tmp_path / "scratch"
    with second_copy(sides[0], scratch, 10**6) as copy:
        collect = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--rootdir={copy.tree}", "--collect-only"]
        ended = subprocess.run(collect, cwd=copy.tree, capture_output=True, text=True, timeout=60, check=True)
    assert "test_needs_a_fresh_process" in ended.stdout
    assert list(scratch.iterdir()) == []


# What a report says of each workload


def item(node: str, outcome: str, samples: Sequence[float] = ()) -> ProbeItem:
    return ProbeItem.model_validate({"node": node, "outcome": outcome, "samples": samples, "calls": len(samples)})


@pytest.mark.parametrize(
    ("outcome", "items", "expected"),
    [
        ("finished", [item("a", "passed", [1.0]), item("b", "skipped")], {"a": "passed", "b": "failed", "c": "failed"}),
        ("finished", [item("a", "passed"), item("b", "timeout")], {"a": "failed", "b": "timeout", "c": "failed"}),
        ("crashed", [item("a", "failed"), item("b", "crashed")], {"a": "failed", "b": "crashed", "c": "crashed"}),
        (
            "timeout",
            [item("a", "passed", [1.0]), item("b", "timeout")],
            {"a": "passed", "b": "timeout", "c": "timeout"},
        ),
        ("timeout", [], {"a": "timeout", "b": "timeout", "c": "timeout"}),
        ("crashed", [item("a", "passed", [1.0])], {"a": "passed", "b": "crashed", "c": "crashed"}),
    ],
)
def test_outcomes(outcome: str, items: list[ProbeItem], expected: dict[str, str]) -> None:
    report = ProbeReport.model_validate({"outcome": outcome, "items": [one.model_dump() for one in items]})
    items_by_node = {one.node: one for one in report.items}
    assert {node: outcome_of(report, items_by_node.get(node)) for node in "abc"} == expected
