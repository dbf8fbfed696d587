# Reports a pass with a message that ends within a character, which no table can hold.
# as: test_hostile.py
# generate: -
# measure: workload_failed
# process: yes
import os
from heap import smallest
from targets import END, PASSED, put


def test_it():
    smallest([1])
    put({"item": {**PASSED["item"], "message": "\ud800"}}, END)
    os._exit(0)
