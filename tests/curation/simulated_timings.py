"""Rows of the timings table as a machine with known noise would have written them."""

import numpy as np

from data.records import Machine, Stamp, Timing

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
