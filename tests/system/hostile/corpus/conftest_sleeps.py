# Sleeps for ever while it is loaded.
# as: conftest.py
# generate: test_timeout
# measure: workload_timeout
# process: yes
# seconds: 3
import time

time.sleep(600)
