# Leaves a daemon.
# as: setup.py
# build: kept
# process: yes
import os

if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.closerange(0, 256)
    os.execv("/bin/sleep", ["/bin/sleep", "604"])
os.wait()
