"""Stops, continues and kills all processes of one user: `warden.py OWN SIDE`, both user ids that nobody else has.

Its real and saved user id are OWN, its effective one is SIDE. By the kernel's rule it may signal whatever has SIDE
as its real user id, and `kill(-1)` reaches all of that: children with a session of their own, and what is just
being forked. What runs as SIDE alone may not signal it, nor trace it, nor read its memory. It may make it
slower (`setpriority` and `sched_setaffinity` look at the effective id of their target): the grader looks at that
whenever all of SIDE is stopped (`users.Warden.meddled`).

It obeys single bytes of its standard input, and answers each with itself. When the input ends, it kills, and ends.
Whom it kills, of these it also removes what the kernel would keep in no folder: memory, queues and semaphores of
System V, and keys.
"""

import ctypes
import os
import signal
import sys

WORDS = {b"s": signal.SIGSTOP, b"c": signal.SIGCONT, b"k": signal.SIGKILL}
OBJECTS = (("shm", "shmid", ()), ("msg", "msqid", ()), ("sem", "semid", (0,)))
"""Kinds of System V: name, column of the number, what comes before the command in its call."""
REMOVE = 0  # IPC_RMID
KEYCTL = {"x86_64": 250, "aarch64": 219}
CLEAR, PERSISTENT = 7, 22  # KEYCTL_CLEAR, KEYCTL_GET_PERSISTENT
PROCESS_KEYS, USER_KEYS, SESSION_KEYS = -2, -4, -5
_libc = ctypes.CDLL(None)


def main(own, side):
    """Obeys until the input ends."""
    os.setgroups([])
    os.setresgid(own, own, own)
    os.setresuid(own, side, own)
    os.write(1, b"r")
    while True:
        word = os.read(0, 1)
        send(WORDS[word or b"k"])
        if word in (b"k", b""):
            forget(side)
        if not word:
            return
        os.write(1, word)


def send(number):
    """Signals everything that this process may signal, but itself."""
    try:
        os.kill(-1, number)
    except OSError:  # there is nothing
        pass


def forget(side):
    """Removes what SIDE, whose processes are all killed, has left in the kernel: as a child that is SIDE."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        os.setresuid(side, side, side)
        for kind, column, before in OBJECTS:
            for number in left_of(side, kind, column):
                getattr(_libc, kind + "ctl")(number, *(before + (REMOVE, None)))
        call = KEYCTL.get(os.uname().machine)
        if call:
            kept = _libc.syscall(call, PERSISTENT, -1, PROCESS_KEYS)
            for keys in [USER_KEYS, SESSION_KEYS] + ([kept] if kept > 0 else []):
                _libc.syscall(call, CLEAR, keys)
    finally:
        os._exit(0)


def left_of(side, kind, column):
    """Numbers of a user's objects of System V."""
    try:
        with open("/proc/sysvipc/" + kind) as file:
            names = file.readline().split()
            rows = [dict(zip(names, line.split())) for line in file]
    except OSError:
        return []
    return [int(row[column]) for row in rows if str(side) in (row["uid"], row["cuid"])]


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
