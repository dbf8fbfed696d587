# Writes files without end that have no name.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
# process: yes
import os, tempfile
from heap import smallest


def test_it():
    smallest([1])
    held = []
    while True:
        held.append(tempfile.TemporaryFile(dir=os.environ["HOME"]))
        held[-1].write(bytes(2**22))
        held[-1].flush()
