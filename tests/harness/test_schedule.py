"""The schedule: plans as data, then whole sessions of a tiny repository in real processes."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from data.records import Machine, Reason, Stamp, Timing, Workload, workload_id_of
from data.settings import MeasureSettings
from harness.contracts import BuiltSide, Limits, ProbeItem, ProbeReport, ProbeRequest, Sandbox
from harness.machine import machine_facts
from harness.prober import SandboxProber
from harness.schedule import calls_of, outcomes_of, plan_blocks, run_session

SETTINGS = MeasureSettings(
    blocks=4, aa_blocks=2, futility_blocks=2, warmups=1, min_timed_seconds=0.002, max_calls=3, max_foreign_load=1e9
)
STAMP = Stamp(repo="tiny", stage_version="1", config_hash="c")
FAST = "test_tiny.py::test_function"
METHOD = "test_tiny.py::Case::test_method"
TESTS = """
    import os, unittest
    from tiny import work
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

    inner: SandboxProber
    asked: list[tuple[str, dict[str, int], tuple[str, ...], int, int | None]] = field(default_factory=list)

    @property
    def sandbox_name(self) -> str:
        return self.inner.sandbox_name

    def run(
        self, built: BuiltSide, request: ProbeRequest, *, limits: Limits, hash_seed: int = 0, core: int | None = None
    ) -> ProbeReport:
        self.asked.append((built.side, request.calls, tuple(request.arguments), hash_seed, core))
        return self.inner.run(built, request, limits=limits, hash_seed=hash_seed, core=core)


@pytest.fixture
def prober(sandbox: Sandbox, tmp_path: Path) -> Recorder:
    return Recorder(SandboxProber(sandbox, tmp_path / "scratch"))


# Plans


def test_a_plan_follows_from_seed_change_and_session() -> None:
    settings = MeasureSettings()
    plan = plan_blocks(settings, "change", 1)
    assert plan == plan_blocks(settings, "change", 1)
    others = [
        plan_blocks(settings, "change", 2),
        plan_blocks(settings, "other", 1),
        plan_blocks(MeasureSettings(seed=1), "change", 1),
    ]
    assert all(plan != other for other in others)


@pytest.mark.parametrize(("blocks", "aa_blocks"), [(20, 6), (8, 4), (5, 0), (4, 1), (3, 10)])
def test_a_plan_is_whole_balanced_and_mixed(blocks: int, aa_blocks: int) -> None:
    plan = plan_blocks(MeasureSettings(blocks=blocks, aa_blocks=aa_blocks), "change", 1)
    assert [block.number for block in plan] == list(range(blocks))
    assert all(sorted(block.roles[:2]) == ["base", "head"] for block in plan)
    first = Counter(block.roles[0] for block in plan)
    assert abs(first["base"] - first["head"]) <= 2
    assert {block.roles[2:] for block in plan if len(block.roles) != 2} <= {("again",)}
    twice = [block for block in plan if "again" in block.roles]
    assert len(twice) == min(aa_blocks, first["base"]) and all(block.roles[0] == "base" for block in twice)
    assert len({block.hash_seed for block in plan}) == blocks
    assert all(0 < block.hash_seed < 2**32 for block in plan)


def test_blocks_against_itself_are_spread_over_the_session() -> None:
    places = [block.number for block in plan_blocks(MeasureSettings(), "change", 1) if "again" in block.roles]
    assert places[0] < 6 and places[-1] > 20 - 7
    assert max(after - before for before, after in pairwise(places)) <= 9


# Sessions


