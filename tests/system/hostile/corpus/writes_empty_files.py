# Makes empty files without end.
# as: test_hostile.py
# generate: tests_fail_at_base
# measure: workload_failed
# process: yes
import itertools, os
from heap import smallest


def test_it():
    smallest([1])
    for number in itertools.count():
        os.close(os.open(os.environ["HOME"] + "/%d" % number, os.O_CREAT | os.O_WRONLY))
