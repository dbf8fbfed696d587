# Prints and fails with bytes that are no UTF-8, NULs, halves of characters and terminal codes.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
# process: yes
import os
from heap import smallest


def test_it():
    smallest([1])
    os.write(1, bytes(range(256)) * 64 + b"\x1b]0;title\x07\x1b[2J")
    raise AssertionError("\ud800 \0 \x1b[31m " + "\udcff" * 5000)
