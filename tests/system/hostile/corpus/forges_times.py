# Reports times that do not fit into the time that passed.
# as: test_hostile.py
# generate: -
# measure: workload_failed
# process: yes
import os
from heap import smallest
from targets import END, PASSED, put


def test_it():
    smallest([1])
    put({"item": {**PASSED["item"], "samples": [1e6, 1e6]}}, END)
    os._exit(0)
