"""Python expressions that build recorded values anew.

What was recorded came from code under test: every name is checked to be one, everything else is
written as a literal.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Way = Literal["made", "contents", "state"]
"""How instances are built: constructor and calls as recorded, constructor with the contents, attributes."""
WAYS: Final[tuple[Way, ...]] = ("made", "contents", "state")
Axis = Literal["", "all", "first", "rest", "calls", "text", "rest text", "positions"]
"""What is scaled: nothing; all sequences, mappings, sets, texts and arrays; those of the first argument, or of the
others; calls on instances; the inside of texts, or of those in arguments after the first; all with the numbers that
are positions in them."""
AXES: Final[tuple[Axis, ...]] = ("all", "first", "rest", "calls", "text", "rest text", "positions")
MAX_DEPTH = 60
RESERVED = frozenset({"made", "restored", "exhausted", "calls", "setup", "experiment", "longer", "stretched", "data"})


class Unwritable(Exception):
    """A recording from which no expression can be written: what is asked for is missing, or it is no recording."""


@dataclass
class Writer:
    """Writes expressions; `modules` are those they need imported, `helpers` the functions of the script's own.

    With an axis, values of that kind are written `TIMES` times as large.
    """

    way: Way = "made"
    axis: Axis = ""
    modules: set[str] = field(default_factory=set)
    helpers: set[str] = field(default_factory=set)
    scaled: bool = False
    """Whether anything was scaled."""
    classes: set[tuple[str, str]] = field(default_factory=set)
    """Classes whose attributes are set directly: (module, qualified name)."""

    def arguments(self, values: Sequence[Any]) -> str:
        """A tuple of arguments."""
        return _tuple([self._scaled(value, is_first=number == 0) for number, value in enumerate(values)])

    def options(self, values: Mapping[str, Any]) -> str:
        """A dict of named arguments."""
        return f"{{{', '.join(f'{name!r}: {self._scaled(value)}' for name, value in values.items())}}}"

    def _scaled(self, value: Any, *, is_first: bool = False) -> str:
        """One argument, scaled if the axis is about it."""
        axis = self.axis
        if axis in ("first", "rest", "rest text"):
            inner: Axis = "text" if axis == "rest text" else "all"
            self.axis = inner if (axis == "first") == is_first else ""
        written = self.value(value)
        self.axis = axis
        return written

    def name(self, module: str, path: str) -> str:
        """What a name that can be imported is called."""
        parts = [*module.split("."), *path.split(".")] if path else module.split(".")
        if not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
            raise Unwritable(f"no name: {module}.{path}"[:200])
        if module == "builtins":
            return path
        if parts[0] in RESERVED:
            raise Unwritable(f"the module {parts[0]} is called like a function of the script")
        self.modules.add(module)
        return ".".join(parts)

    def value(self, value: Any, depth: int = 0) -> str:
        """One value."""
        if depth > MAX_DEPTH:
            raise Unwritable("nested too deeply")
        if isinstance(value, dict):
            return self._tagged(value, depth + 1)
        if isinstance(value, list):
            return self._larger(f"[{self._items(value, depth)}]", value)
        if isinstance(value, str):
            return self._larger(repr(value), value)
        if type(value) is int and self.axis == "positions":
            self.scaled = True
            return f"{value} * TIMES"
        return repr(value)

    def _larger(self, text: str, content: Sequence[Any]) -> str:
        """A sequence's expression, scaled where that is asked for."""
        is_text = isinstance(content, str)
        if not content or self.axis not in (("all", "text") if is_text else ("all", "positions")):
            return text
        helper = "stretched" if self.axis == "text" else "longer"
        self.scaled = True
        self.helpers.add(helper)
        return f"{helper}({text}, TIMES)"

    def _items(self, values: Sequence[Any], depth: int) -> str:
        """Items of a collection, which are not scaled themselves."""
        axis, self.axis = self.axis, "text" if self.axis == "text" else ""
        written = ", ".join(self.value(one, depth + 1) for one in values)
        self.axis = axis
        return written

    def _tagged(self, value: dict[str, Any], depth: int) -> str:
        try:
            method = getattr(self, f"_{value['kind']}_value")
            text: str = method(value, depth)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise Unwritable(f"no description of a value: {type(error).__name__}") from error
        return text

    def _int_value(self, value: dict[str, Any], depth: int) -> str:
        return str(int(value["text"]))

    def _float_value(self, value: dict[str, Any], depth: int) -> str:
        return f"float('{float(value['text'])!r}')"

    def _text_value(self, value: dict[str, Any], depth: int) -> str:
        return self._larger(repr(value["text"].encode("latin-1").decode("utf-8", "surrogatepass")), value["text"])

    def _bytes_value(self, value: dict[str, Any], depth: int) -> str:
        return self._larger(repr(value["text"].encode("latin-1")), value["text"])

    def _bytearray_value(self, value: dict[str, Any], depth: int) -> str:
        return self._larger(f"bytearray({value['text'].encode('latin-1')!r})", value["text"])

    def _tuple_value(self, value: dict[str, Any], depth: int) -> str:
        items = self._items(value["items"], depth)
        return self._larger(f"({items},)" if items else "()", value["items"])

    def _set_value(self, value: dict[str, Any], depth: int) -> str:
        return self._larger(f"{value['kind']}([{self._items(value['items'], depth)}])", value["items"])

    _frozenset_value = _set_value

    def _deque_value(self, value: dict[str, Any], depth: int) -> str:
        size = f", {int(value['size'])}" if "size" in value else ""
        deque = self.name("collections", "deque")
        return self._larger(f"{deque}([{self._items(value['items'], depth)}]{size})", value["items"])

    def _dict_value(self, value: dict[str, Any], depth: int) -> str:
        axis, self.axis = self.axis, "text" if self.axis == "text" else ""
        pairs = [(self.value(key, depth + 1), self.value(one, depth + 1)) for key, one in value["pairs"]]
        self.axis = axis
        kind = value["kind"]
        if kind == "OrderedDict":
            text = ", ".join(f"({key}, {one})" for key, one in pairs)
            text = f"{self.name('collections', kind)}([{text}])"
        else:
            text = "{" + ", ".join(f"{key}: {one}" for key, one in pairs) + "}"
            if kind == "Counter":
                text = f"{self.name('collections', kind)}({text})"
            elif kind == "defaultdict":
                text = f"{self.name('collections', kind)}({self.value(value['factory'], depth)}, {text})"
        return self._larger(text, value["pairs"])

    _OrderedDict_value = _Counter_value = _defaultdict_value = _dict_value

    def _array_value(self, value: dict[str, Any], depth: int) -> str:
        shape = tuple(int(one) for one in value["shape"])
        text = f"{self.name('numpy', 'array')}([{self._items(value['items'], depth)}], {str(value['dtype'])!r})"
        return self._larger(text if len(shape) == 1 else f"{text}.reshape({shape})", value["items"])

    def _name_value(self, value: dict[str, Any], depth: int) -> str:
        return self.name(value["module"], value["name"])

    def _module_value(self, value: dict[str, Any], depth: int) -> str:
        return self.name(value["module"], "")

    def _call_value(self, value: dict[str, Any], depth: int) -> str:
        function = self._name_value(value["function"], depth)
        if function == "range":  # a sequence, like a list
            return self._larger(f"range({self._items(value['arguments'], depth)})", value["arguments"])
        axis, self.axis = self.axis, self.axis if function == "slice" and self.axis == "positions" else ""
        values = list(value["arguments"])
        step = values.pop() if function == "slice" else None
        written = [self.value(one, depth + 1) for one in values]
        self.axis = axis
        return f"{function}({', '.join(written + ([repr(step)] if function == 'slice' else []))})"

    def _object_value(self, value: dict[str, Any], depth: int) -> str:
        axis, self.axis = self.axis, "all" if self.axis == "positions" else self.axis
        text = self._built(self.name(value["module"], value["name"]), value, depth)
        self.axis = axis
        return text

    def _built(self, kind: str, value: dict[str, Any], depth: int) -> str:
        if self.way == "made" and "made" in value:
            return self._made(kind, value, depth)
        if self.way == "contents" and "contents" in value:
            return f"{kind}({self.value(value['contents'], depth)})"
        if "state" in value:
            self.helpers.add("restored")
            self.classes.update((str(module), str(name)) for module, name in value["classes"])
            pairs = ", ".join(f"({str(name)!r}, {self.value(one, depth + 1)})" for name, one in value["state"])
            return f"restored({kind}, [{pairs}])"
        raise Unwritable(f"an instance of {value['name']} cannot be built by its {self.way}")

    def _made(self, kind: str, value: dict[str, Any], depth: int) -> str:
        positional, named = value["made"]
        written = [self.value(one, depth + 1) for one in positional]
        written += [f"{_named(name)}={self.value(one, depth + 1)}" for name, one in named.items()]
        if not value["calls"]:
            return f"{kind}({', '.join(written)})"
        self.helpers.add("made")
        calls = ", ".join(self._called(call, depth) for call in value["calls"])
        again = ""
        if self.axis == "calls":
            self.scaled, again = True, " * TIMES"
        return f"made({kind}({', '.join(written)}), [{calls}]{again})"

    def _called(self, call: list[Any], depth: int) -> str:
        name, positional, named = call
        arguments = _tuple([self.value(one, depth + 1) for one in positional])
        options = ", ".join(f"{key!r}: {self.value(one, depth + 1)}" for key, one in named.items())
        return f"({_named(name)!r}, {arguments}, {{{options}}})"


def _named(name: str) -> str:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise Unwritable(f"no name: {name}"[:200])
    return name


def _tuple(written: Sequence[str]) -> str:
    return f"({', '.join(written)},)" if written else "()"
