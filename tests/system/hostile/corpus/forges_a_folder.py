# Puts a folder in the result's place.
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
    os.mkdir(RESULT)
    os._exit(0)
