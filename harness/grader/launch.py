"""Starts the probe on one side in a fresh process that can change nothing of what grades it.

As root (as in a container), each process runs as a user of its own: it can neither write the trees
nor read the other sides, and what it leaves behind (files anywhere, other processes) is removed
before the next one starts. A `prefix` (bubblewrap) does the same where the grader is not root.
"""

import ctypes
import json
import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time

SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
RESULT_BYTES = 64 * 1024**2
STORED_BYTES = 16 * 1024**2
MOST_FILES = 16
TAIL = 2000
_random = random.SystemRandom()
SLACK = 0.001
"""Seconds by which the inner clock's sum may exceed the outer wall time."""


class Trouble(Exception):
    """Our machinery or this machine failed: nobody is graded."""


class Report(object):
    """What one process did: `items` by node, None when it did not come to its end."""

    def __init__(self, items, why, wall, cpu, stored):
        self.items = items
        self.why = why
        self.wall = wall
        self.cpu = cpu
        self.stored = stored


class Launcher(object):
    """Starts processes on the sides below `work`."""

    def __init__(self, task, work):
        self._task = task
        self._work = work
        self._prefix = task.get("prefix") or []
        self._uid = None if self._prefix else free_uid()
        self.core = None
        if ctypes.CDLL(None, use_errno=True).prctl(SUBREAPER, 1, 0, 0, 0):
            raise Trouble("this kernel gives no orphans to the grader (prctl)")
        self._places = world_writable() if self._uid else []
        if self._uid and subprocess.call([task["python"], "-c", ""], preexec_fn=self._become):
            raise Trouble("%s does not run as another user" % task["python"])

    def run(self, side, mode, wanted):
        """One process on 'base', 'cand' or 'gold'; `wanted` adds to the probe's request."""
        folder = tempfile.mkdtemp(prefix="run-", dir=self._work)
        os.chmod(folder, 0o755)
        out = os.path.join(folder, "out")
        home = os.path.join(out, "home")
        os.makedirs(home, 0o700)
        if self._uid:
            os.chown(out, self._uid, self._uid)
            os.chown(home, self._uid, self._uid)
            for name in ("base", "cand", "gold"):
                os.chmod(os.path.join(self._work, name), 0o755 if name == side else 0o700)
        try:
            return self._run(side, folder, out, self._request(side, mode, wanted, folder, out))
        finally:
            self._clear()
            shutil.rmtree(folder, ignore_errors=True)

    def _request(self, side, mode, wanted, folder, out):
        tree = os.path.join(self._work, side)
        references = wanted.pop("stored", {})
        for name, files in references.items():
            os.makedirs(os.path.join(folder, "references", name))
            for inside, content in files.items():
                with open(os.path.join(folder, "references", name, inside), "wb") as file:
                    file.write(content)
        request = dict(self._task["limits"], mode=mode, arguments=[], scripts={}, include=[], calls={}, extra_paths=[])
        request.update(wanted, tree=tree, result=os.path.join(out, "result.jsonl"), record=None)
        request["store"] = os.path.join(out, "results") if request.get("store") else ""
        request["references"] = os.path.join(folder, "references") if references else ""
        request["source_roots"] = [os.path.normpath(os.path.join(tree, root)) for root in self._task["source_roots"]]
        request["nonce"] = "%032x" % _random.getrandbits(128)
        return request

    def _run(self, side, folder, out, request):
        prefix = [word.replace("{out}", out).replace("{folder}", folder) for word in self._prefix]
        probe = os.path.join(self._work, "probe", "probe.py")
        log = os.path.join(folder, "log")
        with open(log, "wb") as output:
            begin = time.perf_counter()
            process = subprocess.Popen(
                prefix + [self._task["python"], "-s", probe, "-"],
                cwd=request["tree"],
                env=environment(os.path.join(out, "home"), request.get("hash_seed", 0)),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=self._become,
            )
            timer = threading.Timer(self._task["wall_seconds"], process.kill)
            timer.start()
            hand_over(process.stdin, json.dumps(request).encode())
            _, ended, used = os.wait4(process.pid, 0)
            wall = time.perf_counter() - begin
            timed_out = not timer.is_alive()
            timer.cancel()
            process.returncode = ended
        self._end()
        cpu = used.ru_utime + used.ru_stime
        items, why = {}, "was killed after %d s" % self._task["wall_seconds"] if timed_out else None
        try:
            items, end = read_items(request["result"])
            check_times(items, wall)
            whole = end is not None and end.get("nonce") == request["nonce"] and end["status"] in (0, 1, 5)
            if not why and (ended or not whole):
                why = "ended early: " + tail(log)
            stored = read_stored(request["store"], request["scripts"]) if request["store"] else {}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            return Report({}, why or "left no good result: %s" % error, wall, cpu, {})
        return Report(items, why, wall, cpu, stored)

    def _become(self):
        """In the new process, before it runs anything."""
        os.setsid()
        if self.core is not None:
            os.sched_setaffinity(0, [self.core])
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024**3, 1024**3))
        memory = self._task["memory_bytes"]
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        if self._uid:
            resource.setrlimit(resource.RLIMIT_NPROC, (256, 256))
            os.setgroups([])
            os.setgid(self._uid)
            os.setuid(self._uid)

    def _end(self):
        """Ends whatever is left of the process: at once what runs as its user, then all orphans."""
        if self._uid:
            pid = os.fork()
            if not pid:
                os.setgid(self._uid)
                os.setuid(self._uid)
                os.kill(-1, signal.SIGKILL)
                os._exit(0)
            os.waitpid(pid, 0)
        end_descendants()

    def _clear(self):
        """Removes what the process left where everybody may write."""
        self._end()
        for place in self._places:
            for name in os.listdir(place):
                path = os.path.join(place, name)
                if os.lstat(path).st_uid != self._uid:
                    continue
                if os.path.isdir(path) and not os.path.islink(path):
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    os.remove(path)


