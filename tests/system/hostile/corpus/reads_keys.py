# Looks for keys in homes, beside the tree and in the caller's keyring.
# as: test_hostile.py
# generate: -
# measure: kept
import ctypes, os
from heap import smallest
from targets import HOMES, PREFIX


def test_it():
    smallest([1])
    found = []
    for top in [*HOMES, "/run", "/etc/ssh", "/etc/shadow"]:
        paths = [os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names] or [top]
        for path in paths:
            try:
                with open(path, "rb") as file:
                    if PREFIX.encode() in file.read(2**20):
                        found.append(path)
            except OSError:
                pass
    keyctl_read_session = ctypes.CDLL(None).syscall(250, 11, -3, None, 0)
    assert not found and keyctl_read_session < 0
