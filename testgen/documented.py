"""Names that a tree's documentation is about: Sphinx's directives and roles, mkdocstrings' blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from perfquarry.testgen.files import files_below, is_readable

_FOLDERS = ("doc", "docs", "documentation")
_ENDINGS = (".rst", ".md", ".txt")
_LINE = re.compile(
    r"^(?P<indent>[ \t]*)(?:\.\.[ \t]+(?P<directive>[\w:-]+)::[ \t]*(?P<argument>[^\n]*)|:::[ \t]+(?P<mkdocs>[\w.]+)"
    r"|(?P<entry>~?[A-Za-z_][\w.]*))[ \t]*$",
    re.M,
)
_ROLE = re.compile(r":(?:py:)?(?:func|class|meth|attr|obj|exc|data):`(?:[^`<]*<)?[~!.]*([\w.]+)")
_OBJECT = re.compile(r"(?:py:)?(?:auto)?(?:function|class|method|attribute|exception|data|staticmethod|classmethod)$")
_MODULE = re.compile(r"(?:py:)?(?:current)?module$")
_MOST = 4000
"""Files read."""


@dataclass(frozen=True)
class Documented:
    """What the documentation names."""

    names: frozenset[str] = frozenset()
    """Dotted as they stand there, and with the current module before them."""
    modules: frozenset[str] = frozenset()
    """Documented whole, by automodule."""

    def __bool__(self) -> bool:
        """Whether there is any documentation of APIs."""
        return bool(self.names or self.modules)

    def has(self, name: str, module: str) -> bool:
        """Whether an API is documented: itself, its class, or the module that defines it.

        Args:
            name: its public name with dots.
            module: dotted name of the module that defines it.
        """
        parts = name.split(".")
        # classes are often named without their module, functions then are any word
        tails = [".".join(parts[at:]) for at in range(len(parts)) if at == 0 or parts[at][:1].isupper()]
        owners = [tail.rpartition(".")[0] for tail in tails]
        return not self.names.isdisjoint([*tails, *owners]) or not self.modules.isdisjoint([module, owners[0]])


def documented(tree: Path) -> Documented:
    """The index of a tree's documents."""
    names: set[str] = set()
    modules: set[str] = set()
    for number, path in enumerate(_documents(tree)):
        if number >= _MOST:
            break
        _read(path.read_text(encoding="utf-8", errors="replace"), names, modules)
    return Documented(frozenset(names), frozenset(modules))


def _documents(tree: Path) -> Iterator[Path]:
    for top in _FOLDERS:
        for name in files_below(tree / top, ()) if not (tree / top).is_symlink() else ():
            path = tree / top / name
            aside = any(part.startswith("_") for part in name.split("/")[:-1])
            if name.endswith(_ENDINGS) and not aside and is_readable(path):
                yield path


def _read(text: str, names: set[str], modules: set[str]) -> None:
    names.update(_ROLE.findall(text))
    current = owner = ""
    summary: int | None = None  # indentation of an autosummary whose entries follow
    for line in _LINE.finditer(text):
        directive, argument = line["directive"] or "", (line["argument"] or "").partition("(")[0].strip()
        indent = len(line["indent"].expandtabs())
        if line["entry"]:
            if summary is not None and indent > summary:
                _add(names, line["entry"].lstrip("~"), current)
            continue
        summary = indent if directive == "autosummary" else None
        if line["mkdocs"]:
            names.add(line["mkdocs"])
            modules.add(line["mkdocs"])
        elif directive == "automodule":
            modules.add(argument)
            current = argument
        elif _MODULE.match(directive):
            current = argument
        elif _OBJECT.match(directive) and argument:
            _add(names, argument, current)
            if "class" in directive and "method" not in directive:
                owner = argument
            elif indent and owner:  # a method within its class
                _add(names, f"{owner}.{argument}", current)


def _add(names: set[str], name: str, current: str) -> None:
    names.add(name)
    if current:
        names.add(f"{current}.{name}")
