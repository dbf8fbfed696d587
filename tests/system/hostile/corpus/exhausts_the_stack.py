# Recurses in C until the stack is gone.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
# process: yes
import sys
from heap import smallest


def test_it():
    smallest([1])
    nested = []
    for _ in range(300_000):
        nested = [nested]
    sys.setrecursionlimit(2**30)
    repr(nested)
