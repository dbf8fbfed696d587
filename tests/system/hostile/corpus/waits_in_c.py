# Waits in C with a C signal handler, where Python cannot raise.
# as: test_hostile.py
# generate: test_timeout
# measure: workload_timeout
# process: yes
# seconds: 3
import ctypes, signal, time
from heap import smallest


def test_it():
    smallest([1])
    libc = ctypes.CDLL(None)
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT):
        libc.signal(int(number), ctypes.c_void_p(1))
    while True:
        libc.sleep(600)
