# Ends the process with code 0 in the middle.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
# process: yes
import os
from heap import smallest


def test_it():
    smallest([1])
    os._exit(0)
