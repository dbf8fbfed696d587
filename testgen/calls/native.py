"""What C and C++ files define, what their functions name, and which Python names they are bound to.

No grammar of C reads numpy's templates and dispatch macros, so blocks are found by their braces;
what is unbalanced (`#if` around half a block) ends at the next brace at the left margin.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product

from perfquarry.testgen.imports import ByContent

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_LITERAL_OR_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
_MACRO = re.compile(r"[ \t]*#[ \t]*define[ \t]+([\w@]+)\([^)]*\)(.*)", re.S)
_MARK = re.compile(r"[{};]")
_TRANSPARENT = re.compile(r"\bextern\s*\"[^\"]*\"\s*$|\bnamespace\b[^()=]*$")
_CLASS = re.compile(r"\b(?:class|struct|union)\s+[^()=]*$")
_FUNCTION = re.compile(
    r"([\w@~]+)\s*(?:<[^<>()]*>\s*)?(\((?:[^()]|\([^()]*\))*\))\s*(?:(?:const|noexcept|override|final)\b\s*)*$"
)
_BEFORE_LAST = re.compile(r"([\w@]+)\s*\(\s*([\w@]+)\s*\)\s*\((?:[^()]|\([^()]*\))*\)\s*$")
_VARIABLE = re.compile(r"([\w@]+)\s*(?:\[[^\]]*\]\s*)*=\s*$")
_IDENTIFIER = re.compile(r"@?[A-Za-z_@][\w@]{2,}")
_STRING = re.compile(r"\"((?:\\.|[^\"\\\n])*)\"")
_ENTRY = re.compile(r"\{([^{}]*)\}")
_MODULE = re.compile(
    r"\b(?:PyInit_|Py_InitModule[34]?\s*\(\s*\"|PYBIND11_MODULE\s*\(\s*|NB_MODULE\s*\(\s*)([A-Za-z_]\w*)"
)
_REGISTRATION = re.compile(
    r"(?:\bPyUFunc_FromFuncAndData\w*|\b\w*init_\w*ufunc\w*|\.def(?:_\w+)?)\s*\(([^;\"]*)\"(\w+)\"([^;]*)"
)
_REPEAT = re.compile(r"#\s*(\w+)\s*=\s*([^#]*)#")
_TIMES = re.compile(r"\(([^()]*)\)\s*\*\s*(\d+)|([^,()*\s][^,()*]*?)\s*\*\s*(\d+)")
_REGISTERS = re.compile(r"\bPy(?:\w+Def|TypeObject|Number\w+|Sequence\w+|Mapping\w+|Async\w+|BufferProcs|Type_Slot)\b")
_SLOT = re.compile(r"\.(?:tp|nb|sq|mp|am)_(\w+)\s*=\s*([^,}]*)")
_SLOT_NAMES = {
    "subscript": "getitem", "ass_subscript": "setitem", "item": "getitem", "ass_item": "setitem", "length": "len",
    "iternext": "next", "richcompare": "eq", "getattro": "getattribute", "setattro": "setattr", "inplace_add": "iadd",
    "multiply": "mul", "subtract": "sub", "remainder": "mod", "power": "pow", "negative": "neg", "absolute": "abs",
    "true_divide": "truediv", "floor_divide": "floordiv", "matrix_multiply": "matmul", "concat": "add", "repeat": "mul",
}  # fmt: skip
_FACTS = frozenset(["methods", "getset", "members", "name", "base", "flags", "doc"])
"""Slots of a type that hold no function."""
_OWN_SLOTS = _FACTS.union(["new", "init", "call", "alloc", "vectorcall", "dealloc"])
_HEADER = 4000
"""Characters looked at before a block."""
_MOST_NAMES = 400
"""Names that one templated name can stand for."""


@dataclass(frozen=True)
class Code:
    """A function, an initialised variable or a macro."""

    name: str
    """As written: a template's name has its variables in it, '@TYPE@_add'."""
    names: frozenset[str]
    """What it is called once templates are expanded."""
    uses: frozenset[str]
    wrapper: str = ""
    """Macro its name is an argument of, which parsers take for the name: 'NPY_CPU_DISPATCH_CURFX'."""
    is_table: bool = False


@dataclass(frozen=True)
class Binding:
    """A Python name and the C names behind it."""

    name: str
    """'' for what is its table's type itself."""
    table: str
    """Variable the entry is part of; '' for one registered by a call."""
    uses: frozenset[str]


@dataclass(frozen=True)
class NativeFacts:
    """One C or C++ file."""

    code: tuple[Code, ...] = ()
    bindings: tuple[Binding, ...] = ()
    types: tuple[tuple[str, str, frozenset[str]], ...] = ()
    """Type objects: variable, Python name with dots, identifiers of its initialiser."""
    modules: tuple[tuple[str, frozenset[str]], ...] = ()
    """Modules: name, identifiers beside it (its table of methods)."""


