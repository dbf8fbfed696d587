# Allocates without end.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
# process: yes
from heap import smallest


def test_it():
    smallest([1])
    held = []
    while True:
        held.append(b"x" * 2**24)
