# Writes files without end into the tree.
# as: setup.py
# build: build_failed
# process: yes
import itertools

for number in itertools.count():
    with open("%d.bin" % number, "wb", 0) as file:
        for _ in range(4):
            file.write(bytes(2**20))
