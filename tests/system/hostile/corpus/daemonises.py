# Leaves daemons: double fork, own session, closed descriptors, ignored signals.
# as: test_hostile.py
# generate: kept
# measure: kept
# process: yes
import os, signal, time
from heap import smallest
from targets import MARK


def test_it():
    smallest([1])
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.closerange(0, 256)
        os.execv("/bin/sleep", ["/bin/sleep", "601"])
    os.wait()
