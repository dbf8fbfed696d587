# Leaves folders nobody may enter, and names that are no text.
# as: test_hostile.py
# generate: kept
# measure: kept
# process: yes
import os
from heap import smallest


def test_it():
    smallest([1])
    home = os.environ["HOME"]
    if os.path.isdir(home + "/closed"):
        return
    os.makedirs(home + "/closed/inner", exist_ok=True)
    open(home + "/closed/inner/file", "w").close()
    open(os.fsencode(home) + b"/\xff\n\x1b[31m", "w").close()
    os.chmod(home + "/closed/inner", 0)
    os.chmod(home + "/closed", 0)
