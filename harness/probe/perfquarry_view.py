"""What a result is, as JSON: the same for equal results of both sides of a change, whatever they are made of.

The recorder imports this module; script workloads of replayed calls contain its text. Python 3.6
to 3.14, standard library only.
"""

import json
import math
from collections.abc import Mapping, Sequence, Set

NODES = 500000  # values looked at in one result
PLAIN = ("datetime", "decimal", "fractions", "uuid", "pathlib", "ipaddress")  # modules of types that repr() shows


class View(object):
    """Turns a value into JSON; ValueError when it is too large or deep."""

    def __init__(self):
        self.left = NODES

    def of(self, value, depth=0):
        self.left -= 1
        if self.left < 0 or depth > 60:
            raise ValueError("the result is too large to compare")
        if value is None or type(value) in (bool, int, str):
            return value
        if isinstance(value, str):
            return {type(value).__name__: str.__str__(value)}
        if isinstance(value, float):
            plain = float.__float__(value)
            return plain if math.isfinite(plain) else {"float": repr(plain)}
        if isinstance(value, (bytes, bytearray)):
            return {type(value).__name__: bytes(value).decode("latin-1")}
        if isinstance(value, (complex, range, slice)) or type(value).__module__ in PLAIN:
            return {type(value).__name__: repr(value)}
        if isinstance(value, type) or hasattr(value, "__qualname__"):
            return {"name": value.__qualname__}
        if type(value).__module__.partition(".")[0] == "numpy":
            return {type(value).__name__: [str(value.dtype), list(value.shape), self.of(value.tolist(), depth + 1)]}
        return self.of_contents(value, depth + 1)

    def of_contents(self, value, depth):
        name = type(value).__name__
        if type(value) in (list, tuple):
            return [name] + [self.of(one, depth) for one in value]
        if isinstance(value, Mapping):
            pairs = [[self.of(key, depth), self.of(value[key], depth)] for key in value]
            unordered = isinstance(value, dict) and type(value).__module__ in ("builtins", "collections")
            unordered = unordered and type(value).__name__ != "OrderedDict"
            return {name: sorted(pairs, key=text_of) if unordered else pairs}
        if isinstance(value, (Set, set, frozenset)):
            return {name: sorted((self.of(one, depth) for one in value), key=text_of)}
        if isinstance(value, Sequence) or (hasattr(value, "__len__") and hasattr(value, "__iter__")):
            items = list(value)
            if not holds_itself(value, items):
                return {name: [self.of(one, depth) for one in items]}
        return self.of_state(value, depth)

    def of_state(self, value, depth):
        """Public attributes and text, where that says more than where the value lies."""
        state = getattr(value, "__dict__", {})
        public = {key: self.of(one, depth) for key, one in sorted(state.items()) if not key.startswith("_")}
        text = repr(value) if type(value).__repr__ is not object.__repr__ else ""
        return {type(value).__name__: [public, "" if " at 0x" in text else text]}


def holds_itself(value, items):
    """Whether its only item is an equal instance of its own kind, as of a text of one character: not looked into."""
    return len(items) == 1 and type(items[0]) is type(value) and (items[0] is value or bool(items[0] == value))


def text_of(view):
    """A view as text: equal for equal views."""
    return json.dumps(view, sort_keys=True)


def same(one, other):
    """Whether two views are equal; floats to 9 digits."""
    if type(one) is float and type(other) is float:
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other
