"""The rules by which pairs of processes become a reward, on pairs that were never run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

Seconds = tuple[float, float, float]
"""Of a call: inside, outside, outside with all that is around it."""
THRESHOLD = 0.95


class Session:
    """Pairs that are drawn: of each side the seconds of a turn by node, with noise of a part of them."""

    def __init__(
        self,
        part: Callable[[str], Any],
        sides: Mapping[str, Mapping[str, Seconds]],
        noise: float = 0.01,
        seed: int = 5,
    ) -> None:
        self._pairs, self._paired = part("pairs"), part("figures").paired
        self._rng, self._noise, self._sides = np.random.default_rng(seed), noise, sides
        self.nodes = list(sides["base"])
        self.pairs: list[Any] = []
        self.first: dict[str, float] = {}
        """Of a side whose first calls are not as its later ones, their seconds."""
        self.cpu: dict[str, float] = {}
        """Of a side whose processor time is not its wall time, what it is in a turn."""
        self.turn: dict[str, float] = {}
        """Of a side that works between requests, what its turn lasts."""
        self.fixed: list[str] = []
        """Workloads whose data are always the same."""
        self.slopes: dict[str, tuple[float, float]] = {}
        """Of sides, what a further call adds to a turn of the unit test 'a': inside, outside; none: it is a script."""
        self.apart = 0.0
        """Seconds by which the outer one of these moves from process to process, its tails those of a busy machine."""
        self.first_apart = 0.0
        """Seconds by which the clock outside moves in a first call."""
        self.lies_of_first = ""
        """A side whose first calls last as long as the base's, whatever it says."""
        self.again = lambda: None
        self.alter: Callable[[Any], None] = lambda pair: None
        """What is done to each new pair."""

    @property
    def in_process(self) -> list[str]:
        return ["a"] if self.slopes else []

    def over_pairs(self, value: Callable[[Any], float]) -> Any:
        return self._paired([value(pair) for pair in self.pairs])

    def add(self, count: int = 1) -> None:
        for _ in range(count):
            pair = self._pairs.Pair(list(self._sides), 1)
            for role, nodes in self._sides.items():
                for node, seconds in nodes.items():
                    calls = [tuple(one * self._drawn() for one in seconds) for _ in range(12)]
                    cpu = [self.cpu.get(role, seconds[2]) * self._drawn() for _ in range(12)]
                    first = self.first.get(role, seconds[0])
                    cold = (
                        first,
                        max(first, seconds[2]) if role != self.lies_of_first else self._sides["base"][node][2],
                    )
                    cold = (cold[0], cold[1] + self.first_apart * float(self._rng.standard_t(3)))
                    whole = [self.turn[role] * self._drawn() if role in self.turn else one for _, _, one in calls]
                    turns = pair.turns[role][node] = self._pairs.SideTurns(calls, cpu, whole, cold, 0)
                    turns.slope = [one * self._drawn() for one in self.slopes.get(role, ())]
                    if turns.slope:
                        turns.slope[1] += self.apart * float(self._rng.standard_t(3))
            self.pairs.append(pair)
            self.alter(pair)

    def _drawn(self) -> float:
        return float(self._rng.lognormal(0, self._noise))


def around(seconds: float, outside: float | None = None, after: float = 0.0) -> Seconds:
    """A call that takes a millisecond more outside; `after`: what is done around it."""
    run = (seconds if outside is None else outside) + 0.001
    return seconds, run, run + 0.001 + after


def graded(
    part: Callable[[str], Any], session: Session, hidden: frozenset[str] = frozenset(), most: int = 12
) -> tuple[str | None, Any, int]:
    """Why there is no reward, what the report says, and the pairs that it took."""
    facts: dict[str, Any] = {}
    verdict = part("verdict").RewardRules(session, hidden, THRESHOLD, facts)
    session.add(6)
    while len(session.pairs) < most and not verdict.is_clear():
        session.add()
    short = verdict.shortfall()
    return short[1] if short else None, facts, len(session.pairs)


BASE, GOLD = around(0.010), around(0.004)


