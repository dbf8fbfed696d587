"""Records the arguments of calls while tests run: the probe's mode 'record'.

Each test runs twice. The first run finds, for each call of a changed function, the public
functions of the tree through which it was called. The second describes the arguments of calls to
those before they run, and keeps the calls during which a changed line was executed. How
instances came to be what they are is recorded all the while: arguments of constructors, and calls
from outside of what may change them.

Python 3.6 to 3.14, standard library only.
"""

import dis
import fnmatch
import hashlib
import inspect
import json
import os
import sys
import threading
import time
from collections.abc import Awaitable, Iterator

from perfquarry_describe import Describer, Unsupported, home_of
from perfquarry_view import View, text_of

clock = time.perf_counter
set_profile, set_trace = sys.setprofile, sys.settrace

LEVELS = 3  # public callers of a changed function that are recorded, nearest first
HISTORY = 200  # calls on one instance
TRACKED = 4000  # instances of one test
LAZY = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE
MIXINS = ("_collections_abc", "collections.abc", "collections")  # whose methods belong to the class that inherits them
READING = frozenset(
    "__%s__" % name
    for name in "len iter contains getitem eq ne lt le gt ge hash repr str bool reversed getattr getattribute "
    "enter exit init new del reduce reduce_ex getstate setstate sizeof format dir missing class_getitem "
    "init_subclass instancecheck subclasscheck add sub mul and or xor copy deepcopy".split()
)


class Function(object):
    """A function of the tree as it can be called from outside."""

    def __init__(self, name, module="", path=(), kind="", why=""):
        self.name = name  # path::Class.method
        self.module, self.path, self.kind, self.why = module, path, kind, why
        self.defaults, self.levels = {}, LEVELS

    @property
    def is_public(self):
        return not self.why


class Track(object):
    """What happened to one instance."""

    def __init__(self, value):
        self.value, self.made, self.calls, self.size, self.broken = value, None, [], 0, ""


class Open(object):
    """A call under way."""

    def __init__(self, frame, function, described, arguments, key):
        self.frame, self.function, self.described = frame, function, described
        self.arguments, self.key, self.hits, self.made = arguments, key, set(), None


