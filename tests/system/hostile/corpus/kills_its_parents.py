# Kills those that look after it: its parents, the namespace's first process.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
import os, signal
from heap import smallest


def test_it():
    smallest([1])
    for pid in (os.getppid(), 2, 1):
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(pid, number)
            except OSError:
                pass
    os.kill(os.getpid(), signal.SIGKILL)
