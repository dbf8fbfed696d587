# Writes into its standard input and reads it to its end.
# as: test_hostile.py
# generate: -
# measure: kept
# process: yes
import os
from heap import smallest


def test_it():
    smallest([1])
    for _ in range(64):
        try:
            os.write(0, bytes(2**20))
        except OSError:
            break
    assert os.read(0, 1) == b""
