# Leaves files of terabytes that take no disk until they are copied.
# as: setup.py
# build: build_failed
# process: yes
for number in range(1024):
    with open("%d.bin" % number, "wb") as file:
        file.truncate(2**25)
