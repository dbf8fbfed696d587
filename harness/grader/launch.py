"""Starts the probe on one side in a fresh process that can change nothing of what grades it.

As root (as in a container), each side runs as a user of its own: it can neither write the trees, nor read the
other sides, nor signal or trace their processes; what it leaves behind (files anywhere, other processes) is
removed. A `prefix` (bubblewrap) does the same where the grader is not root.
"""

import collections
import ctypes
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time

from partner import SideProcess
from processes import parent_of, user_of
from stored import content_of
from tree_limit import TreeLimit
from users import Tree, Trouble, Warden, clear, hand_over, remove_folder, world_writable

FOLDERS = {"base": "base", "gold": "gold", "cand": "cand", "again": "same"}
"""Tree of each role below the working folder: 'again' is a second copy of the base's; all paths are of one length."""
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
NO_NEW_PRIVS = 38  # PR_SET_NO_NEW_PRIVS
RESULT_BYTES = 64 * 1024**2
TAIL = 2000
_random = random.SystemRandom()
_prctl = ctypes.CDLL(None, use_errno=True).prctl
Report = collections.namedtuple("Report", "items why")
"""What one process did: `items` by node; `why` it did not come to its end, or None."""
SLACK = 0.001
"""Seconds by which the inner clock's sum may exceed the outer wall time."""


class Launcher(object):
    """Starts processes on the sides below `work`."""

    def __init__(self, task, work):
        self._task = task
        self._work = work
        self._prefix = task.get("prefix") or []
        self.core = None
        self.sides = {}
        if _prctl(SUBREAPER, 1, 0, 0, 0):
            raise Trouble("this kernel gives no orphans to the grader (prctl)")
        taken = set()
        for role in FOLDERS:
            self.sides[role] = Tree() if self._prefix else Warden(taken)
        self._uids = {side.uid for side in self.sides.values()} - {None}
        self._places = (task.get("writable") or world_writable()) if self._uids else []
        uid = self.sides["cand"].uid
        if uid and subprocess.call([task["python"], "-I", "-c", ""], preexec_fn=lambda: self._become(uid)):
            raise Trouble("%s does not run as another user" % task["python"])

    def close(self):
        """Ends whatever it has started."""
        for side in self.sides.values():
            side.close()
        self.reap()

    def tree(self, role):
        """The tree of a role."""
        return os.path.join(self._work, FOLDERS[role])

    def run(self, role, wanted):
        """One process on a side that runs its items once; `wanted` adds to the probe's request.

        `stored` in it names by script the folder of a stored result to compare with.
        """
        folder, out = self._folder(role)
        try:
            return self._run(role, folder, out, self._request(role, "check", wanted, folder, out))
        finally:
            self.end([folder])

    def open(self, role, wanted):
        """A process on a side that calls workloads on request: a `SideProcess`, not ready yet."""
        folder, out = self._folder(role)
        request = self._request(role, "turns", wanted, folder, out)
        channel = os.path.join(folder, "ask"), os.path.join(out, "answer")
        request["channel"] = dict(zip(("ask", "answer"), channel))
        return SideProcess(self, role, folder, request, self._task["wall_seconds"] * (1 + len(self._task["workloads"])))

    def end(self, folders=()):
        """Kills what is left of all sides, and removes what they left; what the dead have used, as `reap`."""
        for side in self.sides.values():
            side.kill()
        used = self.reap()
        clear(self._places, self._uids)
        for folder in folders:
            remove_folder(folder)
        return used

    def reap(self):
        """Waits for all children but the wardens, orphans included.

        Returns:
            Processor seconds that the dead have used, by user id; of a process without one of ours, by its id.
        """
        wardens = {side.pid for side in self.sides.values()}
        used = {}
        while True:
            left = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and parent_of(pid) == os.getpid()]
            left = [pid for pid in left if pid not in wardens]
            if not left:
                return used
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                    uid = user_of(pid)
                    whose = uid if uid in self._uids else pid
                    _, _, usage = os.wait4(pid, 0)
                    used[whose] = used.get(whose, 0.0) + usage.ru_utime + usage.ru_stime
                except (ProcessLookupError, ChildProcessError):
                    continue

    def start(self, role, folder, request):
        """The process of a request, and the file that takes what it prints."""
        out = os.path.dirname(request["result"])
        names = {"out": out, "folder": folder, "work": self._work, "tree": request["tree"]}
        prefix = []
        for word in self._prefix:
            for name, value in names.items():
                word = word.replace("{%s}" % name, value)
            prefix.append(word)
        probe = os.path.join(self._work, "probe", "probe.py")
        uid = self.sides[role].uid
        with open(os.path.join(folder, "log"), "wb") as output:
            process = subprocess.Popen(
                prefix + [self._task["python"], "-s", probe, "-"],
                cwd=request["tree"],
                env=environment(os.path.join(out, "home"), request.get("hash_seed", 0)),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=lambda: self._become(uid),
            )
        if not uid:
            self.sides[role].begin(process.pid)
        return process

    def _folder(self, role):
        """A folder for one process, which only its side can reach, and the one in it that it can write."""
        folder = tempfile.mkdtemp(prefix="run-", dir=self._work)
        out = os.path.join(folder, "out")
        home = os.path.join(out, "home")
        os.makedirs(home, 0o700)
        if self._task.get("writable_tree"):
            shutil.copytree(self.tree(role), self._own_tree(role, out), symlinks=True)
        uid = self.sides[role].uid
        if uid:
            for place, folders, names in os.walk(out, topdown=False):  # itself last: nobody is in there before
                for name in folders + names + [""]:
                    os.lchown(os.path.join(place, name), uid, uid)
            for path in (folder, self.tree(role)):
                os.chown(path, 0, uid)
                os.chmod(path, 0o750)
        else:
            os.chmod(folder, 0o755)
        return folder, out

    def _own_tree(self, role, out):
        """Where a process has a copy of its side's tree that it may write into, as its tests do; it ends with it."""
        return os.path.join(out, "trees", FOLDERS[role])

    def _request(self, role, mode, wanted, folder, out):
        tree = self._own_tree(role, out) if self._task.get("writable_tree") else self.tree(role)
        wanted = dict(wanted)
        references = wanted.pop("stored", {})
        for name, stored in references.items():
            shutil.copytree(stored, os.path.join(folder, "references", name))
        request = dict(
            self._task["limits"], mode=mode, arguments=[], scripts={}, include=[], calls={}, extra_paths=[], draws={}
        )
        request.update(wanted, tree=tree, result=os.path.join(out, "result.jsonl"), record=None)
        request["store"] = os.path.join(out, "results") if request.get("store") else ""
        request["references"] = os.path.join(folder, "references") if references else ""
        request["source_roots"] = [os.path.normpath(os.path.join(tree, root)) for root in self._task["source_roots"]]
        request["nonce"] = "%032x" % _random.getrandbits(128)
        return request

    def _run(self, role, folder, out, request):
        begin = time.perf_counter()
        process = self.start(role, folder, request)
        seconds = self._task["wall_seconds"] * (1 + len(request["scripts"]))  # of results many are compared in one
        limit = TreeLimit(process, seconds)
        limit.start()
        hand_over(process, request)
        ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        wall = time.perf_counter() - begin
        timed_out = limit.end()
        self.sides[role].kill()
        process.returncode = ended.si_status
        items, why = {}, "was killed after %d s" % seconds if timed_out else None
        try:
            items, end = read_items(request["result"])
            check_times(items, wall)
            whole = end is not None and end.get("nonce") == request["nonce"] and end["status"] in (0, 1, 5)
            if not why and (ended.si_status or ended.si_code != os.CLD_EXITED or not whole):
                why = "ended early: " + tail(os.path.join(folder, "log"))
        except (OSError, ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
            return Report({}, why or "left no good result: %r" % error)
        return Report(items, why)

    def _become(self, uid):
        """In the new process, before it runs anything."""
        os.setsid()
        if self.core is not None:
            os.sched_setaffinity(0, [self.core])
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_MSGQUEUE, (0, 0))  # POSIX queues would outlive it, in no folder
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024**3, 1024**3))
        memory = self._task["memory_bytes"]
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        if uid:
            _prctl(NO_NEW_PRIVS, 1, 0, 0, 0)  # programs that would change their user id do not
            resource.setrlimit(resource.RLIMIT_NPROC, (256, 256))
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)


