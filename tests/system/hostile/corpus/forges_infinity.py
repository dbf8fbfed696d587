# Reports numbers that no integer is.
# as: test_hostile.py
# generate: -
# measure: workload_failed
# process: yes
import os
from heap import smallest
from targets import PASSED, put


def test_it():
    smallest([1])
    put(PASSED, '{"end": {"status": Infinity, "python": "3.11"}}')
    os._exit(0)