class Record(object):
    """A mode of the probe; see `probe.Mode`."""

    def __init__(self, request, names):
        self.tree = os.path.realpath(request["tree"])
        self.wanted = request["record"]
        self.names = names
        self.changed = set(self.wanted["functions"])
        self.functions = {}  # by code: Function, or None for what is not the package's
        self.lines = {}  # by code: changed lines of a changed function
        self.methods = {}
        self.candidates = {}  # by code: level
        self.saved, self.unsaved, self.seen, self.taken = {}, {}, set(), {}
        self.deadline = clock() + self.wanted["seconds"]
        self.node, self.active, self.opened, self.tracks, self.found = "", None, [], {}, False

    def start(self):
        pass

    def before(self):
        pass

    def after(self):
        pass

    def setup(self, item):
        if clock() < self.deadline and self.active:
            set_profile(self.active)
            if self.active == self.capture:
                set_trace(self.trace)

    def teardown(self, item):
        set_trace(None)
        set_profile(None)

    def run(self, item, execute, left):
        self.node = item.nodeid.replace("::()", "")
        self.thread = threading.current_thread()
        self.found, self.active = False, self.discover
        try:
            outcome, message, seconds = execute(item)
            if outcome == "passed" and self.found:
                self.opened, self.tracks, self.active, self.taken = [], {}, self.capture, {}
                limit = clock() + self.wanted["test_seconds"]
                self.stop, before = min(limit, self.deadline), {name: list(some) for name, some in self.saved.items()}
                again = execute(item)
                if again[0] != "passed":
                    self.saved = before
                    self.miss("", "the test does not pass while it is recorded")
        finally:
            self.teardown(item)
            self.active, self.tracks = None, {}
        return {"outcome": outcome, "message": message, "seconds": seconds}

    def finish(self, journal):
        for calls in self.saved.values():
            for call in calls:
                journal.write(recorded=call)
        for (name, why), count in sorted(self.unsaved.items()):
            journal.write(unrecorded={"function": name, "reason": why, "count": count})

    def miss(self, name, why):
        key = name, why
        if key in self.unsaved or len(self.unsaved) < 500:
            self.unsaved[key] = self.unsaved.get(key, 0) + 1

    # the first run

    def discover(self, frame, event, argument):
        """Profile function: finds the public functions through which changed ones are called."""
        if event != "call":
            return
        function = self.function_of(frame)
        if function is None or function.name not in self.changed:
            return
        level, last = 0, ""
        while frame is not None and level < LEVELS:
            function = self.function_of(frame)
            if function is None and not self.is_mixin(frame):
                break
            if function is not None and not function.is_public:
                last = function.why
                self.miss(function.name, function.why)
            elif function is not None:
                self.candidates[frame.f_code] = min(level, self.candidates.get(frame.f_code, LEVELS))
                self.found = True
                level += 1
            frame = frame.f_back

    def is_mixin(self, frame):
        return frame.f_globals.get("__name__") in MIXINS

    def function_of(self, frame):
        """The package's function that a frame runs; None for tests and what is outside of the tree."""
        code = frame.f_code
        if code not in self.functions:
            self.functions[code] = self.describe_function(frame, code)
        return self.functions[code]

    def is_source(self, path):
        inside = os.path.relpath(os.path.realpath(path), self.tree)
        if inside.startswith(os.pardir) or os.path.isabs(inside):
            return None
        *folders, name = inside.split(os.sep)
        tests = name == "conftest.py" or any(fnmatch.fnmatchcase(name, one) for one in self.wanted["test_files"])
        return None if tests or {"test", "tests"} & set(folders) else inside.replace(os.sep, "/")

    def describe_function(self, frame, code):
        if code.co_filename.startswith("<") or not self.is_source(code.co_filename):
            return None
        name = self.names.of(code.co_filename, code.co_firstlineno)
        if name is None:
            return Function(self.is_source(code.co_filename) + "::" + code.co_name, why="it has no name of its own")
        name = name.replace(os.sep, "/")
        path = name.partition("::")[2].split(".")
        module = frame.f_globals.get("__name__", "")
        if code.co_flags & LAZY:
            return Function(name, why="it is a generator or coroutine")
        if any(part.startswith("_") and not (part.startswith("__") and part.endswith("__")) for part in path):
            return Function(name, why="it is private")
        return self.resolve(Function(name, module, tuple(path)), code)

    def resolve(self, function, code):
        """Fills in how to call it, or why it cannot be called by its name."""
        loaded = sys.modules.get(function.module)
        owner, held = None, loaded
        for part in function.path:
            owner, held = held, vars(held).get(part) if hasattr(held, "__dict__") else None
        top = getattr(loaded, function.path[0], None)
        function.module = home_of(top, function.path[0]) if top is not None else None
        function.kind = {staticmethod: "static", classmethod: "class", property: "property"}.get(
            type(held), "method" if isinstance(owner, type) else "function"
        )
        if function.path[-1] in ("__init__", "__new__"):
            function.kind = "init"
        inner = held.fget if isinstance(held, property) else getattr(held, "__func__", held)
        while getattr(inner, "__code__", None) is not code and hasattr(inner, "__wrapped__"):
            inner = inner.__wrapped__
        if function.module is None:
            function.why = "its module is private"
        elif function.path[-1] == "__new__":
            function.why = "it is a constructor without arguments of its own"
        elif getattr(inner, "__code__", None) is not code:
            function.why = "it cannot be called by its name"
        else:
            names, values = code.co_varnames[: code.co_argcount], inner.__defaults__ or ()
            function.defaults = dict(zip(names[len(names) - len(values) :], values), **(inner.__kwdefaults__ or {}))
        return function

    # the second run

    def trace(self, frame, event, argument):
        """Trace function: lines only in changed functions."""
        function = self.functions.get(frame.f_code)
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
        if event == "return":
            if self.opened and self.opened[-1].frame is frame:
                self.close(self.opened.pop(), argument)
            return
        if event != "call" or threading.current_thread() is not self.thread:
            return
        code = frame.f_code
        function = self.function_of(frame)
        if function is None and not self.is_mixin(frame) and code.co_name != "__init__":
            return
        if clock() > self.stop:
            self.teardown(None)
            return self.miss("", "the time for recording is over")
        first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        if (
            function is not None
            and code in self.candidates
            and not any(one.frame.f_code is code for one in self.opened)
        ):
            self.open(frame, function, first)
        if first is not None:
            self.track(frame, code, first)

    def describer(self):
        return Describer(self.tracks, self.is_own, self.wanted["values"])

    def is_own(self, kind):
        module = sys.modules.get(kind.__module__)
        path = getattr(module, "__file__", None)
        return bool(path) and self.is_source(path) is not None

    def open(self, frame, function, first):
        """Begins a call, unless it is one like others or cannot be described."""
        saved, taken = self.saved.get(function.name, ()), self.taken.get(function.name, 0)
        if len(saved) >= self.wanted["calls"] or taken >= self.wanted["test_calls"]:
            return
        if function.kind not in ("function", "static") and self.is_inside(frame.f_back, first):
            return
        try:
            positional, named = arguments_of(frame, function)
            describer = self.describer()
            if function.kind in ("class", "init"):
                positional = positional[1:]
            described = [describer.items(positional), {name: describer.of(one) for name, one in named.items()}]
        except Unsupported as error:
            return self.miss(function.name, str(error))
        except Exception as error:  # a property or method of the value under test
            return self.miss(function.name, "%s while its arguments were read" % type(error).__name__)
        owner = None
        if function.kind in ("class", "init"):
            kind = first if isinstance(first, type) else type(first)
            if home_of(kind, kind.__qualname__) is None:
                return self.miss(function.name, "its class cannot be imported")
            owner = [home_of(kind, kind.__qualname__), kind.__qualname__]
        text = json.dumps([owner, described], sort_keys=True)
        if len(text) > self.wanted["bytes"]:
            return self.miss(function.name, "the arguments are too large")
        key = hashlib.sha1((function.name + text).encode()).hexdigest()
        if key not in self.seen:
            self.seen.add(key)
            self.opened.append(Open(frame, function, (owner, described), positional, key))
            self.opened[-1].made = first if function.kind == "init" else None
            if function.name in self.changed and not self.lines_of(frame.f_code, function):
                self.hit(function.name, 0)  # the trace function comes before this one

    def is_inside(self, frame, first):
        """Whether an instance's own code is calling: then what was done to it is not all in its history."""
        for _ in range(40):
            if frame is None:
                return False
            code = frame.f_code
            if code.co_argcount and (self.functions.get(code) or self.is_mixin(frame)):
                if frame.f_locals.get(code.co_varnames[0]) is first and not isinstance(first, (str, bytes, int)):
                    return True
            frame = frame.f_back
        return False

    def close(self, call, result):
        """Keeps a call that executed a changed line."""
        function = call.function
        result = result if call.made is None else call.made
        if not call.hits:
            return self.miss(function.name, "calls that execute no changed line")
        if isinstance(result, Awaitable) or hasattr(type(result), "__enter__"):
            return self.miss(function.name, "it returns an awaitable or a context manager")
        lazy = isinstance(result, Iterator)
        digest = ""
        try:
            if not lazy:
                view = View()
                seen = [view.of(result), [view.of(one) for one in call.arguments]]
                digest = hashlib.sha256(text_of(seen).encode()).hexdigest()
        except Exception as error:
            return self.miss(function.name, "its outcome cannot be compared: %s" % error)
        owner, (positional, named) = call.described
        self.saved.setdefault(function.name, []).append(
            {
                "function": function.name,
                "module": owner[0] if owner else function.module,
                "path": [owner[1]] + [function.path[-1]] * (function.kind == "class") if owner else list(function.path),
                "kind": function.kind,
                "level": self.candidates[call.frame.f_code],
                "positional": positional,
                "named": named,
                "lazy": lazy,
                "digest": digest,
                "hits": sorted(map(list, call.hits)),
                "node": self.node,
            }
        )
        self.taken[function.name] = self.taken.get(function.name, 0) + 1

    # what happens to instances

    def track(self, frame, code, first):
        if code.co_name == "__init__":
            if id(first) in self.tracks or not self.is_own(type(first)) or len(self.tracks) >= TRACKED:
                return
            track = self.tracks[id(first)] = Track(first)
            self.note(track, lambda: self.told(frame, code))
            return
        track = self.tracks.get(id(first))
        if track is None or track.value is not first or track.broken or code.co_name in READING:
            return
        if self.is_inside(frame.f_back, first):
            return
        kind = self.kind_of(type(first), code)
        if kind == "setter":
            track.broken = "its attributes were set"
        elif kind == "method":
            self.note(track, lambda: self.told(frame, code), code.co_name)

    def note(self, track, told, name=None):
        try:
            described, size = told()
        except Exception as error:
            track.broken = str(error) or type(error).__name__
            return
        if name is None:
            track.made = described
        else:
            track.calls.append([name] + described)
        track.size += size
        if len(track.calls) > HISTORY or track.size > self.wanted["values"]:
            track.broken = "its history is too long"

    def told(self, frame, code):
        describer = self.describer()
        positional, named = arguments_of(frame, self.function_of(frame))
        described = [describer.items(positional[1:]), {name: describer.of(one) for name, one in named.items()}]
        return described, self.wanted["values"] - describer.left + 1

    def kind_of(self, kind, code):
        """'method' for what is called on instances by a public name, 'setter' for what an assignment calls, else ''."""
        key = kind, code
        if key not in self.methods:
            held = inspect.getattr_static(kind, code.co_name, None)
            if isinstance(held, property):
                known = "setter" if held.fset is not None and held.fset.__code__ is code else ""
            elif code.co_flags & LAZY or (code.co_name.startswith("_") and not code.co_name.endswith("__")):
                known = ""
            else:
                known = "method" if callable(held) else ""
            self.methods[key] = known
        return self.methods[key]


def arguments_of(frame, function):
    """Positional and named arguments of a call that begins, without trailing ones that are the defaults."""
    code, values = frame.f_code, frame.f_locals
    names = code.co_varnames
    count, only = code.co_argcount, code.co_kwonlyargcount
    positional = [values[name] for name in names[:count]]
    named = {name: values[name] for name in names[count : count + only]}
    defaults = function.defaults if function is not None else {}
    place = count + only
    if code.co_flags & inspect.CO_VARARGS:
        more = values[names[place]]
        place += 1
    else:
        more = ()
    if more:
        positional += more
    else:
        while count and names[count - 1] in defaults and positional[-1] is defaults[names[count - 1]]:
            count -= 1
            positional.pop()
    named = {name: one for name, one in named.items() if not (name in defaults and one is defaults[name])}
    if code.co_flags & inspect.CO_VARKEYWORDS:
        named.update(values[names[place]])
    return positional, named
