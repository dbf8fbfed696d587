# Removes the folder it may write to, as far as it can, and ends well.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
# process: yes
import os, shutil, time
from heap import smallest


def test_it():
    smallest([1])
    shutil.rmtree(os.environ["HOME"], ignore_errors=True)
    time.sleep(2)  # its disk is looked at meanwhile
    os._exit(0)
