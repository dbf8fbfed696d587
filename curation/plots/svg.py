"""What matplotlib writes, as SVG that we publish: small, the same bytes every time, light and dark in one file.

Colours become attributes and classes, so that a plot is right where styles are refused (a strict
Content-Security-Policy, a site that cleans SVG) and follows the reader's choice of a dark page where they are not:
inline in a page, as <img>, and as a file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from perfquarry.curation.plots.palette import PALETTE, css

OURS = "pq-"
"""Begins the names that marks get in the plot; they become classes."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"

_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_NAMES = {one.light: one.name for one in PALETTE}
_ATTRIBUTES = (
    "fill", "stroke", "opacity", "fill-opacity", "stroke-opacity", "stroke-width", "stroke-linejoin", "stroke-linecap",
    "stroke-dasharray", "stroke-dashoffset", "font-size", "font-weight", "text-anchor",
)  # fmt: skip
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_REFERENCE = re.compile(r"#([\w.-]+)")


def finished(text: str, title: str, description: str, tips: Mapping[str, Sequence[str]]) -> str:
    """The SVG that is published.

    Title and description are for people who do not see it; `tips` has by name of a series a text for each of its marks.
    """
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _LINK)
    root = ElementTree.fromstring(text)  # noqa: S314 - written by matplotlib a moment ago
    _remove(root, "metadata")
    used = {name for element in root.iter() for value in element.attrib.values() for name in _REFERENCE.findall(value)}
    colours: set[str] = set()
    for element in root.iter():
        _clean(element, used, colours)
    for name, texts in tips.items():
        _add_texts(root, name, texts)
    _head(root, title, description, frozenset(colours))
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _clean(element: ElementTree.Element, used: set[str], colours: set[str]) -> None:
    """Attributes instead of styles, classes for colours, names only where something refers to them."""
    element.text = (element.text or "").strip() or None if not element.tag.endswith("}text") else element.text
    element.tail = None
    styles = dict(part.split(":", 1) for part in element.attrib.pop("style", "").split(";") if ":" in part)
    classes = []
    for name, value in ((name.strip(), value.strip()) for name, value in styles.items()):
        if name in _ATTRIBUTES:
            element.set(name, value.removesuffix("px"))
        if name in ("fill", "stroke") and value in _NAMES:
            classes.append(f"{name[0]}-{_NAMES[value]}")
            colours.add(_NAMES[value])
    identity = element.get("id", "")
    if identity not in used:
        element.attrib.pop("id", None)
    if identity.startswith(OURS):
        classes.append(identity.removeprefix(OURS))
    if classes:
        element.set("class", " ".join(classes))
    if element.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]
    for name in ("d", "x", "y", "transform"):
        if name in element.attrib:
            element.set(
                name, _NUMBER.sub(lambda found: f"{float(found[0]):.2f}", " ".join(element.attrib[name].split()))
            )


def _add_texts(root: ElementTree.Element, name: str, texts: Sequence[str]) -> None:
    """Gives each mark of a series its text."""
    marks = [
        mark
        for group in root.iter(f"{{{_SVG}}}g")
        if name in group.get("class", "").split()
        for mark in group.iter(f"{{{_SVG}}}use")
    ]
    for mark, text in zip(marks, texts, strict=True):
        ElementTree.SubElement(mark, f"{{{_SVG}}}title").text = text


def _head(root: ElementTree.Element, title: str, description: str, colours: frozenset[str]) -> None:
    name = "p" + hashlib.sha256(f"{title}\n{description}".encode()).hexdigest()[:10]
    size = [f"{float(value.removesuffix('pt')):g}" for value in (root.get("width", ""), root.get("height", ""))]
    root.attrib.clear()
    root.attrib.update(
        {"viewBox": f"0 0 {size[0]} {size[1]}", "width": size[0], "height": size[1], "role": "img"}
        | {"aria-labelledby": f"{name}t {name}d", "font-family": FONT, "stroke-linejoin": "round"}
    )
    _remove(root, "style")
    head = [
        (f"{name}t", "title", title),
        (f"{name}d", "desc", description),
        ("", "style", css(colours)),
    ]
    for place, (identity, tag, text) in enumerate(head):
        element = ElementTree.Element(f"{{{_SVG}}}{tag}", {"id": identity} if identity else {})
        element.text = text
        root.insert(place, element)


def _remove(root: ElementTree.Element, tag: str) -> None:
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith(f"}}{tag}"):
                parent.remove(child)
