# Ignores and blocks every signal it can, closes its output, and sleeps.
# as: test_hostile.py
# generate: test_timeout
# measure: workload_timeout
# process: yes
# seconds: 3
import os, signal, time
from heap import smallest


def test_it():
    smallest([1])
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_IGN)
        except OSError:
            pass
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    os.close(1), os.close(2)
    while True:
        time.sleep(600)