@pytest.mark.parametrize(
    ("cand", "said"),
    [
        (GOLD, None),
        (around(0.0035), None),
        (around(0.0045), "of the expert's speedup"),
        (BASE, "not faster than the base"),
        (around(0.0001, outside=0.010), "the clock inside says more than is seen from outside: run"),
        (around(0.004, after=0.006), "the clock inside says more than is seen from outside: whole"),
        (around(0.0001, outside=0.0049), "from outside it is slower than the clock inside says: run"),
        (around(0.004, after=0.002), "from outside it is slower than the clock inside says: whole"),
    ],
    ids=[
        "as the expert",
        "faster",
        "slower",
        "as the base",
        "lies",
        "works later",
        "half a lie",
        "works later in part",
    ],
)
def test_what_the_turns_say(part: Any, cand: Seconds, said: str | None) -> None:
    why, facts, pairs = graded(part, Session(part, {"base": {"a": BASE}, "gold": {"a": GOLD}, "cand": {"a": cand}}))
    assert (why is None) if said is None else said in (why or ""), why
    assert pairs == (12 if said and said.startswith("the clock inside") else 6) and not facts["undecided_at_95"]


@pytest.mark.parametrize("hidden", [frozenset(), frozenset(["a"])], ids=["all", "hidden"])
@pytest.mark.parametrize(("cand", "scores"), [(0.00985, False), (0.00960, True)], ids=["a third", "two thirds"])
def test_of_a_small_gain_half_is_asked_for(part: Any, cand: float, scores: bool, hidden: frozenset[str]) -> None:
    """95 % of an expert's 1.06x is no gain at all: whatever is a little faster would have the reward."""
    sides = {"base": {"a": BASE}, "gold": {"a": around(0.00943)}, "cand": {"a": around(cand)}}
    why, facts, _ = graded(part, Session(part, sides, noise=0.004), hidden, most=24)
    assert (why is None) is scores, why
    assert scores or "less than half of the expert's gain: 1.01" in (why or "")
    assert facts["candidate"]["low"] > 1 and facts["of_expert"]["low"] > THRESHOLD, "by these alone both have it"


@pytest.mark.parametrize("seed", range(12))
def test_a_clock_too_coarse_for_the_experts_gain_accuses_nobody(part: Any, seed: int) -> None:
    """Calls of microseconds, seen through a pipe that takes a thousand of them, give or take ten."""
    gold = around(18.5e-6)
    session = Session(part, {"base": {"a": around(20e-6)}, "gold": {"a": gold}, "cand": {"a": gold}}, seed=seed)
    why, _, pairs = graded(part, session, most=24)
    assert why is None
    assert pairs < 24, "more pairs do not help a clock that does not see the expert's gain"


def test_where_the_walls_are_too_coarse_turns_of_more_calls_speak(part: Any) -> None:
    sides = {"base": {"a": around(20e-6)}, "gold": {"a": around(18.5e-6)}, "cand": {"a": around(5e-6)}}
    session = Session(part, sides)
    session.slopes = {"base": (20e-6, 20e-6), "gold": (18.5e-6, 18.5e-6), "cand": (5e-6, 20e-6)}
    assert "turns of more calls" in (graded(part, session)[0] or "")


def test_hidden_workloads_have_to_pass_alone(part: Any) -> None:
    cand = {"a": around(0.001), "b": around(0.006)}
    session = Session(part, {"base": dict.fromkeys("ab", BASE), "gold": dict.fromkeys("ab", GOLD), "cand": cand})
    assert (graded(part, session, frozenset("b"))[0] or "").startswith("hidden workloads: ")


def test_first_calls_count(part: Any) -> None:
    session = Session(part, {"base": {"a": BASE}, "gold": {"a": GOLD}, "cand": {"a": around(0.0001)}})
    session.first["cand"] = 0.010
    assert "only later calls" in (graded(part, session)[0] or "")


def test_first_calls_that_are_slow_by_chance_accuse_nobody(part: Any) -> None:
    """Of a process's only first call noise is large: six pairs say too little of it."""

    def disturbed(pair: Any) -> None:
        if len(session.pairs) <= 5:
            pair.turns["cand"]["a"].first = 0.0095

    session = Session(part, {"base": {"a": BASE}, "gold": {"a": GOLD}, "cand": {"a": GOLD}})
    session.alter = disturbed
    said, facts, pairs = graded(part, session)
    assert said is None and 6 < pairs <= 12 and facts["candidate_first"]["ratio"] > math.sqrt(2.5)


@pytest.mark.parametrize("seed", [125, 154, 162])  # of 200, those that six pairs alone refused
def test_first_calls_that_move_outside_accuse_nobody(part: Any, seed: int) -> None:
    """Gains of a tenth of a millisecond, first calls that a busy machine moves by half of one."""
    sides = {"base": {"a": around(0.0012)}, "gold": {"a": around(0.0011)}, "cand": {"a": around(0.0011)}}
    session = Session(part, sides, noise=0.001, seed=seed)
    session.first_apart = 0.0005
    assert graded(part, session)[0] is None


