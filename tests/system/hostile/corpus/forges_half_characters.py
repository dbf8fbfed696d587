# Names a test and an error with halves of characters, and ends.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
# process: yes
import json, os, socket
from heap import smallest
from targets import VICTIM

RESULT = os.environ["HOME"] + "/result.jsonl"
NODE = "test_hostile.py::test_it"
PASSED = {"item": {"node": NODE, "outcome": "passed", "seconds": 1e-5, "samples": [1e-5, 1e-5], "calls": 2}}
END = {"end": {"status": 0, "python": "3.11.0"}}


def put(*entries):
    with open(RESULT, "a") as file:
        for entry in entries:
            file.write((entry if isinstance(entry, str) else json.dumps(entry)) + "\n")


def test_it():
    smallest([1])
    put({"collect": {"\udcff": "\ud800"}}, {"begin": "\ud800"})
    os._exit(1)
