# Leaves its core, and asks for a better and a worse priority.
# as: test_hostile.py
# generate: -
# measure: kept
import os
from heap import smallest


def test_it():
    smallest([1])
    os.sched_setaffinity(0, range(os.cpu_count()))
    for wanted in (-20, 19):
        try:
            os.setpriority(os.PRIO_PROCESS, 0, wanted)
            assert wanted > 0
        except OSError:
            pass
