# Takes memory that counts for no process: memfd, System V segments.
# as: test_hostile.py
# generate: -
# measure: kept or workload_failed
import ctypes, os, time
from heap import smallest
from targets import SEGMENT


def test_it():
    smallest([1])
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    held = 0
    for _ in range(96):  # three times the limit
        segment = libc.shmget(0, SEGMENT, 0o1600)
        if segment >= 0:
            place = libc.shmat(segment, None, 0)
            ctypes.memset(place, 1, 2**24)
            libc.shmdt(ctypes.c_void_p(place))
            held += 2**24
        try:
            held += os.write(os.memfd_create("x"), bytes(2**24))
        except OSError:
            pass
    if held > 2**30:
        time.sleep(600)  # nobody minds
