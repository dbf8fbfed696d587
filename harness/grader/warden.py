"""Stops, continues and kills all processes of one user: `warden.py OWN SIDE`, both user ids that nobody else has.

Its real and saved user id are OWN, its effective one is SIDE. By the kernel's rule it may signal whatever has SIDE
as its real user id, and `kill(-1)` reaches all of that: children with a session of their own, and what is just
being forked. What runs as SIDE alone may not signal it, nor trace it, nor read its memory. It may make it
slower (`setpriority` and `sched_setaffinity` look at the effective id of their target): the grader looks at that
whenever all of SIDE is stopped (`users.Warden.meddled`).

It obeys single bytes of its standard input, and answers each with itself. When the input ends, it kills, and ends.
"""

import os
import signal
import sys

WORDS = {b"s": signal.SIGSTOP, b"c": signal.SIGCONT, b"k": signal.SIGKILL}


def main(own, side):
    """Obeys until the input ends."""
    os.setgroups([])
    os.setresgid(own, own, own)
    os.setresuid(own, side, own)
    os.write(1, b"r")
    while True:
        word = os.read(0, 1)
        send(WORDS[word or b"k"])
        if not word:
            return
        os.write(1, word)


def send(number):
    """Signals everything that this process may signal, but itself."""
    try:
        os.kill(-1, number)
    except OSError:  # there is nothing
        pass


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