@pytest.mark.parametrize("apart", [0.0, 0.0005])
def test_first_calls_that_are_said_to_be_faster_than_they_are(part: Any, apart: float) -> None:
    session = Session(part, {"base": {"a": BASE}, "gold": {"a": GOLD}, "cand": {"a": GOLD}})
    session.lies_of_first, session.first_apart = "cand", apart
    assert "more of first calls" in (graded(part, session)[0] or "")


@pytest.mark.parametrize(("first", "fails"), [(0.0055, True), (0.0041, False)], ids=["two thirds", "as the expert"])
def test_first_calls_of_known_data_must_be_as_fast_as_the_experts(part: Any, first: float, fails: bool) -> None:
    session = Session(part, {"base": {"a": BASE}, "gold": {"a": GOLD}, "cand": {"a": GOLD}})
    session.fixed, session.first["cand"] = ["a"], first
    said = graded(part, session)[0]
    assert (said is not None and "only later calls" in said) == fails, said
    session.fixed = []
    assert graded(part, session)[0] is None, "what is not known before cannot be prepared: a table may be built once"


@pytest.mark.parametrize(
    ("cand", "said"),
    [
        ((0.0040, 0.0045), None),
        ((0.0040, 0.0075), "saved"),
        ((0.0040, 0.0052), "of the expert's"),
    ],
    ids=["as the expert", "lies", "a little"],
)
def test_more_calls_of_a_test_must_last_as_the_clock_inside_says(
    part: Any, cand: tuple[float, float], said: str | None
) -> None:
    session = Session(part, {"base": {"a": BASE}, "gold": {"a": GOLD}, "cand": {"a": GOLD}})
    session.slopes = {"base": (0.010, 0.0105), "gold": (0.004, 0.0045), "cand": cand}
    why = graded(part, session)[0]
    assert (why is None) if said is None else f"turns of more calls at a: {said}" in (why or ""), why


def test_clocks_that_differ_for_the_expert_accuse_nobody(part: Any) -> None:
    """Seen beside a test suite: the expert's own patch, 10 µs a call short by the slope of turns."""
    sides = {"base": {"a": BASE}, "gold": {"a": GOLD}, "cand": {"a": GOLD}}
    accused = {"honest": 0, "lies": 0}
    for name, outside, apart in (("honest", 45e-6, 30e-6), ("lies", 105e-6, 10e-6)):
        for seed in range(300):
            session = Session(part, sides, seed=seed)
            session.slopes = {"base": (100e-6, 105e-6), "gold": (40e-6, 45e-6), "cand": (40e-6, outside)}
            session.apart = apart
            session.add(12)
            accused[name] += bool(part("outside").disagrees(session, THRESHOLD))
    assert accused["honest"] <= 1 and accused["lies"] >= 290, accused


def test_no_call_of_a_script_counts_less_than_the_clock_outside_allows(part: Any) -> None:
    turns = part("pairs").SideTurns
    no = [0.0] * 12  # of the clocks that are not looked at
    base = turns([(0.010, 0.0101 + 0.00001 * n, 0.0121 + 0.00001 * n) for n in range(12)], no, no, (0.01, 0.011), 0)
    honest = turns([(0.004, 0.0041, 0.0061)] * 12, no, no, (0.004, 0.005), 0)
    lies = turns([(0.001, 0.0041, 0.0061)] * 12, no, no, (0.001, 0.005), 0)
    for one in (honest, lies):
        one.bounded(base)
    assert honest.seconds == [0.004] * 12 and honest.first == pytest.approx(0.004)
    assert lies.seconds == pytest.approx([0.0039] * 12, rel=0.02) and lies.first == pytest.approx(0.004, rel=0.02)


