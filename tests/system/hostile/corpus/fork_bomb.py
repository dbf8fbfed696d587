# Forks without end.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
import os
from heap import smallest


def test_it():
    smallest([1])
    while True:
        try:
            os.fork()
        except OSError:
            pass
