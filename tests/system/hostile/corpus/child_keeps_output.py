# Ends while a child without end holds its output open.
# as: test_hostile.py
# generate: kept
# measure: kept
# process: yes
import subprocess
from heap import smallest


def test_it():
    smallest([1])
    subprocess.Popen(["/bin/sleep", "602"], start_new_session=True)
