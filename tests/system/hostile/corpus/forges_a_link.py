# Puts a link to a file of the host in the result's place.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
# process: yes
import os
from heap import smallest
from targets import RESULT, VICTIM


def test_it():
    smallest([1])
    os.remove(RESULT)
    os.symlink(VICTIM + "/result.jsonl", RESULT)
    os._exit(0)
