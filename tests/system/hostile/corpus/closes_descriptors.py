# Closes every descriptor, the result file's included.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
# process: yes
import os
from heap import smallest


def test_it():
    smallest([1])
    os.closerange(0, 4096)
