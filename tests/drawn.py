"""Reads what a plot shows: its texts, its marks, the names of its parts."""

from __future__ import annotations

from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


class Drawn:
    """One SVG."""

    def __init__(self, text: str) -> None:
        self.text, self.root = text, ElementTree.fromstring(text)

    @property
    def texts(self) -> list[str]:
        """What is written, in the order of the file."""
        return ["".join(one.itertext()) for one in self.root.iter(f"{SVG}text")]

    def group(self, name: str) -> list[ElementTree.Element]:
        """Parts of a class."""
        return [one for one in self.root.iter() if name in one.get("class", "").split()]

    def marks(self, name: str) -> list[ElementTree.Element]:
        """Marks of a series, in their order."""
        return [mark for group in self.group(name) for mark in group.iter(f"{SVG}use")]

    def tips(self, name: str) -> list[str]:
        """The texts of the marks of a series."""
        return [mark.findtext(f"{SVG}title") or "" for mark in self.marks(name)]

    @property
    def colours(self) -> set[str]:
        """All colours of shapes and texts."""
        return {value for one in self.root.iter() for name in ("fill", "stroke") if (value := one.get(name))} - {"none"}
