# Nests folders more deeply than any path reaches.
# as: test_hostile.py
# generate: kept
# measure: kept
# process: yes
import os
from heap import smallest


def test_it():
    smallest([1])
    here = os.getcwd()
    os.chdir(os.environ["HOME"])
    try:
        for _ in range(2000):
            os.mkdir("d" * 50)
            os.chdir("d" * 50)
        open("file", "w").close()
    except FileExistsError:
        pass
    finally:
        os.chdir(here)
