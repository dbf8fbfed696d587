# Catches all that is raised in it, the request to give up included.
# as: test_hostile.py
# generate: test_timeout
# measure: workload_timeout
# process: yes
# seconds: 8
# call: 0.5
from heap import smallest


def test_it():
    smallest([1])
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