def test_a_session_of_equal_sides_is_symmetrical(
    sides: tuple[BuiltSide, BuiltSide], prober: Recorder, machine: Machine
) -> None:
    """Base and head get the same processes: as many, with the same calls, cores and hash seeds, in balanced order."""
    done: list[tuple[int, int]] = []
    workloads = [workload(FAST), workload(METHOD)]
    timings = run_session(
        "change", workloads, *sides, prober, SETTINGS, STAMP, machine,
        session=1, stop=no_stop, progress=lambda *count: done.append(count),
    )  # fmt: skip
    assert done == [(number, 4) for number in range(5)]
    assert len(timings) == 2 * (2 * 4 + 2) and {timing.outcome for timing in timings} == {"passed"}
    by_side = {side: [timing for timing in timings if timing.side == side] for side in ("base", "head")}
    shape = [
        [(one.workload_id, one.block, len(one.samples), one.core, one.hash_seed) for one in by_side[side] if not one.aa]
        for side in ("base", "head")
    ]
    assert sorted(shape[0]) == sorted(shape[1])
    assert all(one.cold and one.samples and sum(one.samples) < one.wall_seconds for one in timings)
    assert all(one.session == 1 and one.machine == machine and not one.disturbed for one in timings)
    keys = [tuple(getattr(one, name) for name in Timing.KEY) for one in timings]
    assert len(set(keys)) == len(keys)
    # one process calibrates; a block runs both sides, and in two of them the base again
    plan = plan_blocks(SETTINGS, "change", 1)
    expected = [("base", plan[0].hash_seed)]
    expected += [("head" if role == "head" else "base", block.hash_seed) for block in plan for role in block.roles]
    assert [(side, seed) for side, _, _, seed, _ in prober.asked] == expected
    assert prober.asked[0][1] == {} and all(calls == prober.asked[1][1] for _, calls, *_ in prober.asked[1:])
    assert {FAST, METHOD} == set(prober.asked[1][1])


def test_rows_say_which_process_ran_first(
    sides: tuple[BuiltSide, BuiltSide], prober: Recorder, machine: Machine
) -> None:
    timings = run_session(
        "change", [workload(FAST)], *sides, prober, SETTINGS, STAMP, machine, session=2, stop=no_stop,
        calls={workload(FAST).workload_id: 2},
    )  # fmt: skip
    assert {len(timing.samples) for timing in timings} == {2}
    assert calls_of(timings) == {workload(FAST).workload_id: 2}
    assert len(prober.asked) == 10  # nothing was left to calibrate
    orders = [block.roles for block in plan_blocks(SETTINGS, "change", 2)]
    assert all(orders[one.block][one.position] == ("again" if one.aa else one.side) for one in timings)


def test_a_hopeless_workload_is_really_stopped(
    sides: tuple[BuiltSide, BuiltSide], prober: Recorder, machine: Machine
) -> None:
    seen: list[int] = []

    def stop(timings: Sequence[Timing]) -> Collection[str]:
        seen.append(len({one.block for one in timings if not one.aa}))
        return [workload(METHOD).workload_id]

    workloads = [workload(FAST), workload(METHOD)]
    timings = run_session("change", workloads, *sides, prober, SETTINGS, STAMP, machine, session=1, stop=stop)
    assert seen == [2]
    plain = Counter(one.workload_id for one in timings if not one.aa)
    assert plain == {workload(FAST).workload_id: 8, workload(METHOD).workload_id: 4}
    assert prober.asked[-1][2] == (FAST,)


def test_a_session_ends_when_nothing_is_left(
    sides: tuple[BuiltSide, BuiltSide], prober: Recorder, machine: Machine
) -> None:
    timings = run_session(
        "change", [workload(FAST)], *sides, prober, SETTINGS, STAMP, machine, session=1,
        stop=lambda timings: {one.workload_id for one in timings},
    )  # fmt: skip
    assert {one.block for one in timings if not one.aa} == {0, 1}


def test_failing_workloads_are_recorded_and_dropped(
    sides: tuple[BuiltSide, BuiltSide], prober: Recorder, machine: Machine
) -> None:
    codes = [FAST, "test_tiny.py::test_sides", "test_tiny.py::test_gone", "test_tiny.py::test_dies"]
    timings = run_session(
        "change", [workload(code) for code in codes], *sides, prober, SETTINGS, STAMP, machine, session=1, stop=no_stop
    )
    rows = {code: [one for one in timings if one.workload_id == workload(code).workload_id] for code in codes}
    assert {one.outcome for one in rows[FAST]} == {"passed"} and len(rows[FAST]) >= 10
    gone = rows["test_tiny.py::test_gone"]
    assert [(one.outcome, one.samples, one.side, one.reason) for one in gone] == [
        ("failed", [], "base", Reason.WORKLOAD_FAILED)
    ]
    for code, outcome in (("test_tiny.py::test_sides", "failed"), ("test_tiny.py::test_dies", "crashed")):
        bad = [one for one in rows[code] if one.outcome != "passed"]
        assert [(one.outcome, one.side, one.status, one.samples) for one in bad] == [(outcome, "head", "rejected", [])]


