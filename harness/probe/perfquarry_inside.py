"""Counts by Python function: what happens inside functions of the patch, and in those of the tree that they call.

Callgrind knows the functions of the interpreter, not those that it runs. So each of our functions is called
through a piece of machine code of its own, whose outgoing call callgrind counts with all that happens in it.
The functions are changed in place, by their code, only while they are counted. What the detour costs is
measured, and reported with how often it was taken.

Python 3.6 to 3.14, standard library only.
"""

import sys
import threading

from perfquarry_alter import copy_of, divert, find, modules_of

set_profile = sys.setprofile
MOST = 24  # functions, those of the patch first
MOST_CALLS = 2000  # in one call of a test or script, of a function outside the patch: the detour is dear
LAZY = 0x20 | 0x80 | 0x100 | 0x200  # generators and coroutines, whose code runs after the call


class InsideCounter(object):
    """The functions of the request, and those of the tree called from them."""

    def __init__(self, requests, request, names):
        self._requests, self._request, self._names = requests, request, names
        self._patch = set(request["functions"])
        self._found = {}  # by name: function
        self._ways = {}  # by name: (toggling caller, plain caller, addresses)
        self._state = threading.local()
        self._calls, self._edges = {}, {}
        self._installed = {}
        self._nested = {}

    def find(self):
        """Looks up functions in the modules that are loaded by now."""
        for name in sorted(self._patch):
            self._look(name)

    def _look(self, name):
        path, _, inside = name.partition("::")
        for module in modules_of(self._request["tree"]).get(path, ()):
            function = find(module, inside.split("."))
            if function is not None and not function.__code__.co_flags & LAZY:
                self._found[name] = function

    def watch(self, execute, item):
        """One uncounted call of a test or script, in which is seen what functions of the tree call each other."""
        self._calls, self._edges = {}, {}
        threading.setprofile(self._see)
        set_profile(self._see)
        try:
            return execute(item)
        finally:
            set_profile(None)
            threading.setprofile(None)

    def _see(self, frame, event, _):
        if event == "call":
            code = frame.f_code
            self._calls[code] = self._calls.get(code, 0) + 1
            if frame.f_back is not None:
                self._edges.setdefault(frame.f_back.f_code, set()).add(code)

    def install(self):
        """Sends calls through machine code: of the patch's functions, and of what they called while watched."""
        self.find()
        known = {code: self._name(code) for code in self._calls}
        reached, waiting = set(), [code for code, name in known.items() if name in self._patch]
        while waiting:
            code = waiting.pop()
            if code not in reached:
                reached.add(code)
                waiting.extend(self._edges.get(code, ()))
        names = [name for name in sorted(self._patch) if name in self._found][:MOST]
        own = {known[code]: self._calls[code] for code in reached if known.get(code)}
        for name in sorted(own, key=lambda name: -own[name]):
            if own[name] > MOST_CALLS or name in self._patch or len(names) == MOST:
                continue
            if name not in self._found:
                self._look(name)
            if name in self._found:
                names.append(name)
        for name in names:
            self._installed[name] = self._detour(name, self._found[name])

    def begin(self):
        """Before each counted call."""
        self._nested.clear()

    def uninstall(self):
        """Everything as it was; what is known of the counted calls: see `harness.contracts.Inside`."""
        for function, code, defaults, named in self._installed.values():
            function.__code__, function.__defaults__, function.__kwdefaults__ = code, defaults, named
        addresses = {name: self._ways[name][2] for name in self._installed}
        self._installed = {}
        return {"addresses": addresses, "nested": self._nested}

    def overhead(self, counted):
        """Instructions that a detour inside another one costs."""

        def outer():
            inner()

        def inner():
            pass

        counts = []
        for detours in ({"outer": outer}, {"outer": outer, "inner": inner}):
            kept = {name: self._detour(name, function, patch={"outer"}) for name, function in detours.items()}
            counts.append([counted(outer) for _ in range(5)][-1])
            for function, code, defaults, named in kept.values():
                function.__code__, function.__defaults__, function.__kwdefaults__ = code, defaults, named
        return max(0, counts[1] - counts[0])

    def _name(self, code):
        name = self._names.of(code.co_filename, code.co_firstlineno)
        return name and name.replace("\\", "/")

    def _detour(self, name, function, patch=None):
        toggles = name in (self._patch if patch is None else patch)
        if name not in self._ways:
            outer, first, end = self._requests.caller(toggling=True)
            inner, second, last = self._requests.caller(toggling=False)
            self._ways[name] = outer, inner, [[first, end], [second, last]]
        outer, inner, _ = self._ways[name]
        code, defaults, named = function.__code__, function.__defaults__, function.__kwdefaults__
        original = copy_of(function)
        state, nested, active = self._state, self._nested, "in " + name

        def through(args, kwargs):
            own = vars(state)
            depth = own.get("depth", 0)
            if own.get(active) or not (depth or toggles):  # it calls itself, or is not called from the patch
                return original(*args, **kwargs)
            detours = own["detours"] = own.get("detours", 0) + 1
            own["depth"], own[active] = depth + 1, True
            try:
                return (inner if depth else outer)(original, args, kwargs)
            finally:
                own["depth"], own[active] = depth, False
                nested[name] = nested.get(name, 0) + own["detours"] - detours

        divert(function, through)
        return function, code, defaults, named
