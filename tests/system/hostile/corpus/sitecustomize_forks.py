# Forks without end in every interpreter that a test starts.
# as: sitecustomize.py
# generate: tests_fail_at_base
# measure: workload_failed
import os

while True:
    try:
        os.fork()
    except OSError:
        pass
