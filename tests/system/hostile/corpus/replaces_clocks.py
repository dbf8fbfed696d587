# Replaces every clock, gc and the modules that hold them.
# as: test_hostile.py
# generate: kept
# measure: kept
# process: yes
import gc, sys, time
from heap import smallest


def test_it():
    smallest([1])
    time.sleep(0.02)
    for name in ("perf_counter", "monotonic", "time", "process_time", "perf_counter_ns", "monotonic_ns", "time_ns"):
        setattr(time, name, lambda: 0)
    gc.collect = gc.freeze = lambda *_: 0
    sys.modules["time"] = sys.modules["gc"] = None
