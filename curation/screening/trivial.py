"""Changes that any reader would make without looking for a bottleneck: versions, dependencies, compiler flags."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perfquarry.curation.patch import FilePatch, files_of
from perfquarry.curation.screening.found import FoundProblem
from perfquarry.data.records import Severity, Task

_VERSION = re.compile(
    r"(?i)^\s*(?:[\w.\[\]\"']*version\w*|release|major|minor|micro|patch)[\"']?\s*(?::\s*\w+\s*)?[=:]\s*"
    r"[(\[]*v?[\"'\d][\w.,\"' ()+-]*[)\],;]*\s*$"
)
_DEPENDENCY_FILE = re.compile(
    r"(?i)(?:^|/)(?:[\w.-]*requirements[\w.-]*\.(?:txt|in)|requirements/[\w.-]+|environment\w*\.ya?ml|constraints[\w.-]*\.txt"
    r"|poetry\.lock|uv\.lock|Pipfile(?:\.lock)?|Cargo\.(?:toml|lock)|package(?:-lock)?\.json|go\.(?:mod|sum)|\.gitmodules)$"
)
_PACKAGING = re.compile(r"(?:^|/)(?:setup\.(?:py|cfg)|pyproject\.toml|meson\.build|conanfile\.\w+|CMakeLists\.txt)$")
_REQUIREMENT = re.compile(
    r"^\s*[\"']?[A-Za-z][\w.-]*(?:\[[\w,]+\])?\s*(?:[<>=!~^]=?|==)\s*[\"']?[\d^~<>=][\w.*,<>=!~ ]*[\"']?[,\])]*"
    r"\s*(?:#.*)?$"
)
_FLAG = re.compile(
    r"(?<![\w-])(?:-O(?:fast|[0-3sgz])|-march=\S+|-mtune=\S+|-m(?:avx|sse|fma|native)\w*|-ffast-math|-funroll-loops|-flto\b"
    r"|/O[12x]\b|/GL\b)|\b(?:extra_compile_args|extra_link_args|CFLAGS|CXXFLAGS|LDFLAGS|RUSTFLAGS|opt-level|optimization=)"
)
_COMMENT = re.compile(r"^\s*(?:#|//|/\*|\*|--|;|\.\. |$)")
_VENDORED = re.compile(r"(?:^|/)(?:vendor(?:ed)?|_vendor|third_?party|extern(?:al)?s?|subprojects|node_modules)/")
_NUMBERS = re.compile(r"(?<![\w.])\d[\d_.]*(?:e[+-]?\d+)?")
_MEANING = {
    "version bump": "lines that state the version of the package",
    "dependency upgrade": "requirements and vendored code of others",
    "compiler flag": "flags of compilers and linkers",
}


def trivial(task: Task) -> Iterator[FoundProblem]:
    """Findings: blocking where nothing else changes, informing where a flag changes among other things."""
    kinds: dict[str, list[str]] = {}
    for file in files_of(task.patch):
        for line in (*file.added, *file.removed):
            if not _COMMENT.match(line) or file.path.endswith((".md", ".rst")):
                kinds.setdefault(_kind_of(file, line), []).append(f"{file.path}: {line.strip()[:120]}")
    code = kinds.pop("code", [])
    kinds.pop("docs", None)
    for kind, lines in kinds.items():
        text = f"{'nothing but ' if not code else ''}{_MEANING[kind]}: {lines[0]}"
        if not code or kind == "compiler flag":
            severity: Severity = "warning" if code else "blocking"
            yield FoundProblem("trivial", text, kind, severity, {"lines": lines[:20], "count": len(lines)})
    if code and not kinds and _only_numbers(task.patch):
        yield FoundProblem("trivial", f"only numbers change: {code[0]}", "constant", "warning", {"lines": code[:20]})


def _kind_of(file: FilePatch, line: str) -> str:
    if re.search(r"(?i)\.(?:md|rst|txt)$|(?:^|/)(?:docs?|changes?|changelog|news|authors)(?:/|$)", file.path):
        return "dependency upgrade" if _DEPENDENCY_FILE.search(file.path) else "docs"
    if _DEPENDENCY_FILE.search(file.path) or _VENDORED.search(file.path):
        return "dependency upgrade"
    if _FLAG.search(line):
        return "compiler flag"
    if _VERSION.match(line):
        return "version bump"
    if _PACKAGING.search(file.path) and _REQUIREMENT.match(line):
        return "dependency upgrade"
    return "code"


def _only_numbers(patch: str) -> bool:
    """Whether the lines are the same before and after but for numbers in them."""
    for file in files_of(patch):
        if not file.path.endswith((".md", ".rst", ".txt")):
            added, removed = (
                [_NUMBERS.sub("0", line).strip() for line in lines] for lines in (file.added, file.removed)
            )
            if added != removed:
                return False
    return True