def environment(home, hash_seed):
    """All variables of the process."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return dict(
        one,
        HOME=home,
        TMPDIR=home,
        PATH="/usr/local/bin:/usr/bin:/bin",
        TZ="UTC",
        LC_ALL="C.UTF-8",
        PYTHONHASHSEED=str(hash_seed),
        PYTHONDONTWRITEBYTECODE="1",
        HYPOTHESIS_STORAGE_DIRECTORY=os.path.join(home, "hypothesis"),  # it would write into the tree
    )


def read_items(path):
    """Items by node, and the entry with which the probe ended (None: it did not come to its end)."""
    items, end = {}, None
    for line in content_of(path, RESULT_BYTES).split(b"\n")[:-1]:
        entry = json.loads(line.decode())
        if "item" in entry:
            item = entry["item"]
            if not (isinstance(item["node"], str) and isinstance(item["outcome"], str)):
                raise ValueError("a test is reported without its name or outcome")
            if item["node"] in items or end is not None:
                raise ValueError("%s was reported twice" % item["node"])
            items[item["node"]] = item
        elif "end" in entry:
            end = entry["end"]
    return items, end


def check_times(items, wall):
    """Inner times must not be negative, and possible in the time that passed outside."""
    times = [float(item.get("seconds", 0.0)) for item in items.values()]
    if not all(one >= 0 for one in times) or not sum(times) <= wall + SLACK:
        raise ValueError("its times do not fit into the wall time of the process")


def tail(path):
    """The end of a log."""
    with open(path, "rb") as file:
        return file.read()[-TAIL:].decode("utf-8", "replace").strip()
