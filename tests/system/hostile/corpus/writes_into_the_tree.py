# Changes the tree it is run from: source, bytecode, a new file.
# as: test_hostile.py
# generate: -
# measure: kept
import glob, os
from heap import smallest


def test_it():
    smallest([1])
    done = []
    for path in ["heap.py", "new.py", "sitecustomize.py", "__pycache__/heap.pyc", *glob.glob("__pycache__/*")]:
        try:
            open(path, "ab").close()
            done.append(path)
        except OSError:
            pass
    for attempt in (lambda: os.chmod("heap.py", 0), lambda: os.utime("heap.py"), lambda: os.rename(".", "../moved")):
        try:
            attempt()
            done.append("changed")
        except OSError:
            pass
    assert not done
