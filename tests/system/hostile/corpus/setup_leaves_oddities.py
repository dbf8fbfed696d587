# Leaves pipes, sockets, links out, closed folders and names that are no text.
# as: setup.py
# build: kept
# process: yes
import os, socket

os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("socket")
os.symlink("/etc/passwd", "passwd")
os.symlink("/", "root")
os.symlink("loop", "loop")
open(b"\xff\n.txt", "w").close()
os.makedirs("closed/inner")
os.chmod("closed", 0)
