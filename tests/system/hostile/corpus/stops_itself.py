# Stops itself (SIGSTOP): no timer of its own runs any more.
# as: test_hostile.py
# generate: test_timeout
# measure: workload_timeout
# process: yes
# seconds: 3
import os, signal
from heap import smallest


def test_it():
    smallest([1])
    os.kill(os.getpid(), signal.SIGSTOP)
