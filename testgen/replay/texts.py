"""The texts of scripts that replay recorded calls: GSO's six functions around a list of calls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perfquarry.data.records import content_id
from perfquarry.harness.probing.prober import PROBE
from perfquarry.harness.probing.recording import Recorded
from perfquarry.testgen.replay.expressions import Axis, Unwritable, Way, Writer

TEMPLATE = Path(__file__).parent / "script.txt"
_SYMBOLS: Final = {
    *("lt", "le", "eq", "ne", "ge", "gt", "add", "and", "floordiv", "index", "invert", "lshift", "matmul", "mod"),
    *("mul", "neg", "or", "pos", "pow", "rshift", "sub", "truediv", "xor", "contains", "getitem", "setitem"),
    *("delitem", "iadd", "iand", "ifloordiv", "ilshift", "imatmul", "imod", "imul", "ior", "ipow", "irshift"),
    *("isub", "itruediv", "ixor"),
}
_BUILTINS: Final = {"len", "repr", "str", "hash", "iter", "reversed", "bool", "next", "bytes", "format", "abs", "round"}
_COPIES: Final = {"copy": "copy", "deepcopy": "deepcopy", "reduce": "deepcopy", "reduce_ex": "deepcopy"}
"""Special methods that are reached by a function of the module copy."""

_MADE = '''
def made(instance, calls):
    """The instance after calls of its methods."""
    for name, arguments, options in calls:
        getattr(instance, name)(*arguments, **options)
    return instance
'''
_RESTORED = '''
def restored(kind, state):
    """An instance with these attributes."""
    instance = kind.__new__(kind)
    for name, value in state:
        object.__setattr__(instance, name, value)
    return instance
'''
_EXHAUSTED = '''
def exhausted(function):
    """The function with its iterator's items as the result."""
    return lambda *arguments, **options: list(function(*arguments, **options))
'''
_SETUP = '''
def setup():
    """The calls of all rounds."""
    return [call for _ in range(ROUNDS) for call in calls()]
'''
_SHARED_SETUP = '''
def setup():
    """The calls of all rounds; those of one kind share their first argument."""
    first = [arguments[:1] for _, arguments, _ in calls()]
    rounds = [zip(first, calls()) for _ in range(ROUNDS)]
    return [
        (function, one + arguments[1:], options)
        for again in rounds
        for one, (function, arguments, options) in again
    ]
'''
_HELPERS: Final = {"made": _MADE, "restored": _RESTORED, "exhausted": _EXHAUSTED}
_CHECKED = '''

replayed = experiment


def experiment(data):
    """The calls, whose outcome must be the recorded one."""
    results, arguments = replayed(data)
    view = View()
    found = text_of([view.of(results[0]), [view.of(one) for one in arguments[0]]])
    assert hashlib.sha256(found.encode()).hexdigest() == ${EXPECTED}, "another outcome: " + found[:1000]
    return results, arguments
