# Writes a line nested a million times, and one of 16 MB.
# as: test_hostile.py
# generate: -
# measure: workload_failed
# process: yes
import os
from heap import smallest
from targets import END, put


def test_it():
    smallest([1])
    put("[" * 10**6, "[" + "{}," * (16 * 2**20 // 3) + "{}]", END)
    os._exit(0)
