# Names a test and an error with halves of characters, and ends.
# as: test_hostile.py
# generate: -
# measure: workload_failed
# process: yes
import os
from heap import smallest
from targets import put


def test_it():
    smallest([1])
    put({"collect": {"\udcff": "\ud800"}}, {"begin": "\ud800"})
    os._exit(1)
