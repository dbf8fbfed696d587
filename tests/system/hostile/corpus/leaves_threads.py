# Leaves threads that are no daemons, and an exit handler without end.
# as: test_hostile.py
# generate: -
# measure: kept
# process: yes
import atexit, threading, time
from heap import smallest


def test_it():
    smallest([1])
    atexit.register(time.sleep, 600)
    threading.Thread(target=time.sleep, args=(600,)).start()