'''


@dataclass(frozen=True)
class Replay:
    """Recorded calls of one function and how they are made again."""

    calls: tuple[Recorded, ...]
    way: Way = "made"
    axis: Axis = ""
    times: int = 1
    """How much larger what the axis names becomes."""
    rounds: int = 1
    shared: bool = False
    """Whether all rounds use the first arguments of the first round: calls on one instance that grows or fills."""

    @property
    def name(self) -> str:
        """Name for the probe."""
        parts = [self.way, self.axis, self.times, self.rounds, self.shared]
        return f"script-{content_id(*(one.model_dump(mode='json') for one in self.calls), *parts)[:12]}"

    @property
    def as_recorded(self) -> bool:
        """Whether it makes the calls that the tests made, each with arguments of its own."""
        return not self.axis and not self.shared

    @property
    def functions(self) -> list[str]:
        """Functions whose calls it makes."""
        return sorted({call.function for call in self.calls})

    @property
    def note(self) -> str:
        """What it exercises."""
        what = {
            "": "as recorded",
            "all": f"sequences, texts and the like {self.times} times as long",
            "first": f"its first argument {self.times} times as large",
            "rest": f"its arguments after the first {self.times} times as large",
            "calls": f"the calls before it on its instances {self.times} times repeated",
            "text": f"the longest part of its texts {self.times} times as long",
            "rest text": f"the longest part of its texts after the first argument {self.times} times as long",
            "positions": f"sequences and positions in them {self.times} times as large",
        }[self.axis]
        on_one = ", all rounds on the same first arguments" if self.shared else ""
        target, many = self.calls[0], f"{len(self.calls)} call{'s' if len(self.calls) > 1 else ''}"
        return f"Replays {many} of {target.module}.{'.'.join(target.path)}: {what}{on_one}"

    def script(self, expected: str = "") -> str:
        """Its text.

        Args:
            expected: digest of the outcome of its only call, which `experiment` then checks.

        Raises:
            Unwritable: a value cannot be built in this way, or nothing in it can be scaled.
        """
        writer = Writer(self.way, self.axis)
        lines = [f"        {_call(one, writer)}," for one in self.calls]
        if self.axis and not writer.scaled:
            raise Unwritable("nothing of that kind to scale")
        parts = [_own("view")] + [_own("longer")] * bool(writer.helpers & {"longer", "stretched"})
        parts += [_HELPERS[name].strip() for name in sorted(writer.helpers & _HELPERS.keys())]
        imports = {line.strip() for part in parts for line in _IMPORT.findall(part)}
        imports |= {f"import {module}" for module in writer.modules} | {"import json", "import timeit"}
        imports |= {"import hashlib"} if expected else set()
        text = TEMPLATE.read_text(encoding="utf-8") + (_CHECKED if expected else "")
        values = {
            "NOTE": self.note,
            "IMPORTS": "\n".join(sorted(imports)),
            "CONSTANTS": f"ROUNDS = {self.rounds}\nTIMES = {self.times}" if self.axis else f"ROUNDS = {self.rounds}",
            "EXPECTED": repr(expected),
            "HELPERS": "\n\n\n".join(_IMPORT.sub("", part).strip() for part in parts),
            "CALLS": "\n".join(lines),
            "SETUP": (_SHARED_SETUP if self.shared else _SETUP).strip(),
            "COUNT": str(len(self.calls)),
        }
        return re.sub(r"\$\{(\w+)\}", lambda found: values[found.group(1)], text)

    def written(self) -> str:
        """The text of its calls alone."""
        return "".join(_call(one, Writer(self.way, self.axis)) for one in self.calls)

    def classes(self) -> set[tuple[str, str]]:
        """Classes whose attributes it sets directly."""
        writer = Writer(self.way, self.axis)
        for one in self.calls:
            _call(one, writer)
        return writer.classes


_IMPORT = re.compile(r"^(?:import|from) .*\n", re.MULTILINE)


def _own(name: str) -> str:
    """The text of a module beside the probe without its docstring."""
    text = (PROBE.parent / f"perfquarry_{name}.py").read_text(encoding="utf-8")
    return text.partition('"""')[2].partition('"""')[2].lstrip()


def _call(recorded: Recorded, writer: Writer) -> str:
    """One call: (function, arguments, options)."""
    function = _function(recorded, writer)
    if recorded.lazy:
        writer.helpers.add("exhausted")
        function = f"exhausted({function})"
    positional = recorded.positional[:1] if _copies(recorded) else recorded.positional
    return f"({function}, {writer.arguments(positional)}, {writer.options(recorded.named)})"


def _copies(recorded: Recorded) -> str:
    return _COPIES.get(recorded.path[-1].strip("_"), "") if _is_special(recorded) else ""


def _is_special(recorded: Recorded) -> bool:
    name = recorded.path[-1]
    return recorded.kind == "method" and name.startswith("__") and name.endswith("__")


def _function(recorded: Recorded, writer: Writer) -> str:
    """How one calls it: what stands for a special method is an operator or a builtin."""
    name = recorded.path[-1].strip("_")
    if recorded.kind == "property":
        return f"{writer.name('operator', 'attrgetter')}({recorded.path[-1]!r})"
    if copies := _copies(recorded):
        return writer.name("copy", copies)
    if _is_special(recorded) and name in _BUILTINS:
        return name
    if _is_special(recorded) and name in _SYMBOLS:
        return writer.name("operator", f"{name}_" if name in ("and", "or") else name)
    return writer.name(recorded.module, ".".join(recorded.path))


def has_own_outcome(recorded: Recorded) -> bool:
    """Whether the replayed call has the outcome that was recorded, so that the digests can be compared."""
    return bool(recorded.digest) and not _copies(recorded)
