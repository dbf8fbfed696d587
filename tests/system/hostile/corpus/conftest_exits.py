# Ends the process with code 0 while it is loaded.
# as: conftest.py
# generate: tests_fail_at_base
# measure: workload_failed
# process: yes
import os

os._exit(0)
