# Looks for keys in the environments and memory of all processes it sees.
# as: test_hostile.py
# generate: -
# measure: kept
import glob
from heap import smallest
from targets import PREFIX


def test_it():
    smallest([1])
    found = []
    for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline") + ["/proc/keys"]:
        try:
            with open(path, "rb") as file:
                if PREFIX.encode() in file.read():
                    found.append(path)
        except OSError:
            pass
    assert not found