def _facts(content: bytes) -> NativeFacts:
    raw = content.decode("utf-8", "replace").replace("\r\n", "\n")
    variables = _variables(raw)
    text = _COMMENT.sub(_blank, _protected(raw)) if "/*" in raw or "//" in raw else raw
    macros = [Code(found[1], _expanded(found[1], variables), _identifiers(found[2], variables))
              for directive in _DIRECTIVE.finditer(text) if (found := _MACRO.match(directive[0]))]  # fmt: skip
    text = _DIRECTIVE.sub(_blank, text)
    code: list[Code] = list(macros)
    bindings: list[Binding] = []
    types: list[tuple[str, str, frozenset[str]]] = []
    modules = [(name, frozenset[str]()) for name in _MODULE.findall(text)]
    for header, body in _blocks(text):
        kind, name, wrapper = _declared(header)
        if not name:
            continue
        uses = _identifiers(body, variables)
        if not _REGISTERS.search(header):  # what only mentions a type or a table does not use all that is in it
            code.append(Code(name, _expanded(name, variables), uses, wrapper, kind == "variable"))
        if kind == "function":
            calls = [(found[2], f"{found[1]} {found[3]}") for found in _REGISTRATION.finditer(body)]
            bindings += [Binding(python, "", _identifiers(rest, variables)) for python, rest in calls]
        elif re.search(r"\bPy(?:MethodDef|GetSetDef|MemberDef)\b", header):
            entries = [(found, _STRING.search(found)) for found in _ENTRY.findall(body)]
            bindings += [Binding(at[1], name, _identifiers(entry, variables)) for entry, at in entries if at]
        elif "PyTypeObject" in header:
            at = _STRING.search(body)
            types.append((name, at[1] if at else name, uses))
            bindings += _slots(body, name)
        elif re.search(r"\bPy(?:Number|Sequence|Mapping|Async)Methods\b", header):
            bindings += _slots(body, name)
        elif "PyModuleDef" in header and (at := _STRING.search(body)):
            modules.append((at[1].rpartition(".")[2], uses))
    modules += [(found[1], _identifiers(found[2], {})) for found in
                re.finditer(r"Py_InitModule[34]?\s*\(\s*\"(\w+)\"([^;]*)", text)]  # fmt: skip
    return NativeFacts(tuple(code), tuple(bindings), tuple(types), tuple(modules))


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n") or " "


def _protected(raw: str) -> str:
    """The text with comment marks, braces and semicolons in literals masked, so that only real ones are left."""

    def masked(found: re.Match[str]) -> str:
        return found[0] if found[0].startswith("/") else re.sub(r"[{};/]", "_", found[0])

    return _LITERAL_OR_COMMENT.sub(masked, raw)


def _blocks(text: str) -> list[tuple[str, str]]:
    """(header, body) of every block outside others, those in namespaces, classes and `extern "C"` included."""
    found: list[tuple[str, str]] = []
    start = begin = depth = 0
    header = ""
    for mark in _MARK.finditer(text):
        at, char = mark.start(), mark[0]
        if depth == 0:
            if char == "{":
                header = text[start:at].strip()
                if _TRANSPARENT.search(header) or _CLASS.search(header):
                    start = at + 1
                else:
                    depth, begin = 1, at + 1
            else:
                start = at + 1
        elif char == "{":
            depth += 1
        elif char == "}":
            depth = 0 if at == 0 or text[at - 1] == "\n" else depth - 1
            if depth == 0:
                found.append((header, text[begin:at]))
                start = at + 1
    return found


def _declared(header: str) -> tuple[str, str, str]:
    """Kind and name of what a block defines, and the macro around the name."""
    header = header[-_HEADER:]
    if variable := _VARIABLE.search(header):
        return "variable", variable[1], ""
    if wrapped := _BEFORE_LAST.search(header):
        return "function", wrapped[2], wrapped[1]
    if function := _FUNCTION.search(header):
        return "function", function[1], ""
    return "", "", ""


def _slots(body: str, table: str) -> list[Binding]:
    found = []
    for slot, value in _SLOT.findall(body):
        name = "" if slot in _OWN_SLOTS else f"__{_SLOT_NAMES.get(slot, slot)}__"
        if slot not in _FACTS:
            found.append(Binding(name, table, frozenset(_IDENTIFIER.findall(value))))
    return found


def _variables(raw: str) -> dict[str, list[str]]:
    """Values of the repeat variables of numpy's templates, all loops of a file together."""
    variables: dict[str, list[str]] = {}
    if "begin repeat" in raw:
        for name, values in _REPEAT.findall(raw):
            text = re.sub(r"^\s*\*", " ", values, flags=re.M)
            text = _TIMES.sub(lambda found: found[1] or found[3] or "", text)
            known = variables.setdefault(name, [])
            known += [value for part in text.split(",") if (value := part.strip()) not in known]
    return variables


def _expanded(name: str, variables: dict[str, list[str]]) -> frozenset[str]:
    if "@" not in name:
        return frozenset([name])
    parts = name.split("@")
    choices = [[part] if at % 2 == 0 else variables.get(part, [""]) for at, part in enumerate(parts)]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > _MOST_NAMES:
        return frozenset([name])
    return frozenset(["".join(picked) for picked in product(*choices)])


def _identifiers(code: str, variables: dict[str, list[str]]) -> frozenset[str]:
    found = set(_IDENTIFIER.findall(_STRING.sub(" ", code)))
    plain = {name for name in found if "@" not in name}
    return frozenset(plain.union(*(_expanded(name, variables) | {name} for name in found - plain)))


native_facts = ByContent(_facts, 5_000)
"""Facts of a C or C++ file's content."""
