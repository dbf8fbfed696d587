# Writes a file without end.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
# process: yes
import os
from heap import smallest


def test_it():
    smallest([1])
    with open(os.environ["HOME"] + "/large", "wb", 0) as file:
        while True:
            file.write(bytes(2**20))
