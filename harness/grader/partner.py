"""A process of the probe that has the workloads loaded: asked call by call, stopped while others are on turn.

The clock that counts runs here, around each request; what the process says of its own time is kept beside it.
"""

import collections
import os
import random
import time

from channel import Channel, ChannelFailed, make_pipes
from figures import median
from processes import Meter, delayed, newest_process
from stored import take_stored
from users import Trouble, cores_of_all, hand_over, wait_stopped

SLACK = 0.001
"""Seconds by which the clock inside may exceed the one outside."""
LATER = 30.0
"""How much longer than its limit a call may take to be given up inside."""
OVERHEAD, SPARE = 1.1, 0.2
"""A side may use at most so many times the time in which it was on turn, and seconds more: it has one core."""
ONE_CORE, MOMENT = 1.05, 0.0002
"""In a turn it may use so many times the turn's time, and seconds more: else it went to other cores and came back."""
AWAKE, AWAKE_PART = 0.05, 0.02
"""Processor seconds, and part of its time on turn, that a side may use while stopped: to stop takes a moment.

A stopped process can have itself woken by the kernel: a pipe or socket may send SIGCONT when something arrives.
"""
Draw = collections.namedtuple("Draw", "phase seeds")
"""What is drawn for a turn: the collector's phase, and of each call the number from which a script's data come."""
clock = time.perf_counter
_random = random.SystemRandom()


class Stumbled(Exception):
    """A side failed: its `role`; `final`: it did what no honest code does, so that it is not tried again.

    `asked`: (workload, numbers drawn) of the calls that it was to make; None before the first. `raised`: these are of a
    script, and one of them raised; else it may have died, or a test failed.
    """

    def __init__(self, role, message, final=False, asked=None, raised=False):
        Exception.__init__(self, message)
        self.role = role
        self.final = final
        self.asked = asked
        self.raised = raised


