# Sleeps for ever.
# as: test_hostile.py
# generate: test_timeout
# measure: workload_timeout
# process: yes
# seconds: 5
# call: 1
import time
from heap import smallest


def test_it():
    smallest([1])
    time.sleep(600)
