"""Runs items when asked to: base and head are loaded side by side and take turns (mode 'turns').

Requests are lines of the pipe `channel.ask`, answers lines of `channel.answer`, JSON both. The first answer is
{"ready": {node: kind}}; requests are

- ["warm", node, calls]: whole calls; what exists after them is settled;
- ["call", node, phase]: one whole call;
- ["turn", node, untimed, phases]: so many whole calls that are not timed, then one for each phase;
- ["prepare", node, phase], ["run", node], ["finish", node]: the same call of a script in three parts, so that the
  clock outside sees `experiment` alone: what comes before it (data, the collector) belongs to the first part;
- ["end"].

A last number of "warm", "call" and "prepare" is the draw of a script's data (`perfquarry_scripts.LoadedScript.drawn`).

An answer is {"outcome", "message", "seconds": of the timed part of the last call}, that of "warm" has "first", the
same of the first call, and "busy", seconds of the whole last call, fixtures included; that of "turn" has "samples", the
seconds of its timed calls; of a script, "seeds" says how many seeds its last call took. `phase`,
in [0, 1), is the part of the collector's threshold that containers made before the call use up. A request may end
with an object: what is in it is repeated in the answer, so that no answer fits before its question is known.
Standard library, Python 3.6 to 3.14.
"""

from perfquarry_items import (
    THRESHOLDS,
    Loop,
    OwnTime,
    clock,
    collect_garbage,
    dumps,
    freeze,
    getpid,
    leave,
    loads,
    name_of,
    open_file,
    settle,
)
from perfquarry_tests import unwind


class Phased(object):
    """The part of a mode that draws the phase of the garbage collector."""

    _phase = 0.0
    _held = None
    _ready = False
    _began = _lasted = 0.0

    def start(self):
        """Before the first call."""
        settle()

    def draw(self, phase):
        """Sets the phase of the calls from now on."""
        self._phase = phase

    def renew(self):
        """Before the warm-ups of an item: an alteration looks for functions that were loaded meanwhile."""

    def make_ready(self):
        """Before a call: nothing young is left but so many containers."""
        collect_garbage(self._lasted)
        self._held = [[] for _ in range(int(self._phase * max(THRESHOLDS[0], 1)))]
        self._ready = True

    def before(self):
        """Right before each call."""
        if not self._ready:
            self.make_ready()
        self._ready = False
        self._began = clock()

    def after(self):
        """Right after each call."""
        self._lasted = clock() - self._began
        self._held = None


class Turning(Loop):
    """The items of one process, run as requests come."""

    _test = None

    def run(self, tests):
        """Loads the scripts, says what there is, and obeys until the end."""
        self.ran = True
        items = {name_of(one): one for one in tests + self._scripts}
        for script in self._scripts:
            self._current = script.nodeid
            script.load(self)
        self._current = None
        self.mode.start()
        owner = getpid()
        channel = self.request["channel"]
        with open_file(channel["ask"]) as requests, open_file(channel["answer"], "w") as answers:
            answer = {"ready": {node: "test" if one in tests else "script" for node, one in items.items()}}
            while True:
                if getpid() != owner:  # a test forked, and its child came back here
                    leave(0)
                answers.write(dumps(answer) + "\n")
                answers.flush()
                words = loads(requests.readline() or '["end"]')
                if words[0] == "end":
                    break
                repeated = words.pop() if isinstance(words[-1], dict) else {}
                answer = dict(self._obey(words[0], items[words[1]], *words[2:]), **repeated)
        self._leave_fixtures(None)

    def _obey(self, verb, item, *rest):
        self._current = item.nodeid
        self._leave_fixtures(item)
        if freeze and verb in BEGINNINGS:
            settle()  # calls may keep ever more, as caches do, which each collection before a call would look at
        if verb == "warm":
            return self._warm(item, *rest)
        if verb == "turn":
            return self._turn(item, *rest)
        if rest:
            self.mode.draw(rest[0])
            item.drawn = rest[1] if rest[1:] else None
        if verb == "call":
            return answer_of(item.execute(item))
        done = item.step(getattr(item, PARTS[verb]))
        if verb == "prepare":
            self.mode.make_ready()
        return dict(answer_of(done), seeds=item.seeds)

    def _turn(self, item, untimed, phases):
        item.drawn, samples = None, []
        for phase in [phases[0]] * untimed + phases:
            self.mode.draw(phase)
            done = item.execute(item)
            if done[0] != "passed":
                return answer_of(done)
            samples.append(done[2])
        return dict(answer_of(done), samples=samples[untimed:])

    def _warm(self, item, calls, drawn=None):
        item.drawn = drawn
        self.mode.draw(0.0)
        self.mode.renew()
        answer = {}
        for _ in range(calls):
            first = answer.get("first")
            own = OwnTime()
            done = item.execute(item)
            answer = dict(answer_of(done), busy=max(own.seconds(), done[2]))
            answer["first"] = answer["seconds"] if first is None else first
            if answer["outcome"] != "passed":
                break
        if freeze or calls == 1:  # where nothing settles each time looks at everything
            settle()
        return answer

    def _leave_fixtures(self, item):
        """Tears down what the test before does not share with this one."""
        before, self._test = self._test, item if hasattr(item, "_session") else None
        if before is not None and before is not item:
            unwind(before._session, self._test and self._test._item)


PARTS = {"prepare": "prepare", "run": "call", "finish": "finish"}
BEGINNINGS = ("warm", "turn", "call", "prepare")


def answer_of(done):
    """An answer of what `execute` or `step` returned."""
    outcome, message, seconds = done
    return {"outcome": outcome, "message": message, "seconds": seconds}
