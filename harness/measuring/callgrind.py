"""valgrind's callgrind as the program that runs probes, and its files (docs/counts.md)."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perfquarry.data.children import answer_of
from perfquarry.harness.contracts import Inside, ProbeItem, ProbeReport, ProbeRequest
from perfquarry.harness.trees.foreign_files import Forged, content_of

REMEDY = "install valgrind (Debian, Ubuntu: apt-get install valgrind; Fedora: dnf install valgrind)"
FILE_BYTES = 32 * 1024**2
"""Largest file of callgrind that is read; usual ones have 0.1 MB."""
NATIVE_FUNCTIONS = 200
"""Functions of libraries that are kept of one count: those that execute most."""
LARGEST = 2**62

HWCAPS = ("AVX512F", "AVX512VL", "AVX512BW", "AVX512DQ", "ERMS", "FSRM")
"""Features of processors that glibc must not use: valgrind does not have the first ones, and with the last ones a
copy is one `rep movsb`, whose instructions say nothing of its work. With them off, glibc chooses the same
functions on every processor with AVX2. Names since glibc 2.33; before, some end in '_Usable'."""
CALLED = "PyObject_Call"
"""The function of the interpreter that the probe's machine code calls."""
_NAME = re.compile(r"\((\d+)\)(?: (.*))?")
_FILE = re.compile(r"c\.\d+\.\d+")


@dataclass(frozen=True)
class Callgrind:
    """Runs the interpreter of probes; nothing is counted until the probe asks for it."""

    program: Path
    version: str
    """'valgrind-3.19.0'."""

    @classmethod
    def find(cls) -> Callgrind | None:
        """The one on PATH; None where there is none that starts."""
        found = shutil.which("valgrind")
        version = answer_of([found, "--version"], seconds=60.0).strip() if found else ""
        return cls(Path(found), version) if found and version.startswith("valgrind-") else None

    @property
    def env(self) -> Mapping[str, str]:
        """What pins glibc's choice of string functions."""
        names = [word for name in HWCAPS for word in (f"-{name}", f"-{name}_Usable")]
        return {"GLIBC_TUNABLES": f"glibc.cpu.hwcaps={','.join(names)}"}

    @property
    def readable(self) -> tuple[Path, ...]:
        """Its folder, where it is not the system's."""
        prefix = self.program.resolve().parent.parent
        return () if prefix in (Path("/"), Path("/usr")) else (prefix,)

    def argv(self, request: ProbeRequest, outbox: Path) -> tuple[str, ...]:
        """Its command line, which that of the interpreter follows; into `outbox` it may write."""
        return (
            str(self.program),
            "-q",
            "--tool=callgrind",
            "--cache-sim=no",
            "--instr-atstart=no",
            # threads are counted, too; inside of functions the probe switches it on
            f"--collect-atstart={'no' if request.functions else 'yes'}",
            "--dump-line=no",
            "--dump-instr=yes",  # the places of calls out of the probe's machine code
            "--compress-pos=no",
            f"--callgrind-out-file={outbox / 'c.%p'}",
        )

    def with_counts(self, report: ProbeReport, outbox: Path) -> ProbeReport:
        """The report with counts by function; a file that cannot be read gives none."""
        return report.model_copy(update={"items": [_with_functions(item, outbox) for item in report.items]})


def _with_functions(item: ProbeItem, outbox: Path) -> ProbeItem:
    if not _FILE.fullmatch(item.counted):
        return item
    try:
        profile = Profile.of(content_of(outbox / item.counted, FILE_BYTES).decode(errors="replace"))
    except (FileNotFoundError, Forged, ValueError, LookupError):
        return item
    native = {name: count for name, count in profile.own.most_common(NATIVE_FUNCTIONS) if 0 < count < LARGEST}
    python = profile.inside(item.inside) if item.inside else {}
    return item.model_copy(update={"native": native, "python": python})


@dataclass
class Profile:
    """One file of callgrind, written with addresses and without lines.

    Raises (`of`):
        ValueError: it is no such file.
        LookupError: it uses a number that it has not explained.
    """

    own: Counter[str] = field(default_factory=Counter)
    """Instructions of each function itself: 'library:name'."""
    calls: list[tuple[int, int]] = field(default_factory=list)
    """Calls of `PyObject_Call`, the probe's among them: address, instructions of what was called."""

    @classmethod
    def of(cls, text: str) -> Profile:
        """Reads it."""
        found, names, function, library, called, calling = cls(), _Names(), "", "", "", False
        for line in _body(text):
            key, sign, value = line.partition("=")
            if not sign:
                address, count = line.split()
                if not calling:
                    found.own[f"{library}:{function}"] += int(count)
                elif called == CALLED:
                    found.calls.append((int(address, 16), int(count)))
                calling = False
            elif key in ("ob", "cob"):
                named = names.of("ob", value).rpartition("/")[2]
                library = named if key == "ob" else library
            elif key in ("fn", "cfn"):
                named = re.sub(r"'\d+$", "", names.of("fn", value))
                function, called = (named, called) if key == "fn" else (function, named)
            elif key == "calls":
                calling = True
        return found

    def inside(self, way: Inside) -> dict[str, int]:
        """Instructions of Python functions with all that they call, without what detours cost."""
        totals: Counter[str] = Counter()
        for address, count in self.calls:
            for name, places in way.addresses.items():
                if any(first <= address < end for first, end in places):
                    totals[name] += count
        cleaned = {name: total - way.nested.get(name, 0) * way.overhead for name, total in totals.items()}
        return {name: max(0, count) for name, count in cleaned.items() if count < LARGEST}


class _Names:
    """Names, written once and numbered from then on."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}

    def of(self, kind: str, value: str) -> str:
        match = _NAME.fullmatch(value)
        if match is None:
            return value
        if match[2] is not None:
            self._known[kind, match[1]] = match[2]
        return self._known[kind, match[1]]


def _body(text: str) -> Iterator[str]:
    """Lines between the head and the sum."""
    begun = False
    for line in text.splitlines():
        if line.startswith("totals:"):
            return
        if begun and line:
            yield line
        begun = begun or line.startswith("summary:")
    raise ValueError("it has no sum")
