"""What the graph of calls needs to know of one file.

References are dotted texts: `helper`, `np.add`, `self._expand`, `super().add`. A part that is called
ends in '()': `Parser().parse()`; an annotated variable is its class with '!': `Parser!.parse()`. A receiver
nothing is known of is '?'.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

UNKNOWN = "?"
SELF = "self"
SUPER = "super()"
ALL = "__all__"
CALLED, OBJECT = "()", "!"


def bare(part: str) -> str:
    """A part of a reference without its mark."""
    return part.removesuffix(CALLED).removesuffix(OBJECT)


@dataclass(frozen=True)
class Definition:
    """A function, a method, a class or a variable."""

    name: str
    """Within its file: 'Class.method'."""
    kind: Literal["function", "class", "variable"]
    uses: frozenset[str] = frozenset()
    """References in its code; of a function those of the functions nested in it, too."""
    bases: tuple[str, ...] = ()
    returns: str = ""
    """Reference of the annotated class of what it returns."""
    visible: bool = True
    """Whether Python sees it (Cython's cdef functions and C's it does not)."""

    def joined(self, other: Definition) -> Definition:
        """Both of a name that is defined several times (overloads, branches, properties)."""
        return Definition(
            self.name,
            other.kind,
            self.uses | other.uses,
            tuple(dict.fromkeys(self.bases + other.bases)),
            other.returns or self.returns,
            self.visible or other.visible,
        )


class Bound(NamedTuple):
    """What a name is bound to by an import: a module, or a name in it."""

    module: str
    level: int
    original: str | None = None


@dataclass(frozen=True)
class Facts:
    """One module."""

    definitions: Mapping[str, Definition] = field(default_factory=dict)
    imports: Mapping[str, Bound] = field(default_factory=dict)
    stars: tuple[Bound, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Qualified name to the reference it stands for: `__radd__ = __add__`, `self.stream = Stream()`."""
    exports: frozenset[str] | None = None
    """Names in `__all__`; None where there is none."""
    exported_from: tuple[str, ...] = ()
    """References of modules whose `__all__` is part of this one's."""
    open_exports: bool = False
    """Whether `__all__` holds more than can be read."""
