"""How instances came to be what they are: how they were made, and what was called on them since.

Python 3.6 to 3.14, standard library only.
"""

import inspect

from perfquarry_describe import Describer
from perfquarry_functions import LAZY, arguments_of, first_of, is_mixin, is_private

CALLS = 200  # on one instance
INSTANCES = 4000  # of one test
FRAMES = 40  # outwards in which an instance's own code is looked for
READING = frozenset(
    "__%s__" % name
    for name in "len iter contains getitem eq ne lt le gt ge hash repr str bool reversed getattr getattribute "
    "enter exit init new del reduce reduce_ex getstate setstate sizeof format dir missing class_getitem "
    "init_subclass instancecheck subclasscheck add sub mul and or xor copy deepcopy".split()
)


class History(object):
    """What happened to one instance, described."""

    def __init__(self, value):
        self.value, self.made, self.calls, self.size, self.broken = value, None, [], 0, ""


class Histories(object):
    """Histories of the instances that one test makes, by id."""

    def __init__(self, functions, values):
        self._functions = functions
        self._values = values  # most of one history
        self._methods = {}
        self._known = {}

    def forget(self):
        """Before a test and after it."""
        self._known = {}

    def of(self, value):
        """The history of an instance, or None."""
        history = self._known.get(id(value))
        return history if history is not None and history.value is value else None

    def describer(self):
        """Describes values with what is known of instances by now."""
        return Describer(self, self._functions.is_own, self._values)

    def is_inside(self, frame, value):
        """Whether an instance's own code is calling: then what was done to it is not all in its history."""
        for _ in range(FRAMES):
            if frame is None:
                return False
            if (self._functions.known(frame.f_code) or is_mixin(frame)) and first_of(frame) is value:
                return True
            frame = frame.f_back
        return False

    def see(self, frame, value):
        """Notes a call that begins, `value` being its first argument."""
        name = frame.f_code.co_name
        if name == "__init__":
            if id(value) not in self._known and self._functions.is_own(type(value)) and len(self._known) < INSTANCES:
                history = self._known[id(value)] = History(value)
                history.made = self._arguments(history, frame)
            return
        history = self.of(value)
        if history is None or history.broken or name in READING or self.is_inside(frame.f_back, value):
            return
        kind = self._kind_of(type(value), frame.f_code)
        if kind == "setter":
            history.broken = "its attributes were set"
        elif kind == "method":
            history.calls.append([name] + self._arguments(history, frame))
            if len(history.calls) > CALLS or history.size > self._values:
                history.broken = "its history is too long"

    def _arguments(self, history, frame):
        """Arguments of a call without the instance; where they cannot be described, neither can the history."""
        describer = self.describer()
        try:
            positional, named = arguments_of(frame, self._functions.of(frame))
            described = [describer.items(positional[1:]), {name: describer.of(one) for name, one in named.items()}]
        except Exception as error:  # of properties and methods of the values, too
            history.broken = str(error) or type(error).__name__
            return [[], {}]
        history.size += self._values - describer.left + 1
        return described

    def _kind_of(self, kind, code):
        """'method' for what is called on instances by a public name, 'setter' for what an assignment calls, else ''."""
        key = kind, code
        if key not in self._methods:
            held = inspect.getattr_static(kind, code.co_name, None)
            if isinstance(held, property):
                known = "setter" if held.fset is not None and held.fset.__code__ is code else ""
            else:
                known = "" if code.co_flags & LAZY or is_private(code.co_name) or not callable(held) else "method"
            self._methods[key] = known
        return self._methods[key]
