# Nests folders more deeply than any path reaches.
# as: setup.py
# build: build_failed
# process: yes
import os

for _ in range(2000):
    os.mkdir("d" * 50)
    os.chdir("d" * 50)
open("file", "w").close()
