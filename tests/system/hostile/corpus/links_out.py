# Leaves links to files of the host where its own files are expected.
# as: test_hostile.py
# generate: -
# measure: kept
import os
from heap import smallest
from targets import VICTIM


def test_it():
    smallest([1])
    home = os.environ["HOME"]
    for number, target in enumerate((VICTIM, VICTIM + "/file", "/etc", "/")):
        if not os.path.islink("%s/%d" % (home, number)):
            os.symlink(target, "%s/%d" % (home, number))
    try:
        os.link(VICTIM + "/file", home + "/hard")
    except OSError:
        pass
    else:
        raise AssertionError("a file of the host was linked")
