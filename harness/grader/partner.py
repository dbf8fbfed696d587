"""A process of the probe that has the workloads loaded: asked call by call, stopped while others are on turn.

The clock that counts runs here, around each request; what the process says of its own time is kept beside it.
"""

import json
import os
import random
import time

from channel import Channel, ChannelFailed, make_pipes
from processes import Meter
from users import Trouble, cores_of_all, wait_stopped

SLACK = 0.001
"""Seconds by which the clock inside may exceed the one outside."""
LATER = 30.0
"""How much longer than its limit a call may take to be given up inside."""
OVERHEAD, SPARE = 1.1, 0.2
"""A side may use at most so many times the time in which it was on turn, and seconds more: it has one core."""
AWAKE, AWAKE_PART = 0.05, 0.02
"""Processor seconds, and part of its time on turn, that a side may use while stopped: to stop takes a moment.

A stopped process can have itself woken by the kernel: a pipe or socket may send SIGCONT when something arrives.
"""
clock = time.perf_counter
_random = random.SystemRandom()


class Stumbled(Exception):
    """A side failed: its `role`; `final`: it did what no honest code does, so that it is not tried again."""

    def __init__(self, role, message, final=False):
        Exception.__init__(self, message)
        self.role = role
        self.final = final


class Partner(object):
    """Implements the partner of `turns.alternate`, by a process that starts with `load`."""

    def __init__(self, launcher, role, folder, request, seconds):
        self._launcher = launcher
        self._side = launcher.sides[role]
        self._seconds = seconds
        self._request = request
        self._process = None
        self._scripts = frozenset(request["scripts"])
        self._meter, self._known = Meter(), []
        self._went = clock()
        self._used = 0.0
        self.role = role
        self.folder = folder
        self.store = request["store"]
        self.load_cpu = 0.0
        """Processor seconds until it was ready."""
        self.cpu = []
        """Processor seconds of its turns since the list was last emptied, from `go` until it was stopped."""
        self.on_turn = 0.0
        self.awake = 0.0
        """Processor seconds that it has used while it was stopped."""
        self.cores = set()
        """Cores that it was seen to be allowed."""
        ask, answer = (request["channel"][name] for name in ("ask", "answer"))
        make_pipes(ask, answer)
        self._channel = Channel(ask, answer, self._alive)

    def load(self):
        """Starts it, waits until its workloads are loaded, and stops it."""
        self._went = clock()
        self._process = self._launcher.start(self.role, self.folder, self._request)
        try:
            with self._process.stdin:
                self._process.stdin.write(json.dumps(self._request).encode())
        except BrokenPipeError:
            pass
        try:
            answer = self._channel.receive(self._seconds)
        except ChannelFailed as error:
            raise self._stumbled("%s while it was loaded: %s" % (error, self._said()))
        if "ready" not in answer:
            raise self._stumbled("it answers before it is asked", final=True)
        self.stop()
        self.look()
        self.load_cpu, self.cpu, self.awake = self._meter.read(self._known), [], 0.0
        self._used = self.load_cpu

    def look(self):
        """Looks for all of its processes, those included that have left its tree; all are stopped.

        Raises:
            Stumbled: one of them runs.
        """
        self._known = self._side.all()
        self.cores |= cores_of_all(self._known)
        if not wait_stopped(self._known):
            raise self._stumbled("it runs on when it is stopped", final=True)

    def go(self):
        """Lets it go on."""
        self.awake += self._meter.read(self._known) - self._used
        self._went = clock()
        self._side.go()

    def stop(self):
        """Stops all of its processes."""
        self._side.stop()
        self.on_turn += clock() - self._went
        used = self._meter.read(self._known)  # what it used since the last turn is in it
        self.cpu.append(used - self._used)
        self._used = used
        if self._side.meddled():
            raise self._stumbled("it slows down what stops it", final=True)

    def warm(self, node, calls):
        """So many whole calls: seconds of the first and of the last inside, of all outside, of the last with fixtures.

        The last of them does not count what others used of the core: a busy machine is no reason for fewer turns.
        """
        answer, outside = self._ask("warm", node, calls)
        first, last, busy = (self._time(answer, name, outside) for name in ("first", "seconds", "busy"))
        return first, last, outside, busy

    def call(self, node, phase):
        """One call: seconds inside, outside, and outside from the first request to the last answer."""
        begin = clock()
        if node not in self._scripts:
            answer, outside = self._ask("call", node, phase)
            return self._time(answer, "seconds", outside), outside, clock() - begin
        self._ask("prepare", node, phase)
        answer, outside = self._ask("run", node)
        self._ask("finish", node)
        return self._time(answer, "seconds", outside), outside, clock() - begin

    def turn(self, node, untimed, drawn):
        """Its calls, asked for one by one: what each of the timed ones returned."""
        for _ in range(untimed):
            self.call(node, drawn[0])
        return [self.call(node, phase) for phase in drawn]

    def check(self, used):
        """Looks at what it has used in all, once it is dead (`Launcher.reap`).

        Raises:
            Stumbled: more than one core could give it while it was on turn, or much while it was stopped.
        """
        if self.awake > AWAKE + AWAKE_PART * self.on_turn:
            raise self._stumbled("it worked for %.3g s while it was stopped" % self.awake, final=True)
        seconds = used.get(self._side.uid or self._process.pid, 0.0)
        if seconds > self.on_turn * OVERHEAD + SPARE:
            message = "it used %.3g s of processors within the %.3g s of its turns" % (seconds, self.on_turn)
            raise self._stumbled(message, final=True)

    def close(self):
        """Closes our ends of its pipes; it must be dead."""
        self._channel.close()
        if self._process is not None and self._process.returncode is None:
            self._process.returncode = -9

    def _ask(self, verb, node, *rest):
        token = "%016x" % _random.getrandbits(64)
        limit = self._request["test_timeout"] + LATER
        try:
            answer, outside = self._channel.ask(limit, verb, node, *(rest + ({"token": token},)))
        except ChannelFailed as error:
            gone = error.late or not self._alive()
            raise self._stumbled("%s: %s" % (node, error), final=not gone)
        if answer.get("token") != token:
            raise self._stumbled("%s: an answer to another question" % node, final=True)
        if answer.get("outcome") != "passed":
            raise self._stumbled("%s: %s" % (node, str(answer.get("message") or answer.get("outcome"))[:500]))
        return answer, outside

    def _time(self, answer, name, outside):
        value = answer.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= outside + SLACK:
            raise self._stumbled("its times do not fit into the time outside: %r" % (value,), final=True)
        return float(value)

    def _stumbled(self, message, final=False):
        return Stumbled(self.role, message, final)

    def _alive(self):
        if self._process is None:
            return False
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:
            raise Trouble("a process of %s is gone" % self.role)

    def _said(self):
        with open(os.path.join(self.folder, "log"), "rb") as file:
            return file.read()[-1000:].decode("utf-8", "replace").strip()
