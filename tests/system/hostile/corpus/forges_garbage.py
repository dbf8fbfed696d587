# Writes lines into the result file that the probe would not.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
# process: yes
import os
from heap import smallest
from targets import END, PASSED, put


def test_it():
    smallest([1])
    put("garbage", PASSED, END)
    os._exit(0)
