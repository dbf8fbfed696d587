# Prints 1 GB that is no text.
# as: setup.py
# build: build_failed
# process: yes
import os

for _ in range(1024):
    os.write(1, b"\xff\x00\x1b[2J\n\xc3" * 2**17)
os.kill(os.getpid(), 11)
