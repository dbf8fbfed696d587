"""Scopes of C and C++ (and numpy's `.src` templates of them), by tree-sitter."""

from __future__ import annotations

import re
from functools import cache

import tree_sitter_c
import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

from perfquarry.miners.scopes.scope import MODULE, Scope, Span

_TOKEN = re.compile(
    rb"(?P<comment>//[^\n]*|/\*.*?\*/)|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|\w+|[^\s\w]",
    re.S,
)
_NAMED = frozenset(["class_specifier", "struct_specifier", "union_specifier", "namespace_definition"])
_ENCLOSING = _NAMED.union(
    ["linkage_specification", "declaration_list", "template_declaration", "field_declaration_list"],
    ["declaration", "field_declaration", "type_definition", "ERROR"],
)
_NAMES = frozenset(
    ["identifier", "field_identifier", "qualified_identifier", "destructor_name", "operator_name", "operator_cast"]
)


def scopes_of_c(source: bytes, language: str) -> list[Scope]:
    """What is outside all functions, then every function: 'f', 'Class::method', 'namespace::f'.

    Anything parses: where macros or templates confuse the grammar, functions that are still found count,
    and the rest counts as outside. Functions behind `#if` and `#else` have two scopes of one name.
    """
    outside = []
    at = 0
    scopes = []
    for start, end, name in _functions(source, language):
        outside.append(source[at:start])
        scopes.append(Scope(name, _tokens(source[start:end])))
        at = end
    return [Scope(MODULE, _tokens(b"\n".join([*outside, source[at:]]))), *scopes]


def spans_of_c(source: bytes, language: str) -> list[Span]:
    """First and last line of every function, in order."""
    return [
        Span(name, source.count(b"\n", 0, start) + 1, source.count(b"\n", 0, end) + 1)
        for start, end, name in _functions(source, language)
    ]


def _functions(source: bytes, language: str) -> list[tuple[int, int, str]]:
    # Repeat variables of numpy's templates (@TYPE@_add) are no identifiers; of equal length, so places stay.
    # A parser for each call: they must not be shared between threads.
    tree = Parser(_language(language)).parse(source.replace(b"@", b"_"))
    found: list[tuple[int, int, str]] = []
    _collect(tree.root_node, source, "", found)
    return found


@cache
def _language(name: str) -> Language:
    return Language(tree_sitter_c.language() if name == "c" else tree_sitter_cpp.language())


def _collect(root: Node, source: bytes, prefix: str, found: list[tuple[int, int, str]]) -> None:
    """Notes (start, end, name) of functions in order, without looking into their bodies."""
    waiting = [(root, prefix)]
    while waiting:
        node, inside = waiting.pop()
        if node.type == "function_definition":
            name = _name(node, source)
            if name:
                found.append((node.start_byte, node.end_byte, inside + name))
                continue
        if node.type in _NAMED and (named := node.child_by_field_name("name")) is not None:
            inside = f"{inside}{_text(named, source)}::"
        if (
            node is root
            or node.type in _ENCLOSING
            or node.type.startswith("preproc_")
            or node.type == "function_definition"
        ):
            waiting += [(child, inside) for child in reversed(node.named_children)]


def _name(function: Node, source: bytes) -> str:
    """Name of a function: the identifier its declarator ends in; empty when there is none."""
    node: Node | None = function.child_by_field_name("declarator")
    while node is not None and node.type not in _NAMES:
        inner = node.child_by_field_name("declarator")
        if inner is None:
            inner = next((child for child in node.named_children if _may_be_name(child)), None)
        node = inner
    return "" if node is None else re.sub(r"\s+", "", _text(node, source))


def _may_be_name(node: Node) -> bool:
    return node.type in _NAMES or node.type.endswith("_declarator")


def _text(node: Node, source: bytes) -> str:
    return source[node.start_byte : node.end_byte].decode("utf-8", "backslashreplace")


def _tokens(code: bytes) -> str:
    tokens = [found.group() for found in _TOKEN.finditer(code) if found.lastgroup is None]
    return b"\n".join(tokens).decode("utf-8", "backslashreplace")
