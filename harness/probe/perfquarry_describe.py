"""Describes live values as JSON from which `testgen.replay` can write the expression that builds them anew.

JSON's own values stand for themselves, a list for a list; everything else is an object with
"kind". Instances of the tree's own classes are described by how they were made and what was called on
them since, by their contents, and by their state: the host chooses. Python 3.6 to 3.14, standard library only.
"""

import datetime
import decimal
import enum
import fractions
import math
import re
import sys
import types
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Mapping, Sequence, Set
from operator import attrgetter

BUILTIN = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset", deque: "deque"}
MAPPINGS = {dict: "dict", OrderedDict: "OrderedDict", Counter: "Counter"}
MADE_OF = {
    slice: attrgetter("start", "stop", "step"),
    range: attrgetter("start", "stop", "step"),
    complex: attrgetter("real", "imag"),
    decimal.Decimal: lambda value: (str(value),),
    fractions.Fraction: attrgetter("numerator", "denominator"),
    uuid.UUID: lambda value: (str(value),),
    datetime.timedelta: attrgetter("days", "seconds", "microseconds"),
    datetime.date: attrgetter("year", "month", "day"),
    datetime.datetime: attrgetter("year", "month", "day", "hour", "minute", "second", "microsecond"),
    datetime.time: attrgetter("hour", "minute", "second", "microsecond"),
}
PLAIN = {
    str: str.__str__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    int: int.__int__,
    float: float.__float__,
}  # of instances of their subclasses: the value without what a subclass adds or overrides
DEPTH = 12
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)


class Unsupported(Exception):
    """A value that cannot be described; the text says why."""


def home_of(thing, name):
    """The shortest public module from which a top-level object can be imported by its name, or None."""
    module = getattr(thing, "__module__", None) or ""
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        loaded = sys.modules.get(".".join(parts[:end]))
        private = any(part.startswith("_") for part in parts[:end])
        if loaded is not None and not private and vars(loaded).get(name) is thing:
            return ".".join(parts[:end])
    return None


def importable(thing):
    """A function or class by module and qualified name."""
    name = getattr(thing, "__qualname__", "")
    first, _, rest = name.partition(".")
    top = vars(sys.modules.get(thing.__module__, sys)).get(first) if getattr(thing, "__module__", None) else None
    found = top
    for part in rest.split(".") if rest else ():
        found = getattr(found, part, None)
    module = home_of(top, first) if found is thing and thing is not None else None
    if module in (None, "__main__") or any(part.startswith("_") for part in name.split(".")):
        raise Unsupported("%s cannot be imported by a public name" % (name or type(thing).__name__))
    return {"kind": "name", "module": module, "name": name}


