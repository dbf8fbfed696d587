# Starts threads without end.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
# process: yes
import threading, time
from heap import smallest


def test_it():
    smallest([1])
    threading.stack_size(32768)
    while True:
        try:
            threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        except RuntimeError:
            pass