def free_uid():
    """A user id that nobody has; only root can give one to a process."""
    if os.geteuid() != 0:
        raise Trouble("the grader must be root, or be given a prefix that isolates what it starts")
    with open("/etc/passwd") as file:
        taken = {line.split(":")[2] for line in file if line.count(":") > 2}
    while True:
        uid = _random.randrange(20000, 60000)
        if str(uid) not in taken:
            return uid


def world_writable():
    """Folders of the file system in which everybody may make files."""
    found = []
    for top in ("/",):
        for place, folders, _ in os.walk(top):
            folders[:] = [one for one in folders if os.path.join(place, one) not in ("/proc", "/sys")]
            if os.lstat(place).st_mode & stat.S_IWOTH:
                found.append(place)
    return found


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
    )


def end_descendants():
    """Kills whatever is left of a process, orphans and their sessions included: all are our children by now."""
    while True:
        left = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and parent_of(pid) == os.getpid()]
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass


def parent_of(pid):
    """The parent of a process; None when it is gone."""
    try:
        with open("/proc/%s/stat" % pid) as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def content_of(path, limit):
    """Contents of a regular file that hostile code may have written."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > limit:
            raise ValueError("%s is no file, or too large" % os.path.basename(path))
        return file.read(limit)


def hand_over(pipe, request):
    """Writes the request to the process: once read, it lies nowhere where the code under test could open it."""
    try:
        with pipe:
            pipe.write(request)
    except BrokenPipeError:
        pass


def read_items(path):
    """Items by node, and the entry with which the probe ended (None: it did not come to its end)."""
    items, end = {}, None
    for line in content_of(path, RESULT_BYTES).split(b"\n")[:-1]:
        entry = json.loads(line.decode())
        if "item" in entry:
            item = entry["item"]
            if item["node"] in items or end is not None:
                raise ValueError("%s was reported twice" % item["node"])
            items[item["node"]] = item
        elif "end" in entry:
            end = entry["end"]
    return items, end


def check_times(items, wall):
    """Inner times must be positive, finite, and possible in the time that passed outside."""
    timed = [
        float(one) for item in items.values() if item.get("samples") for one in [item["seconds"]] + item["samples"]
    ]
    others = [float(item.get("seconds", 0.0)) for item in items.values() if not item.get("samples")]
    inside = sum(sum(item.get("samples") or []) for item in items.values()) + sum(others)
    if not all(0 < one < float("inf") for one in timed) or not 0 <= inside <= wall + SLACK:
        raise ValueError("its times do not fit into the wall time of the process")


def read_stored(folder, scripts):
    """The files that each script stored, by name; none for a script that stored nothing."""
    found = {}
    for name in scripts:
        place = os.path.join(folder, name)
        names = os.listdir(place) if os.path.isdir(place) and not os.path.islink(place) else []
        found[name] = {inside: content_of(os.path.join(place, inside), STORED_BYTES) for inside in names[:MOST_FILES]}
    return found


def tail(path):
    """The end of a log."""
    with open(path, "rb") as file:
        return file.read()[-TAIL:].decode("utf-8", "replace").strip()
