# Reports itself, and lets the probe report it, too.
# as: test_hostile.py
# generate: -
# measure: workload_failed
# process: yes
from heap import smallest
from targets import PASSED, put


def test_it():
    smallest([1])
    put(PASSED)