class SideProcess(object):
    """Implements the partner of `turns.alternate`, by a process that starts with `load`."""

    def __init__(self, launcher, role, folder, request, seconds):
        self._launcher = launcher
        self._side = launcher.sides[role]
        self._seconds = seconds
        self._request = request
        self._process = None
        self._scripts = frozenset(request["scripts"])
        self._meter, self._known = Meter(), []
        self._newest = None
        self._spared = 0.0
        self._went = clock()
        self._used = 0.0
        self.role = role
        self.folder = folder
        self.load_cpu = 0.0
        """Processor seconds until it was ready."""
        self.cpu = []
        """Processor seconds of its turns since the list was last emptied, from `go` until it was stopped."""
        self.wall = []
        """Seconds of these turns."""
        self.spared = []
        """Seconds of these turns that were not counted in answers, because others had the core."""
        self.results = []
        """(node, number drawn, files) of each call of a script, taken from the process right after the call."""
        self.seeds = {}
        """How many seeds the last call of a script took, as the process says."""
        self._calls, self._lasted, self._asked = 0, 0.0, None
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
        hand_over(self._process, self._request)
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
        self._know()
        self.cores |= cores_of_all(self._known)
        if not wait_stopped(self._known):
            raise self._stumbled("it runs on when it is stopped", final=True)

    def _know(self):
        self._newest, self._known = newest_process(), self._side.all()

    def go(self):
        """Lets it go on."""
        self.awake += self._meter.read(self._known) - self._used
        self._calls, self._spared = 0, 0.0
        self._went = clock()
        self._side.go()

    def stop(self):
        """Stops all of its processes."""
        self._side.stop()
        self.wall.append(clock() - self._went)
        self.on_turn += self.wall[-1]
        self.spared.append(self._spared)
        if self._newest is None or self._newest != newest_process():  # what was begun in this turn has worked, too
            self._know()
        used = self._meter.read(self._known)  # what it used since the last turn is in it
        self.cpu.append(used - self._used)
        self._used = used
        if self._side.meddled():
            raise self._stumbled("it slows down what stops it", final=True)

    def cool(self):
        """Forgets what its turns have taken, before those that count.

        Raises:
            Stumbled: one of its processes runs.
        """
        self.look()
        del self.cpu[:], self.wall[:], self.spared[:]

    def warm(self, node, calls, drawn):
        """So many whole calls: seconds of the first and of the last inside, of all outside, of the last with fixtures.

        The last of them does not count what others used of the core: a busy machine is no reason for fewer turns.
        """
        self._asked = node, drawn
        answer, outside = self._ask("warm", node, calls, *drawn)
        if node in self._scripts:
            self._take(node, *drawn)
        first, last, busy = (self._time(answer, name) for name in ("first", "seconds", "busy"))
        return first, last, outside, busy

    def call(self, node, draw):
        """One call: seconds inside, outside, and outside of all requests that belong to it."""
        self._asked = node, ()
        if node not in self._scripts:
            answer, outside = self._ask("call", node, draw.phase)
            return self._time(answer, "seconds"), outside, outside
        drawn = draw.seeds[self._calls]
        self._calls, self._asked = self._calls + 1, (node, (drawn,))
        _, before = self._ask("prepare", node, draw.phase, drawn)
        answer, outside = self._ask("run", node)
        seconds = self._time(answer, "seconds")
        done, after = self._ask("finish", node)
        self.seeds[node] = done.get("seeds")
        self._take(node, drawn)
        return seconds, outside, before + outside + after

    def calls(self, node, phase, count):
        """So many calls of a test in one turn: their seconds inside, and outside."""
        answer, outside = self._ask("turn", node, 0, [phase] * count)
        samples = answer.get("samples")
        if not isinstance(samples, list) or len(samples) != count:
            raise self._stumbled("it does not report a time of each call", final=True)
        return sum(self._time({"each": one}, "each") for one in samples), outside

    def fails(self, node):
        """Whether a test that must fail is said to."""
        return self._answer("call", node, 0.0)[0].get("outcome") == "failed"

    def _take(self, node, drawn):
        """Takes the result of the last call, before anything else is asked."""
        try:
            files = take_stored(self.folder, ("out", "results", node))
        except (OSError, ValueError) as error:
            raise self._stumbled("%s: its result cannot be read: %s" % (node, error), final=True)
        if not files:
            raise self._stumbled("%s: it stores no result" % node, final=True)
        self.results.append((node, drawn, files))

    def on_one_core(self, node):
        """Looks at whether its turns since `cool` fit on one core.

        Raises:
            Stumbled: most of them used more processor time than they lasted, or than others have left of them.
        """
        over = [used - ONE_CORE * wall - MOMENT for used, wall in zip(self.cpu, self.wall)]
        if median(over) > 0:
            said = "%s: a turn uses %.3g s more than one core has: other cores"
            raise self._stumbled(said % (node, median(over)), True)
        over = [more + spared for more, spared in zip(over, self.spared)]
        if median(over) > 0:
            said = "%s: in a turn it works for %.3g s of the time in which others are said to have the core"
            raise self._stumbled(said % (node, median(over)), True)

    def turns(self, calls):
        """Of its turns since `cool`: a call of each; seconds, less what others had of the core; that part of them.

        Others had no more than what the side has left: an answer may have spared a process that nobody knew yet.
        """
        rows = list(zip(self.wall, self.cpu, self.spared))
        others = [min(spared, max(0.0, wall - used)) for wall, used, spared in rows]
        worked = [spared - left for (_, _, spared), left in zip(rows, others)]
        calls = [(inside, run + more, whole + more) for (inside, run, whole), more in zip(calls, worked)]
        parts = [left / wall for (wall, _, _), left in zip(rows, others)]
        return calls, [wall - left for (wall, _, _), left in zip(rows, others)], parts

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
        answer, outside = self._answer(verb, node, *rest)
        if answer.get("outcome") != "passed":
            said = "%s: %s" % (node, str(answer.get("message") or answer.get("outcome"))[:500])
            raised = node in self._scripts and answer.get("outcome") == "failed"
            raise Stumbled(self.role, said, asked=self._asked, raised=raised)
        return answer, outside

    def _answer(self, verb, node, *rest):
        """An answer, and the seconds until it came, less those for which others had the core."""
        token = "%016x" % _random.getrandbits(64)
        limit = self._request["test_timeout"] + LATER
        used, waited = self._meter.read(self._known), delayed(self._known + [os.getpid()])
        try:
            answer, outside = self._channel.ask(limit, verb, node, *(rest + ({"token": token},)))
        except ChannelFailed as error:
            gone = error.late or not self._alive()
            raise Stumbled(self.role, "%s: %s%s" % (node, error, self._end()), final=not gone, asked=self._asked)
        if answer.get("token") != token:
            raise self._stumbled("%s: an answer to another question" % node, final=True)
        self._lasted = outside
        # what others had of the core: time in which none of its own processes used it, though one was ready, or we were
        idle = outside - (self._meter.read(self._known) - used)
        spared = max(0.0, min(idle, delayed(self._known + [os.getpid()]) - waited))
        self._spared += spared
        return answer, outside - spared

    def _time(self, answer, name):
        """Seconds that the last answer reports, which must fit into those that it took to come."""
        value = answer.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= self._lasted + SLACK:
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

    def _end(self):
        """How it has ended, and its last words; empty while it is alive."""
        ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return ""
        how = "exit status" if ended.si_code == os.CLD_EXITED else "signal"
        return " (%s %d)\n%s" % (how, ended.si_status, self._said())

    def _said(self):
        with open(os.path.join(self.folder, "log"), "rb") as file:
            return file.read()[-1000:].decode("utf-8", "replace").strip()