def _of_processes(part: Any, after: Sequence[float]) -> list[Any]:
    """Pairs whose processes differ by microseconds in what a request takes; the candidate's by `after` besides."""
    pairs, rng = part("pairs"), np.random.default_rng(3)
    found = []
    for more in after:
        pair = pairs.Pair(["base", "gold", "cand", "again"], 1)
        for role in pair.order:
            own = 0.0003 + rng.normal(0, 5e-6)
            runs = [5e-6 + own + abs(rng.normal(0, 40e-6)) for _ in range(24)]
            calls = [(5e-6, run, run + 0.0001 + (more if role == "cand" else 0.0)) for run in runs]
            pair.turns[role]["a"] = pairs.SideTurns(
                calls, [0.0] * 24, [whole for _, _, whole in calls], (5e-6, 0.0004), 0
            )
        for role in pair.order:
            pair.turns[role]["a"].bounded(pair.turns["base"]["a"])
        found.append(pair)
    pairs.count_beside(found, ["a"])
    return found


def test_what_is_done_beside_the_call_in_each_pair_counts(part: Any) -> None:
    for pair in _of_processes(part, [0.001] * 8):
        assert pair.turns["cand"]["a"].seconds[0] == pytest.approx(0.001, rel=0.05)
        assert abs(pair.log("base", "gold", "a")) < 0.3 and pair.log("base", "cand", "a") < -5


def test_what_single_processes_differ_by_is_nobodys_work(part: Any) -> None:
    for pair in _of_processes(part, [0.0] * 8):
        assert all(abs(pair.log("base", role, "a")) < 0.3 for role in pair.order)


def test_processor_time_must_fall_unless_the_base_waits(part: Any) -> None:
    session = Session(part, {"base": {"a": BASE}, "gold": {"a": GOLD}, "cand": {"a": GOLD}})
    session.cpu["cand"] = 0.012
    assert "from outside: cpu" in (graded(part, session)[0] or "")
    session = Session(part, {"base": {"a": BASE}, "gold": {"a": GOLD}, "cand": {"a": GOLD}})
    session.cpu = dict.fromkeys(("base", "gold", "cand"), 0.0005)
    assert graded(part, session)[0] is None, "waiting less"


@pytest.mark.parametrize("part_hidden", [1.0, 0.25], ids=["all", "a quarter"])
def test_what_is_done_between_two_requests_is_seen_in_the_whole_turn(part: Any, part_hidden: float) -> None:
    session = Session(part, {"base": {"a": BASE}, "gold": {"a": GOLD}, "cand": {"a": GOLD}})
    session.turn["cand"] = GOLD[2] + part_hidden * (BASE[0] - GOLD[0])
    assert "turn" in (graded(part, session)[0] or "")


@pytest.mark.parametrize(("times", "scores"), [(8.0, False), (1.2, True)])
def test_inputs_for_which_it_is_slow_count_on_average(part: Any, times: float, scores: bool) -> None:
    """An eighth of the turns: the middle of the turns of a pair says nothing of them."""
    session = Session(part, {"base": {"a": BASE}, "gold": {"a": GOLD}, "cand": {"a": GOLD}})

    def slow(pair: Any) -> None:
        turns, first = pair.turns["cand"]["a"], len(session.pairs)
        turns.each = [one * times if (at + first) % 8 == 0 else one for at, one in enumerate(turns.run)]

    session.alter = slow
    why, facts, _ = graded(part, session)
    assert facts["of_expert"]["ratio"] > 0.95
    assert why is None if scores else "on average: some calls are far slower" in (why or "")


@pytest.mark.parametrize("seconds", [5e-6, 1e-3])
def test_requests_that_last_unevenly_are_no_calls_that_are_slow(part: Any, seconds: float) -> None:
    """Those of a test of microseconds: seen as calls of thirteen and of eight times the middle one, on average."""
    pairs, rng, nothing = part("pairs"), np.random.default_rng(3), [0.0] * 24
    sides = {}
    for role, times in (("base", 1.0), ("cand", 8.0)):  # every eighth call of the candidate
        inside = [seconds * (times if at % 8 == 0 else 1.0) for at in range(24)]
        hidden = [seconds for _ in inside] if role == "cand" else inside
        runs = [one + 0.0003 + float(abs(rng.normal(0, 40e-6))) for one in inside]
        calls = [(one, run, run) for one, run in zip(hidden, runs, strict=True)]
        sides[role] = pairs.SideTurns(calls, nothing, nothing, (seconds, 0.0004), 0)
    for one in sides.values():
        one.bounded(sides["base"])
    slow = [each > 4 * seconds for each in sides["cand"].each]
    assert slow == [seconds > 1e-4 and at % 8 == 0 for at in range(24)]