class Describer(object):
    """Describes values, at most `budget` of them."""

    def __init__(self, histories, is_own, budget):
        self.histories = histories  # of instances
        self.is_own = is_own  # whether a class is the tree's own, and no test's
        self.left = budget
        self.within = []

    def of(self, value):
        """The description."""
        self.left -= 1
        if self.left < 0:
            raise Unsupported("the arguments are too large")
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value if kind is not str else self.text(value)
        if kind is int:
            return value if abs(value) < 2**53 else {"kind": "int", "text": str(value)}
        if kind is float:
            return value if math.isfinite(value) else {"kind": "float", "text": repr(value)}
        if kind in (bytes, bytearray):
            self.left -= len(value) // 8
            return {"kind": kind.__name__, "text": bytes(value).decode("latin-1")}
        if isinstance(value, type) or kind in FUNCTIONS:
            return self.function(value)
        if id(value) in self.within or len(self.within) > DEPTH:
            raise Unsupported("the arguments refer to themselves, or are nested too deeply")
        self.within.append(id(value))
        try:
            return self.compound(value, kind)
        finally:
            self.within.pop()

    def text(self, value):
        """A text; one with halves of characters cannot be sent as it is."""
        self.left -= len(value) // 8
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return {"kind": "text", "text": value.encode("utf-8", "surrogatepass").decode("latin-1")}
        return value

    def function(self, value):
        """A function, class or class method by its name."""
        owner = None if isinstance(value, type) else getattr(value, "__self__", None)
        if owner is None or isinstance(owner, type(sys)):
            return importable(value)
        if not isinstance(owner, type):
            raise Unsupported("a bound method of %s" % type(owner).__name__)
        described = importable(owner)
        return dict(described, name=described["name"] + "." + value.__name__)

    def items(self, values):
        return [self.of(one) for one in values]

    def pairs(self, value):
        return [[self.of(key), self.of(one)] for key, one in value.items()]

    def call(self, function, *arguments):
        return {"kind": "call", "function": importable(function), "arguments": self.items(arguments)}

    def compound(self, value, kind):
        if kind is list:
            return self.items(value)
        if kind in BUILTIN:
            described = {"kind": BUILTIN[kind], "items": self.items(value)}
            if kind is deque and value.maxlen is not None:
                described["size"] = value.maxlen
            return described
        if kind in MAPPINGS:
            return {"kind": MAPPINGS[kind], "pairs": self.pairs(value)}
        if kind is defaultdict:
            return {"kind": "defaultdict", "factory": self.of(value.default_factory), "pairs": self.pairs(value)}
        if kind in MADE_OF and getattr(value, "tzinfo", None) is None:
            return self.call(kind, *MADE_OF[kind](value))
        return self.library(value, kind)

    def library(self, value, kind):
        """Patterns, arrays, named tuples, modules, members of enumerations, and instances of the tree's own."""
        if isinstance(value, enum.Enum):
            described = importable(kind)
            return {"kind": "name", "module": described["module"], "name": described["name"] + "." + value.name}
        if kind is type(re.compile("")):
            return self.call(re.compile, value.pattern, value.flags & ~re.UNICODE)
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return {"kind": "call", "function": importable(kind), "arguments": self.items(value)}
        if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
            return self.array(value)
        if isinstance(value, type(sys)):
            return {"kind": "module", "module": value.__name__}
        if self.is_own(kind):
            return self.instance(value, kind)
        raise Unsupported("an instance of %s.%s" % (kind.__module__, kind.__name__))

    def array(self, value):
        if value.dtype.kind not in "biuf" or value.size > self.left:
            raise Unsupported("an array of %s" % value.dtype)
        self.left -= value.size
        flat = [one if math.isfinite(one) else {"kind": "float", "text": repr(one)} for one in value.ravel().tolist()]
        return {"kind": "array", "dtype": value.dtype.str, "shape": list(value.shape), "items": flat}

    def instance(self, value, kind):
        """An instance of the tree's own: as many ways to build it anew as can be described."""
        described = dict(importable(kind), kind="object", classes=[])
        for base in kind.__mro__:
            if self.is_own(base):
                described["classes"].append([base.__module__, base.__qualname__])
        reasons = []
        history = self.histories.of(value)
        if history is not None and not history.broken:
            described["made"] = history.made
            described["calls"] = list(history.calls)
            self.left -= history.size
        else:
            reasons.append(history.broken if history is not None else "its making was not seen")
        for way in (self.contents, self.state):
            left = self.left
            try:
                described[way.__name__] = way(value, kind)
            except Unsupported as error:
                self.left = left
                reasons.append(str(error))
        if not {"made", "contents", "state"} & set(described):
            raise Unsupported("%s: %s" % (kind.__name__, "; ".join(reasons)))
        return described

    def contents(self, value, kind):
        """What the class's constructor may take to make an equal one."""
        for plain, copied in PLAIN.items():
            if isinstance(value, plain):
                return self.of(copied(value))
        if isinstance(value, Mapping):
            return {"kind": "dict", "pairs": [[self.of(key), self.of(value[key])] for key in value]}
        if isinstance(value, (Set, Sequence, set, frozenset)):
            return self.items(list(value))
        raise Unsupported("no collection")

    def state(self, value, kind):
        """Attributes; only where the class holds nothing besides them."""
        if any(issubclass(kind, one) for one in (dict, list, set, tuple, str, bytes, int, float, BaseException)):
            raise Unsupported("its state is not in its attributes")
        found = dict(getattr(value, "__dict__", {}))
        for base in kind.__mro__:
            slots = vars(base).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                    found[name] = getattr(value, name)
        return [[name, self.of(one)] for name, one in found.items()]
