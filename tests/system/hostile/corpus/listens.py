# Serves on all addresses and leaves the server running.
# as: test_hostile.py
# generate: -
# measure: kept
import os, socket, time
from heap import smallest
from targets import MARK


def test_it():
    smallest([1])
    if os.fork() == 0:
        os.setsid()
        servers = [socket.socket(), socket.socket(socket.AF_UNIX)]
        servers[0].bind(("0.0.0.0", 0))
        servers[1].bind("\0" + MARK)
        for server in servers:
            server.listen()
        time.sleep(603)
