"""Records the arguments of calls while tests run: the probe's mode 'record'.

Each test runs twice. The first run finds, for each call of a changed function, the public
functions of the tree through which it was called. The second describes the arguments of calls to
those before they run, and keeps the calls during which a changed line was executed.

Python 3.6 to 3.14, standard library only.
"""

import dis
import hashlib
import json
import sys
import threading
from collections.abc import Awaitable, Iterator

from perfquarry_describe import Unsupported, home_of
from perfquarry_functions import Functions, arguments_of, first_of, is_mixin
from perfquarry_histories import Histories
from perfquarry_items import Mode
from perfquarry_limits import TimeLimit, clock
from perfquarry_view import View, text_of

set_profile, set_trace = sys.setprofile, sys.settrace

LEVELS = 3  # public callers of a changed function that are recorded, nearest first
REASONS = 500
REASON_CHARACTERS = 300
LEAVING = ("RETURN_", "YIELD_", "SEND")  # names of the operations that leave a frame with a value


class Call(object):
    """A call under way."""

    def __init__(self, frame, function, first, arguments, described):
        self.frame, self.function, self.arguments, self.described = frame, function, arguments, described
        self.made = first if function.kind == "init" else None
        self.hits = set()


class RecordMode(Mode):
    """Calls with their arguments, and why others could not be recorded."""

    def __init__(self, request, names):
        Mode.__init__(self, request)
        self.wanted = request["record"]
        self.functions = Functions(request["tree"], names, self.wanted["test_files"])
        self.histories = Histories(self.functions, self.wanted["values"])
        self.changed = set(self.wanted["functions"])
        self.lines = {}  # by code: changed lines of a changed function
        self.candidates = {}  # by code: level
        self.saved, self.unsaved, self.seen, self.taken = {}, {}, set(), {}
        self.limits = [TimeLimit(self.wanted["seconds"])]  # of all tests, then of one
        self.due = self.limits[0].due
        self.active, self.opened, self.found, self.touched = None, [], False, False

    def setup(self, item):
        """Begins to watch: fixtures make instances, too."""
        if self.active and not self.limits[0].is_over():
            self.thread = threading.current_thread()
            set_profile(self.active)
            set_trace(self.trace)

    def teardown(self, item):
        """Watches no more."""
        set_trace(None)
        set_profile(None)

    def run(self, item, execute, left):
        """One test, twice if it calls what changed."""
        self.node, self.found, self.touched, self.active = item.nodeid, False, False, self.discover
        self.limit_test()
        try:
            outcome, message, seconds = execute(item)
            if outcome == "passed" and self.found and self.touched:
                self.opened, self.taken, self.active = [], {}, self.capture
                self.histories.forget()
                self.limit_test()
                before = {name: list(some) for name, some in self.saved.items()}
                if execute(item)[0] != "passed":
                    self.saved = before
                    self.miss("", "the test does not pass while it is recorded")
        finally:
            self.teardown(item)
            self.active = None
            self.histories.forget()
        return {"outcome": outcome, "message": message, "seconds": seconds}

    def limit_test(self):
        """Begins the time of one run of one test."""
        self.limits[1:] = [TimeLimit(self.wanted["test_seconds"])]
        self.due = min(limit.due for limit in self.limits)

    def finish(self, journal):
        """Reports what was recorded, and why what was not."""
        for calls in self.saved.values():
            for call in calls:
                journal.write(recorded=call)
        for (name, why), count in sorted(self.unsaved.items()):
            journal.write(unrecorded={"function": name[:500], "reason": why, "count": count})

    def miss(self, name, why):
        """Counts what was not recorded."""
        key = name, why[:REASON_CHARACTERS].encode("utf-8", "replace").decode("utf-8")
        if key in self.unsaved or len(self.unsaved) < REASONS:
            self.unsaved[key] = self.unsaved.get(key, 0) + 1

    # the first run

    def discover(self, frame, event, argument):
        """Profile function: finds the public functions through which changed ones are called."""
        if event != "call":
            return
        if clock() > self.due and self.is_late():  # what was found so far is recorded
            self.teardown(None)
            return
        function = self.functions.of(frame)
        if function is None or function.name not in self.changed:
            return
        if function.private and not function.why:  # itself, where no public one around it will do
            self.candidates.setdefault(frame.f_code, LEVELS)
            self.found = True
        level = 0
        while frame is not None and level < LEVELS:
            function = self.functions.of(frame)
            if function is None and not is_mixin(frame):
                break
            if function is not None and function.why:
                self.miss(function.name, function.why)
            elif function is not None and not function.private:
                self.candidates[frame.f_code] = min(level, self.candidates.get(frame.f_code, LEVELS))
                self.found = True
                level += 1
            frame = frame.f_back

    # the second run

    def trace(self, frame, event, argument):
        """Trace function: lines only in changed functions."""
        function = self.functions.of(frame)
        if function is None or function.name not in self.changed:
            return None
        lines = self.lines_of(frame.f_code, function)
        if not lines:
            self.hit(function.name, 0)
            return None

        def lined(frame, event, argument):
            if event == "line" and frame.f_lineno in lines:
                self.hit(function.name, frame.f_lineno)
            return lined

        return lined

    def hit(self, name, line):
        """A changed line was executed."""
        self.touched = True
        for call in self.opened:
            call.hits.add((name, line))

    def lines_of(self, code, function):
        """Changed lines of a function; none where the base has none: then any call of it counts."""
        if code not in self.lines:
            wanted = set(self.wanted["lines"].get(function.name.partition("::")[0], ()))
            waiting, found = [code], set()
            while waiting:
                one = waiting.pop()
                found.update(line for _, line in dis.findlinestarts(one))
                waiting += [inner for inner in one.co_consts if hasattr(inner, "co_code")]
            self.lines[code] = found & wanted
        return self.lines[code]

    def capture(self, frame, event, argument):
        """Profile function: describes arguments before calls, and looks at what became of them after."""
        if event == "return" and self.opened and self.opened[-1].frame is frame:
            call = self.opened.pop()
            if argument is None and has_raised(frame):
                self.miss(call.function.name, "the call raised while it was recorded")
            else:
                self.close(call, argument)
        if event != "call" or threading.current_thread() is not self.thread:
            return
        function = self.functions.of(frame)
        if function is None and not is_mixin(frame) and frame.f_code.co_name != "__init__":
            return
        if clock() > self.due and self.is_late():
            self.teardown(None)
            self.miss("", "the time for recording is over")
            return
        first = first_of(frame)
        if function is not None and frame.f_code in self.candidates:
            try:
                self.open(frame, function, first)
            except Unsupported as error:
                self.miss(function.name, str(error))
        if first is not None:
            self.histories.see(frame, first)

    def is_late(self):
        """Whether a time limit is over, by more than the seconds for which others had the processors."""
        over = [limit for limit in self.limits if limit.is_over()]
        self.due = min(limit.due for limit in self.limits)
        return bool(over)

    def open(self, frame, function, first):
        """Begins a call, unless it is one like others.

        Raises:
            Unsupported: its arguments cannot be described.
        """
        enough = len(self.saved.get(function.name, ())) >= self.wanted["calls"]
        if enough or self.taken.get(function.name, 0) >= self.wanted["test_calls"]:
            return
        if any(one.frame.f_code is frame.f_code for one in self.opened):
            return
        bound = function.kind in ("class", "init")
        if (bound or function.kind in ("method", "property")) and self.histories.is_inside(frame.f_back, first):
            return
        try:
            positional, named = arguments_of(frame, function)
            positional = positional[1:] if bound else positional
            describer = self.histories.describer()
            described = {"module": function.module, "path": list(function.path), "kind": function.kind}
            described["positional"] = describer.items(positional)
            described["named"] = {name: describer.of(one) for name, one in named.items()}
        except Unsupported:
            raise
        except Exception as error:  # of a property or method of the value under test
            raise Unsupported("%s while its arguments were read" % type(error).__name__)
        if bound:
            described.update(class_of(first, function))
        text = json.dumps(described, sort_keys=True)
        if len(text) > self.wanted["bytes"]:
            raise Unsupported("the arguments are too large")
        key = hashlib.sha1((function.name + text).encode()).hexdigest()
        if key not in self.seen:
            self.seen.add(key)
            self.opened.append(Call(frame, function, first, positional, described))
            if function.name in self.changed and not self.lines_of(frame.f_code, function):
                self.hit(function.name, 0)  # the trace function came before this one

    def close(self, call, result):
        """Keeps a call that executed a changed line."""
        name = call.function.name
        result = result if call.made is None else call.made
        if not call.hits:
            self.miss(name, "calls that execute no changed line")
        elif isinstance(result, Awaitable) or (hasattr(type(result), "__enter__") and call.made is None):
            self.miss(name, "it returns an awaitable or a context manager")
        else:
            lazy = isinstance(result, Iterator)
            try:
                digest = "" if lazy else digest_of(result, call.arguments)
            except Exception as error:
                self.miss(name, "its outcome cannot be compared: %s" % error)
                return
            level, hits = self.candidates[call.frame.f_code], sorted(map(list, call.hits))
            more = {"function": name, "level": level, "lazy": lazy, "digest": digest, "hits": hits, "node": self.node}
            self.saved.setdefault(name, []).append(dict(call.described, **more))
            self.taken[name] = self.taken.get(name, 0) + 1


def has_raised(frame):
    """Whether a frame that ends with None was left by an exception: profilers see both as a return."""
    return not dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith(LEAVING)


def class_of(first, function):
    """Module and path of a constructor or class method, on the class that it was called on.

    Raises:
        Unsupported: the class cannot be imported.
    """
    kind = first if isinstance(first, type) else type(first)
    home = home_of(kind, kind.__qualname__)
    if home is None:
        raise Unsupported("its class cannot be imported")
    return {"module": home, "path": [kind.__qualname__] + [function.path[-1]] * (function.kind == "class")}


def digest_of(result, arguments):
    """Of the view of an outcome, as scripts that check it compute it."""
    view = View()
    seen = text_of([view.of(result), [view.of(one) for one in arguments]])
    return hashlib.sha256(seen.encode()).hexdigest()
