# Writes files without end, each within the limit.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
# process: yes
import itertools, os
from heap import smallest


def test_it():
    smallest([1])
    for number in itertools.count():
        with open(os.environ["HOME"] + "/%d" % number, "wb", 0) as file:
            for _ in range(4):
                file.write(bytes(2**20))
