# Prints without end into what pytest captures.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
# process: yes
from heap import smallest


def test_it():
    smallest([1])
    while True:
        print("x" * 2**20)
