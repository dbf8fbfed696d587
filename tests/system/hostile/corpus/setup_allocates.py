# Allocates without end.
# as: setup.py
# build: build_failed
# process: yes
held = []
while True:
    held.append(b"x" * 2**24)
