# Removes the result file and ends well.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
# process: yes
import os
from heap import smallest
from targets import RESULT


def test_it():
    smallest([1])
    os.remove(RESULT)
    os._exit(0)
