# Puts a socket in the result's place.
# as: test_hostile.py
# generate: -
# measure: workload_failed
# process: yes
import os, socket
from heap import smallest
from targets import RESULT


def test_it():
    smallest([1])
    os.remove(RESULT)
    os.chdir(os.path.dirname(RESULT))
    socket.socket(socket.AF_UNIX).bind("result.jsonl")
    os._exit(0)
