"""User ids of the sides, and what may be done to all processes of one: as root, each side is a user of its own.

So no side can signal, trace or read another, nor the grader. A `Warden` stops and kills by user id; where a
prefix (bubblewrap) isolates instead, a `Tree` does so, process by process, from outside of its namespace.
"""

import json
import os
import random
import select
import shutil
import signal
import stat
import subprocess
import sys
import time

from processes import MAY_RUN, cores_of, descendants, of_user, state_of, user_of

ANSWER_SECONDS = 20.0
OBEY_SECONDS = 3.0
CYCLES = 5
"""Looks for processes that were started while others were stopped."""
_random = random.SystemRandom()


class Trouble(Exception):
    """Our machinery or this machine failed: nobody is graded."""


class Warden(object):
    """Stops, continues and kills all processes of a new user id (`uid`)."""

    def __init__(self, taken):
        self.uid, own = free_uid(taken), free_uid(taken)
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "warden.py")
        command = [sys.executable, "-E", "-s", "-S", program, str(own), str(self.uid)]
        pipe = subprocess.PIPE
        # in a session of its own: who ends the grader's process group ends what it stopped through the warden
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0, start_new_session=True)
        self._heard(b"r")
        self._facts = self._look()

    @property
    def pid(self):
        """Of the process that signals."""
        return self._process.pid

    def stop(self):
        """Stops all.

        `kill(-1)` is atomic: what forks at this moment is stopped with its child, and with the signal pending no
        process comes back from the kernel to its own code. What runs on another core learns it microseconds later.
        Whoever wakes others again and again may win that race: `SideProcess` looks who runs, and at their processor
        time.
        """
        self._order(b"s")

    def go(self):
        """Lets all go on."""
        self._order(b"c")

    def kill(self):
        """Kills all."""
        self._order(b"k")

    def all(self):
        """The processes of the user."""
        return of_user(self.uid)

    def meddled(self):
        """Whether somebody has changed where and how fast it runs; asked when the whole user is stopped."""
        return self._look() != self._facts

    def close(self):
        """Ends it, and with it what is left of its user."""
        self._process.stdin.close()
        try:
            self._process.wait(ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _look(self):
        pid = self.pid
        return os.sched_getaffinity(pid), os.getpriority(os.PRIO_PROCESS, pid), os.sched_getscheduler(pid)

    def _order(self, word):
        try:
            self._process.stdin.write(word)
        except OSError:
            raise Trouble("the warden of a side is gone")
        self._heard(word)

    def _heard(self, word):
        ready, _, _ = select.select([self._process.stdout], [], [], ANSWER_SECONDS)
        if not ready or self._process.stdout.read(1) != word:
            raise Trouble("the warden of a side does not answer")


class Tree(object):
    """The same for what a prefix isolates: the processes below the one that was started."""

    uid = None
    pid = None

    def __init__(self):
        self._root = None
        self._stopped = []

    def begin(self, pid):
        """This process was started; the prefix, which only waits, is not stopped."""
        self._root = pid

    def stop(self):
        """Stops all below it, again for those that were started meanwhile."""
        stopped = []
        for _ in range(CYCLES):
            left = [one for one in descendants(self._root) if one not in stopped]
            if not left:
                break
            for one in left:
                signal_to(one, signal.SIGSTOP)
            stopped += left
        self._stopped = stopped

    def go(self):
        """Lets all go on that was stopped."""
        for one in self._stopped:
            signal_to(one, signal.SIGCONT)
        self._stopped = []

    def kill(self):
        """Kills what was started; its namespace ends with it."""
        if self._root:
            for one in [self._root] + descendants(self._root):
                signal_to(one, signal.SIGKILL)
        self._root, self._stopped = None, []

    def all(self):
        """The processes below the one that was started."""
        return descendants(self._root) if self._root else []

    def meddled(self):
        """Nobody reaches the grader from inside."""
        return False

    def close(self):
        """Ends what is left."""
        self.kill()


def hand_over(process, request):
    """Writes a request to a process: once read, it lies nowhere where the code under test could open it."""
    try:
        with process.stdin as pipe:
            pipe.write(json.dumps(request).encode())
    except BrokenPipeError:
        pass


def wait_stopped(pids):
    """Whether none of the processes runs any more, after at most `OBEY_SECONDS`."""
    until = time.monotonic() + OBEY_SECONDS
    for pid in pids:
        while state_of(pid) in MAY_RUN:
            if time.monotonic() > until:
                return False
    return True


def signal_to(pid, number):
    """Signals a process that may be gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def free_uid(taken):
    """A user id that nobody has, and no process; `taken` gets it. Only root can give one to a process."""
    if os.geteuid() != 0:
        raise Trouble("the grader must be root, or be given a prefix that isolates what it starts")
    with open("/etc/passwd") as file:
        known = {int(line.split(":")[2]) for line in file if line.count(":") > 2}
    known |= {user_of(name) for name in os.listdir("/proc") if name.isdigit()}
    while True:
        uid = _random.randrange(20000, 60000)
        if uid not in known and uid not in taken:
            taken.add(uid)
            return uid


def world_writable():
    """Folders of the file system in which everybody may make files."""
    found = []
    for place, folders, _ in os.walk("/"):
        folders[:] = [one for one in folders if os.path.join(place, one) not in ("/proc", "/sys")]
        if os.lstat(place).st_mode & stat.S_IWOTH:
            found.append(place)
    return found


def clear(places, uids):
    """Removes what these users left in folders where everybody may write."""
    for place in places:
        for name in os.listdir(place):
            path = os.path.join(place, name)
            try:
                if os.lstat(path).st_uid not in uids:
                    continue
                if os.path.isdir(path) and not os.path.islink(path):
                    remove_folder(path)
                else:
                    os.remove(path)
            except FileNotFoundError:
                continue


def remove_folder(path):
    """Removes a folder that others may have filled, however deep they went."""
    try:
        shutil.rmtree(path, ignore_errors=True)
    except RecursionError:
        subprocess.call(["rm", "-rf", path], stderr=subprocess.DEVNULL)


def cores_of_all(pids):
    """The cores that some of the processes may use."""
    found = set()
    for pid in pids:
        found |= cores_of(pid)
    return found
