# Ends by SIGABRT, which writes a core file where it may.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
# process: yes
import os
from heap import smallest


def test_it():
    smallest([1])
    os.abort()
