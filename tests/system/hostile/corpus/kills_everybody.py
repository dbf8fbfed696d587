# Kills every process it may.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
import os, signal
from heap import smallest


def test_it():
    smallest([1])
    os.kill(-1, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
