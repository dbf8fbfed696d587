# Empties sys.modules.
# as: test_hostile.py
# generate: -
# measure: kept
# process: yes
import sys
from heap import smallest


def test_it():
    smallest([1])
    sys.modules.clear()