@pytest.mark.parametrize("uneven", ["cand", "gold"])
def test_processes_whose_calls_are_uneven_are_no_inputs_for_which_it_is_slow(part: Any, uneven: str) -> None:
    """Three processes of twelve, every third call of these; other processes of the same code are even."""
    session = Session(part, {"base": {"a": BASE}, "gold": {"a": GOLD}, "cand": {"a": GOLD}})

    def slow(pair: Any) -> None:
        turns = pair.turns[uneven]["a"]
        times = 10.0 if len(session.pairs) in (2, 5, 8) else 1.0
        turns.each = [one * times if at % 3 == 0 else one for at, one in enumerate(turns.run)]

    session.alter = slow
    assert graded(part, session)[0] is None


@pytest.mark.parametrize(("others", "scores"), [(0.8, False), (0.15, True)])
def test_others_have_the_core_in_turns_of_all_sides_alike(part: Any, others: float, scores: bool) -> None:
    """Work of a process that is gone before its clock is read would be that of others."""
    session = Session(part, {"base": {"a": BASE}, "gold": {"a": GOLD}, "cand": {"a": GOLD}})

    def busy(pair: Any) -> None:
        for role, more in (("base", 0.1), ("gold", 0.05), ("cand", others)):
            pair.turns[role]["a"].others = more

    session.alter = busy
    why = graded(part, session)[0]
    assert why is None if scores else "others are said to have the core" in (why or "")


def test_one_workload_among_many_may_not_lie(part: Any) -> None:
    cand = {"a": around(0.04), "b": around(0.0001, outside=0.010)}
    sides = {"base": {"a": around(0.1), "b": BASE}, "gold": {"a": around(0.04), "b": GOLD}, "cand": cand}
    why, _, pairs = graded(part, Session(part, sides))
    assert "from outside at b" in (why or "")
    assert pairs == part("verdict").ACCUSING, "of many workloads one differs by chance with fewer"


def test_what_the_clocks_say_of_the_expert_too_is_no_lie(part: Any) -> None:
    """Seen beside a busy loop: outside, the expert's own patch saves less than half of what it says at one workload."""
    slow = around(0.004, outside=0.009)
    sides = {"base": {"a": around(0.1), "b": BASE}, "gold": {"a": around(0.04), "b": slow}}
    for cand, said in ((slow, None), (around(0.0001, outside=0.0195), "from outside at b")):
        why = graded(part, Session(part, {**sides, "cand": {"a": around(0.04), "b": cand}}))[0]
        assert (why is None) if said is None else said in (why or ""), why


def test_there_is_always_a_verdict(part: Any) -> None:
    edge = around(0.004 / 0.95)
    session = Session(part, {"base": {"a": BASE}, "gold": {"a": GOLD}, "cand": {"a": edge}}, noise=0.3)
    why, facts, pairs = graded(part, session)
    assert pairs == 12 and facts["undecided_at_95"]
    assert (why is None) == (facts["of_expert"]["ratio"] >= THRESHOLD)


def test_noise_that_hides_the_gain_is_named_so(part: Any) -> None:
    """Seen at load 15: 1.38x [0.926, 1.42] of a patch that is as fast as the expert's."""
    session = Session(part, {"base": {"a": BASE}, "gold": {"a": GOLD}, "cand": {"a": around(0.004)}}, noise=2.5)
    why, facts, pairs = graded(part, session)
    assert facts["candidate"]["low"] < 1 and facts["of_expert"]["high"] > THRESHOLD, facts
    assert pairs == 12 and facts["undecided_at_95"] and "not faster than the base at 95 %" in (why or "")


def test_an_expert_who_is_not_faster_here_is_our_trouble(part: Any) -> None:
    session = Session(part, {"base": {"a": GOLD}, "gold": {"a": BASE}, "cand": {"a": around(0.001)}})
    with pytest.raises(part("users").Trouble, match="not faster here"):
        graded(part, session)


def test_the_expert_is_compared_turn_by_turn(part: Any) -> None:
    session = Session(
        part, {"base": dict.fromkeys("ab", BASE), "gold": dict.fromkeys("ab", GOLD), "cand": {}}, noise=0.0
    )
    session._sides = {**session._sides, "cand": {"a": around(0.002), "b": around(0.008)}}
    session.add(1)
    (pair,) = session.pairs
    assert math.exp(pair.gain("gold", "ab")) == pytest.approx(2.5)
    assert math.exp(pair.gain("cand", "ab")) == pytest.approx(2 / (0.2 + 0.8))
    assert math.exp(pair.of_expert("ab")) == pytest.approx(2 / 2.5)
