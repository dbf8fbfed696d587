# Allocates little in each of many processes.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
# process: yes
import os, time
from heap import smallest


def test_it():
    smallest([1])
    for _ in range(12):
        if os.fork() == 0:
            held = os.urandom(2**20) * 96
            time.sleep(600)
    time.sleep(600)
