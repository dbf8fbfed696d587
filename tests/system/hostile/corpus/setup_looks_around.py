# Reads keys, connects, and writes into the environment, the host and the clone.
# as: setup.py
# build: kept
import glob, os, socket, sys
from targets import HOMES, MARK, PORT, PREFIX, VICTIM

done = []
for folder in (VICTIM, "..", sys.prefix, os.path.dirname(os.__file__), "/etc", "/root", *HOMES):
    try:
        open(folder + "/" + MARK, "w").close()
        done.append(folder)
    except OSError:
        pass
paths = [os.path.join(folder, name) for top in HOMES for folder, _, names in os.walk(top) for name in names]
for path in paths + glob.glob("/proc/[0-9]*/environ"):
    try:
        with open(path, "rb") as file:
            if PREFIX.encode() in file.read(2**20):
                done.append(path)
    except OSError:
        pass
try:
    socket.create_connection(("127.0.0.1", PORT), timeout=1)
    done.append("network")
except OSError:
    pass
sys.exit(str(done) if done else 0)
