"""Facts of Cython files, by indentation."""

from __future__ import annotations

import re

from perfquarry.testgen.calls.facts import SELF, UNKNOWN, Bound, Definition, Facts
from perfquarry.testgen.imports import ByContent, imports_of

_TEXT = re.compile(
    rb"#[^\n]*|\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S
)
_BLOCK = re.compile(
    r"^(?P<indent>[ ]*)(?:"
    r"(?:cdef|ctypedef)\s+(?:(?:public|api|packed)\s+)*class\s+(?P<cclass>\w+)\s*(?P<cbases>\([^)]*\))?"
    r"|class\s+(?P<class>\w+)\s*(?P<bases>\([^)]*\))?"
    r"|(?:async\s+)?def\s+(?P<def>\w+)\s*\((?P<first>\w*)"
    r"|(?P<c>cp?def)\s+(?![^\n(]*=)[^\n(]*?\b(?P<cdef>\w+)\s*\((?:[\w ]*?(?P<cfirst>\w+)\s*[,)])?"
    r")",
    re.M,
)
_OUTSIDE = re.compile(r"\n[^\s)\]}]")
_CIMPORT = re.compile(rb"^([ \t]*(?:from[ \t]+[.\w]+[ \t]+)?)cimport\b", re.M)
_REFERENCE = re.compile(r"(?<![\w.])([A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*)(\s*\()?")
_EXPORTS = re.compile(rb"^__all__\s*\+?=\s*[\[(]([^\])]*)", re.M)
_NAME = re.compile(rb"['\"](\w+)['\"]")


def _facts(content: bytes) -> Facts:
    content = content.replace(b"\t", b" " * 8)
    text = _TEXT.sub(lambda found: b"\n" * found.group().count(b"\n"), content).decode("utf-8", "replace")
    blocks = list(_BLOCK.finditer(text))
    definitions: dict[str, Definition] = {}
    inside: list[tuple[int, str, bool]] = []  # indentation, qualified name, whether it is a class
    for at, block in enumerate(blocks):
        indent = len(block["indent"])
        while inside and inside[-1][0] >= indent:
            inside.pop()
        body = text[block.end() : blocks[at + 1].start() if at + 1 < len(blocks) else len(text)]
        if not indent and (end := _OUTSIDE.search(body)):
            body = body[: end.start()]
        is_class = bool(block["class"] or block["cclass"])
        name = block["class"] or block["cclass"] or block["def"] or block["cdef"]
        outer = inside[-1] if inside else None
        if outer and not outer[2]:  # nested in a function: part of it
            known = definitions[outer[1]]
            definitions[outer[1]] = known.joined(Definition(known.name, known.kind, _uses(body, "")))
            continue
        qualified = f"{outer[1]}.{name}" if outer else name
        inside.append((indent, qualified, is_class))
        bases = tuple(re.findall(r"[\w.]+", block["bases"] or block["cbases"] or ""))
        receiver = (block["first"] or block["cfirst"] or "") if outer else ""
        found = Definition(
            qualified,
            "class" if is_class else "function",
            frozenset() if is_class else _uses(body, receiver),
            bases,
            visible=block["c"] != "cdef",
        )
        definitions[qualified] = definitions[qualified].joined(found) if qualified in definitions else found
    return Facts(definitions, *_imported(content), exports=_exports(content))


def _uses(body: str, receiver: str) -> frozenset[str]:
    found = set()
    for match in _REFERENCE.finditer(body):
        root, *rest = re.sub(r"\s", "", match[1]).split(".")
        called = "()" if match[2] else ""
        if root == receiver and receiver:
            found.add(".".join([SELF, *rest]) + called)
        else:
            found.add(".".join([root, *rest]) + called)
            if rest:  # a typed variable, perhaps
                found.add(f"{UNKNOWN}.{rest[-1]}{called}")
    return frozenset(found)


def _imported(content: bytes) -> tuple[dict[str, Bound], tuple[Bound, ...]]:
    """Names bound by import and cimport, and modules all of whose names are."""
    imports: dict[str, Bound] = {}
    stars = []
    for found in imports_of(_CIMPORT.sub(rb"\1import", content)):
        if found.names is None:
            top = found.module.partition(".")[0]
            imports[top] = Bound(top, 0)
        for original, name in found.names or ():
            if original == "*":
                stars.append(Bound(found.module, found.level))
            else:
                imports[name] = Bound(found.module, found.level, original)
    return imports, tuple(stars)


def _exports(content: bytes) -> frozenset[str] | None:
    found = _EXPORTS.findall(content)
    return frozenset(name.decode() for part in found for name in _NAME.findall(part)) if found else None


cython_facts = ByContent(_facts, 5_000)
"""Facts of a Cython file's content."""
