# Fills /dev/shm, /tmp and /var/tmp.
# as: test_hostile.py
# generate: -
# measure: kept
import os
from heap import smallest
from targets import MARK


def test_it():
    smallest([1])
    for folder in ("/dev/shm", "/tmp", "/var/tmp"):
        written, number = 0, 0
        try:
            while written < 2**28:
                with open(folder + "/" + MARK + str(number), "wb", 0) as file:
                    for _ in range(16):
                        written += file.write(bytes(2**20))
                number += 1
        except OSError:
            pass
        assert written < 2**28, folder
