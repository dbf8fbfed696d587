# Removes the result file and ends well.
# as: test_hostile.py
# generate: -
# measure: workload_failed
# process: yes
import os
from heap import smallest
from targets import RESULT


def test_it():
    smallest([1])
    os.remove(RESULT)
    os._exit(0)
