"""Which changes are most promising: what the judge thinks of them, and what the tables say of those before them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from perfquarry.curation.again import WITHOUT_GAIN
from perfquarry.curation.in_force import newest_tasks
from perfquarry.data.own_rows import OwnRows
from perfquarry.data.records import Build, Change, Reason, Verdict

NEIGHBOURS = 10
"""Changes next in time from which a change's chance and cost are learned."""
PRIOR = 2.0
"""Changes that the rate of the whole repository counts for, and tasks that the judge's own expectation counts for."""
GAINLESS = 0.1
"""Of changes whose unit tests alone show no gain, the share in which other workloads do: one of nine was seen."""
SECONDS = 90.0
"""What searching and measuring a change takes beside its build: the middle of what was seen (docs/benchmarks.md)."""


def promising(run: OwnRows, changes: Collection[str]) -> list[str]:
    """The changes by expected tasks per second, the most first: the judge's probability x yield x chance ÷ seconds.

    The chance to be built and have workloads, and the seconds of the build, are those of the changes next in time of
    which the tables know; a change that is built already costs no build. Code of Python 2 makes all that is older less
    promising, however few of its neighbours were tried. The yield is what decided changes with the same leading
    signal brought, over what the judge expected (`Yields`). Equal ones in the order of their ids.

    Args:
        run: the run.
        changes: ids of changes that the judge kept.
    """
    if not changes:
        return []
    table = run.store.scan(Change, run.name, columns=["change_id", "merged_at"], **run.where("mine"))
    merged = {row["change_id"]: row["merged_at"].timestamp() for row in table.to_pylist()}
    decided = newest_tasks(run.store, run.name)
    accepted = {task.change_id: task.status == "kept" for task in decided}
    gainless = {task.change_id for task in decided if task.reason in WITHOUT_GAIN}
    wanted = pc.field("change_id").isin([*changes, *accepted])
    columns = ["change_id", "probability", "signals"]
    verdicts = run.store.scan(Verdict, run.name, columns=columns, where=wanted, **run.where("judge")).to_pylist()
    probable = {row["change_id"]: row["probability"] or 0.0 for row in verdicts}
    led_by = {
        row["change_id"]: next((one["name"] for one in row["signals"] if one["weight"] > 0), "") for row in verdicts
    }
    yields = Yields((led_by[one], probable[one], came) for one, came in accepted.items() if one in led_by)
    built: Counter[str] = Counter()
    for row in run.store.scan(Build, run.name, columns=["change_id", "seconds"], **run.where("build")).to_pylist():
        built[row["change_id"]] += row["seconds"]
    of_python_2 = pc.field("reason") == str(Reason.NEEDS_PYTHON_2)
    python_2 = {one for stage in ("build", "generate") for one in run.column(stage, where=of_python_2)}
    rejected, usable = set(built) - run.kept("build"), run.kept("generate")
    ended = [one for one in (*rejected, *run.column("generate")) if one in merged]
    chance = Neighbours([merged[one] for one in ended], [float(one in usable) for one in ended], empty=0.5)
    cost = Neighbours([merged[one] for one in built if one in merged], [built[one] for one in built if one in merged])
    python_3 = Python3(
        old=[merged[one] for one in python_2 if one in merged],
        built=[merged[one] for one in set(built) - rejected - python_2 if one in merged],
    )

    def worth(change: str) -> float:
        at = merged.get(change, 0.0)
        seconds = SECONDS + (0.0 if change in built else cost.near(at))
        usual = 1.0 if change in usable else chance.near(at) * python_3.chance(at)
        usual *= GAINLESS if change in gainless else 1.0
        return probable.get(change, 0.0) * yields.factor(led_by.get(change, "")) * usual / seconds

    return sorted(changes, key=lambda change: (-worth(change), change))


class Neighbours:
    """What is known at some times, asked at others: the mean over the nearest, drawn towards the mean of all.

    Args:
        at: times, in any unit and order.
        values: what is known at each.
        empty: the mean of all before anything is known.
    """

    def __init__(self, at: Sequence[float], values: Sequence[float], empty: float = 0.0) -> None:
        order = np.argsort(at, kind="stable")
        self._at: npt.NDArray[np.float64] = np.asarray(at, dtype=float)[order]
        self._values: npt.NDArray[np.float64] = np.asarray(values, dtype=float)[order]
        self._all = float((self._values.sum() + PRIOR * empty) / (len(values) + PRIOR)) if len(values) else empty

    def near(self, at: float) -> float:
        """The value expected at a time."""
        place = int(np.searchsorted(self._at, at))
        window = slice(max(0, place - NEIGHBOURS), place + NEIGHBOURS)
        nearest = np.argsort(np.abs(self._at[window] - at), kind="stable")[:NEIGHBOURS]
        found = self._values[window][nearest]
        return float((found.sum() + PRIOR * self._all) / (len(found) + PRIOR))


class Python3:
    """How probable it is that the code of a time runs on Python 3, which once begun does not end.

    What was built before a time speaks for it, what was rejected as Python 2's after it against it.

    Args:
        old: times of changes whose code is Python 2's, in any unit and order.
        built: times of changes that were built.
    """

    def __init__(self, old: Sequence[float], built: Sequence[float]) -> None:
        self._old, self._built = sorted(old), sorted(built)

    def chance(self, at: float) -> float:
        """The share of the evidence that speaks for Python 3; 1 where nothing speaks against it."""
        against = len(self._old) - bisect_left(self._old, at)
        for_it = 1 + bisect_right(self._built, at)
        return for_it / (for_it + against)


class Yields:
    """How many tasks came of decided changes over how many the judge expected, by the leading signal of its verdicts.

    Observed over expected, drawn towards that of the whole repository, which is drawn towards 1: what has not been
    tried is ranked by the judge alone.

    Args:
        decided: (leading signal, the judge's probability, whether a task came of it) of each change.
    """

    def __init__(self, decided: Iterable[tuple[str, float, bool]]) -> None:
        self._by: dict[str, tuple[float, float]] = {}
        for signal, probability, came in decided:
            tasks, expected = self._by.get(signal, (0.0, 0.0))
            self._by[signal] = tasks + came, expected + probability
        tasks, expected = (sum(pair[at] for pair in self._by.values()) for at in (0, 1))
        self._all = (tasks + PRIOR) / (expected + PRIOR)

    def factor(self, signal: str) -> float:
        """By how much the probability of a change with this leading signal is to be multiplied."""
        tasks, expected = self._by.get(signal, (0.0, 0.0))
        return (tasks + PRIOR * self._all) / (expected + PRIOR)
