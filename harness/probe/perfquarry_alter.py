"""Alters functions of the tree before they are run: how a cheat or a bug would.

count: as they are, counted. memo: results kept by arguments. damage: results changed. skip: nothing is
done, None comes back. A function is altered in place, by its code, so that every name it was imported
under is, too. Python 3.6 to 3.14, standard library only.
"""

import os
import sys
import types

from perfquarry_scripts import damaged

PLAIN = (int, float, complex, str, bytes, bool, type(None))
SHIM = """
def outer():
    %s
    def shim(*args, _perfquarry_call=None, **kwargs):
        %s
        return _perfquarry_call(args, kwargs)
    return shim
"""


class Unknown(Exception):
    """Arguments that no key can be made of."""


class AlteredFunctions(object):
    """The functions that a request names, altered as soon as their modules are there."""

    def __init__(self, request):
        wanted = request["alteration"]
        self.forgets = wanted["forget"]
        kinds = {"count": self._count, "memo": self._memoise, "damage": self._damage, "skip": self._skip}
        self._call = kinds[wanted["kind"]]
        self._missing = set(wanted["functions"])
        self._tree = request["tree"]
        self._memo = {}
        self._counts = {}

    def apply(self):
        """Alters those whose modules were imported meanwhile."""
        if not self._missing:
            return
        modules = modules_of(self._tree)
        for name in sorted(self._missing):
            path, _, inside = name.partition("::")
            for module in modules.get(path, ()):
                function = find(module, inside.split("."))
                if function is not None:
                    self._missing.discard(name)
                    self._alter(name, function)

    def forget(self):
        """Before each call of an item."""
        if self.forgets:
            self._memo.clear()

    def counts(self):
        """Calls, and how many of them were altered, by function, since the last time."""
        found, self._counts = self._counts, {}
        return found

    def _alter(self, name, function):
        original, call = copy_of(function), self._call

        def counted(args, kwargs):
            entry = self._counts.setdefault(name, [0, 0])
            entry[0] += 1
            value, altered = call(name, original, args, kwargs)
            entry[1] += altered
            return value

        divert(function, counted)

    def _count(self, name, original, args, kwargs):
        return original(*args, **kwargs), 0

    def _memoise(self, name, original, args, kwargs):
        try:
            key = name, key_of(args), key_of(kwargs)
            if key in self._memo:
                return self._memo[key][0], 1
        except (Unknown, TypeError, RecursionError):
            return original(*args, **kwargs), 0
        value = original(*args, **kwargs)
        if not hasattr(value, "__next__") and not hasattr(value, "__await__"):
            self._memo[key] = value, args, kwargs  # what is held keeps its identity
        return value, 0

    def _damage(self, name, original, args, kwargs):
        value = original(*args, **kwargs)
        return (value, 0) if value is None else (damaged(value)[0], 1)

    def _skip(self, name, original, args, kwargs):
        return None, 1


def copy_of(function):
    """A function that stays as this one is now."""
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def divert(function, call):
    """Makes a function, in place, pass the arguments of its calls to another one."""
    free, scope = ["v%d" % number for number in range(len(function.__code__.co_freevars))], {}
    exec(SHIM % (" = ".join(free + ["None"]) if free else "pass", "; ".join(free) or "pass"), scope)
    function.__defaults__, function.__kwdefaults__ = None, {"_perfquarry_call": call}
    function.__code__ = scope["outer"]().__code__


def modules_of(tree):
    """The modules loaded from Python files, by path relative to a tree."""
    tree, found = os.path.realpath(tree), {}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.endswith(".py"):
            inside = os.path.relpath(os.path.realpath(file), tree).replace(os.sep, "/")
            found.setdefault(inside, []).append(module)
    return found


def find(module, path):
    """The innermost Python function at a path of names; None where there is none."""
    held = module
    for part in path:
        held = vars(held).get(part) if hasattr(held, "__dict__") else None
    if isinstance(held, property):
        held = held.fget
    held = getattr(held, "__func__", held)
    while hasattr(held, "__wrapped__"):
        held = held.__wrapped__
    return held if isinstance(held, types.FunctionType) else None


def key_of(value):
    """Equal for equal arguments: containers by what they hold, other objects as they compare.

    Raises:
        Unknown: an object that can be changed, and is compared by more than its identity.
    """
    kind = type(value)
    if kind in PLAIN:
        return kind, value
    if kind in (tuple, list):
        return kind, tuple(key_of(one) for one in value)
    if kind in (set, frozenset):
        return kind, frozenset(key_of(one) for one in value)
    if kind is dict:
        return kind, tuple((key_of(one), key_of(other)) for one, other in value.items())
    if kind is bytearray:
        return kind, bytes(value)
    if kind.__hash__ is None:
        raise Unknown()
    return kind, value


class Altering(object):
    """A mode of the probe under an alteration."""

    def __init__(self, mode, alteration):
        self._mode, self._alteration = mode, alteration

    def __getattr__(self, name):
        return getattr(self._mode, name)

    def start(self):
        """See `perfquarry_items.Mode`."""
        self._alteration.apply()
        self._mode.start()

    def renew(self):
        """See `perfquarry_turns.Phased`."""
        self._alteration.apply()
        self._mode.renew()

    def before(self):
        """See `perfquarry_items.Mode`."""
        self._alteration.forget()
        self._mode.before()

    def run(self, item, execute, left):
        """See `perfquarry_items.Mode`."""
        self._alteration.apply()
        self._alteration.counts()
        entry = self._mode.run(item, execute, left)
        entry["altered"] = self._alteration.counts()
        return entry
