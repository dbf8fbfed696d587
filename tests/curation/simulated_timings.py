"""Rows of the timings table as a machine with known noise would have written them."""

import math
from collections.abc import Sequence

import numpy as np

from perfquarry.curation.blocks import Block, Session
from perfquarry.data.records import Machine, Stamp, Timing

STAMP = Stamp(repo="sample", stage_version="1", config_hash="c0ffee")
MACHINE = Machine(
    machine_id="m1", system="Linux", kernel="6", cpu="x", cores=2, memory_bytes=1, clock_resolution=1e-9, sandbox="none"
)


def timing(workload: str, session: int, block: int, side: str, seconds: float, **fields) -> Timing:
    """One row; three samples around `seconds` whose median it is."""
    row = {
        "workload_id": workload,
        "change_id": "change",
        "session": session,
        "block": block,
        "position": int(side == "head"),
        "side": side,
        "samples": [seconds * 1.1, seconds, seconds * 0.9],
        "cold": seconds * 3,
        "outcome": "passed",
        "hash_seed": 1,
        "machine": MACHINE,
    }
    return Timing(**STAMP.fields(), **(row | fields))


def turned(rows: list[Timing], turns: int = 24, noise: float = 0.02) -> list[Timing]:
    """The same rows as of processes that took turns: as many samples a process, noise that sides of a turn share."""
    found = []
    for row in rows:
        shared = np.random.default_rng(row.hash_seed).normal(0, 0.3, turns)
        own = np.random.default_rng([row.hash_seed, row.position]).normal(0, noise, turns)
        middle = row.samples[1]
        samples = [float(middle * np.exp(value)) for value in shared + own - np.median(own)]
        found.append(row.model_copy(update={"schedule": "turns", "samples": samples}))
    return found


def rows_of_pairs(
    workload: str, session: int, logs: Sequence[float], aa: Sequence[float] = (), **fields
) -> list[Timing]:
    """Rows whose pairs have these log ratios of base to head, and of base to base."""
    rows = []
    for again, values in ((False, logs), (True, aa)):
        for block, log in enumerate(values):
            if not again:
                rows.append(timing(workload, session, block, "base", 1.0, hash_seed=block, **fields))
            kind = {"aa": again, "position": 1 + again, "hash_seed": block} | fields
            rows.append(timing(workload, session, block, "head", math.exp(-log), **kind))
    return rows


def session_of(logs: Sequence[float], aa: Sequence[float] = (), number: int = 1) -> Session:
    """A session whose pairs have these log ratios of base to head, and of base to base."""
    plain, again = [tuple(Block(math.exp(log), 1.0, log) for log in values) for values in (logs, aa)]
    return Session(number, plain, again)


def session_rows(
    workload: str,
    session: int,
    *,
    speedup: float = 1.0,
    cold_speedup: float | None = None,
    noise: float = 0.01,
    blocks: int = 20,
    aa_blocks: int = 6,
    aa_bias: float = 1.0,
    seed: int = 0,
    **fields,
) -> list[Timing]:
    """All rows of one session; the head takes 1/speedup of the base's second."""
    rng = np.random.default_rng([seed, session, sum(map(ord, workload))])
    rows = []
    for aa, count, ratio in ((False, blocks, 1 / speedup), (True, aa_blocks, aa_bias)):
        for block in range(count):
            swap = bool(rng.integers(0, 2))
            for side, seconds in (("base", 1.0), ("head", ratio)):
                value = seconds * float(np.exp(rng.normal(0, noise)))
                cold = 3 * float(np.exp(rng.normal(0, noise)))
                if side == "head" and not aa:
                    cold /= cold_speedup or speedup
                position = int((side == "head") != swap)
                kind = {"aa": aa, "position": 2 if aa else position, "cold": cold, "hash_seed": block} | fields
                if side == "head" or not aa:  # the first base of an A/A comparison is that of its block
                    rows.append(timing(workload, session, block, side, value, **kind))
    return rows
