# Prints 1 GB past pytest's capture.
# as: test_hostile.py
# generate: -
# measure: kept
# process: yes
import os, stat
from heap import smallest


def test_it():
    smallest([1])
    pipes = []
    for descriptor in range(3, 64):
        try:
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                os.write(descriptor, b"")
                pipes.append(descriptor)
        except OSError:
            pass
    for _ in range(1024):
        os.write(pipes[0], b"x" * 2**20)