def test_a_hanging_workload_is_a_timeout_and_the_others_go_on(
    sides: tuple[BuiltSide, BuiltSide], prober: Recorder, machine: Machine
) -> None:
    codes = [FAST, "test_tiny.py::test_hangs"]
    settings = SETTINGS.model_copy(update={"blocks": 1, "aa_blocks": 0, "max_process_seconds": 4.0})
    timings = run_session(
        "change", [workload(code) for code in codes], *sides, prober, settings, STAMP, machine, session=1, stop=no_stop
    )
    assert [(one.workload_id, one.outcome, one.reason) for one in timings if one.outcome != "passed"] == [
        (workload(codes[1]).workload_id, "timeout", Reason.WORKLOAD_TIMEOUT)
    ]
    assert [one.outcome for one in timings if one.workload_id == workload(FAST).workload_id] == ["passed", "passed"]


def test_a_disturbed_block_is_repeated_and_both_are_kept(
    sides: tuple[BuiltSide, BuiltSide], prober: Recorder, machine: Machine
) -> None:
    settings = SETTINGS.model_copy(update={"blocks": 2, "aa_blocks": 1, "max_foreign_load": -1.0, "max_attempts": 3})
    timings = run_session("change", [workload(FAST)], *sides, prober, settings, STAMP, machine, session=1, stop=no_stop)
    assert Counter((one.aa, one.attempt) for one in timings) == {
        (aa, number): 1 if aa else 4 for aa in (False, True) for number in range(3)
    }
    assert all(one.disturbed for one in timings) and len({one.hash_seed for one in timings}) == 2


def test_scripts_and_unit_tests_are_measured_in_the_same_processes(
    sides: tuple[BuiltSide, BuiltSide], prober: Recorder, machine: Machine
) -> None:
    code = "from tiny import work\ndef setup(): return 100\ndef experiment(data): return work(data)\n"
    texts = {"good": code, "bad": code.replace("return work(data)", "assert work.__doc__ == 'base'")}
    scripts = {
        name: workload(text).model_copy(
            update={"source": "generated", "workload_id": workload_id_of("change", "generated", text)}
        )
        for name, text in texts.items()
    }
    workloads = [scripts["good"], workload(FAST), scripts["bad"]]
    timings = run_session("change", workloads, *sides, prober, SETTINGS, STAMP, machine, session=1, stop=no_stop)
    rows = {one.workload_id: [row for row in timings if row.workload_id == one.workload_id] for one in workloads}
    for one in workloads[:2]:
        assert {row.outcome for row in rows[one.workload_id]} == {"passed"} and len(rows[one.workload_id]) == 10
    bad = [row for row in rows[scripts["bad"].workload_id] if row.outcome != "passed"]
    assert [(row.outcome, row.side) for row in bad] == [("failed", "head")]
    assert len(prober.asked) == 1 + 2 * 4 + 2
    assert set(prober.asked[-1][1]) == {FAST, scripts["good"].node}


# What a report says of each workload


def item(node: str, outcome: str, samples: Sequence[float] = ()) -> ProbeItem:
    return ProbeItem.model_validate({"node": node, "outcome": outcome, "samples": samples, "calls": len(samples)})


@pytest.mark.parametrize(
    ("outcome", "items", "expected"),
    [
        ("finished", [item("a", "passed", [1.0]), item("b", "skipped")], {"a": "passed", "b": "failed", "c": "failed"}),
        ("finished", [item("a", "passed"), item("b", "timeout")], {"a": "failed", "b": "timeout", "c": "failed"}),
        ("crashed", [item("a", "failed"), item("b", "crashed")], {"a": "failed", "b": "crashed"}),
        ("timeout", [item("a", "passed", [1.0]), item("b", "timeout")], {"a": "passed", "b": "timeout"}),
        ("timeout", [], {"a": "timeout", "b": "timeout", "c": "timeout"}),
        ("crashed", [item("a", "passed", [1.0])], {"a": "passed", "b": "crashed", "c": "crashed"}),
    ],
)
def test_outcomes(outcome: str, items: list[ProbeItem], expected: dict[str, str]) -> None:
    report = ProbeReport.model_validate({"outcome": outcome, "items": [one.model_dump() for one in items]})
    assert outcomes_of(report, "abc") == expected
