"""Installed CPython interpreters, and which of them a commit of some date is run with."""

from __future__ import annotations

import functools
import json
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import Version
from uv import find_uv_bin

from perfquarry.data.children import Need, answer_of

RELEASED: dict[tuple[int, int], datetime] = {
    (3, 6): datetime(2016, 12, 23, tzinfo=UTC),  # PEP 494
    (3, 7): datetime(2018, 6, 27, tzinfo=UTC),  # PEP 537
    (3, 8): datetime(2019, 10, 14, tzinfo=UTC),  # PEP 569
    (3, 9): datetime(2020, 10, 5, tzinfo=UTC),  # PEP 596
    (3, 10): datetime(2021, 10, 4, tzinfo=UTC),  # PEP 619
    (3, 11): datetime(2022, 10, 24, tzinfo=UTC),  # PEP 664
    (3, 12): datetime(2023, 10, 2, tzinfo=UTC),  # PEP 693
    (3, 13): datetime(2024, 10, 7, tzinfo=UTC),  # PEP 719
    (3, 14): datetime(2025, 10, 7, tzinfo=UTC),  # PEP 745
}
"""Day of the first final release of each minor version."""

MATURITY = timedelta(days=180)
"""How long after its release libraries are taken to support an interpreter."""

_OLDEST = (3, 6)  # what uv can make environments for, and what the probe runs on
_ASK = """\
import json, platform, sys, sysconfig

info = sys.version_info
usable = (platform.python_implementation() == "CPython" and info.releaselevel == "final"
          and sys.prefix == sys.base_prefix and not sysconfig.get_config_var("Py_GIL_DISABLED"))
print(json.dumps({"path": sys.executable, "version": "%d.%d.%d" % tuple(info[:3]), "usable": usable}))
"""


@dataclass(frozen=True)
class Interpreter:
    """One installed CPython: its real path (no shim) and its full version."""

    path: Path
    version: Version

    @property
    def minor(self) -> tuple[int, int]:
        """(major, minor)."""
        return self.version.major, self.version.minor

    @property
    def matured(self) -> datetime | None:
        """When libraries of the day supported it: its release plus `MATURITY`; None for versions not in the table."""
        released = RELEASED.get(self.minor)
        return None if released is None else released + MATURITY


def choose(
    date: datetime,
    requires_python: SpecifierSet | None,
    interpreters: Sequence[Interpreter],
    tested: Sequence[str] = (),
) -> Interpreter | None:
    """The newest interpreter inside the range that had matured at the date, else the oldest inside the range.

    Where some that had matured are versions the project tested with, it is the newest of these. None where no
    interpreter is inside the range.

    Args:
        date: aware; usually the commit's.
        requires_python: the commit's own range; None accepts any.
        tested: minor versions, '3.10'.
    """
    fitting = sorted(
        (i for i in interpreters if requires_python is None or requires_python.contains(i.version, prereleases=True)),
        key=lambda i: i.version,
    )
    mature = [i for i in fitting if i.matured is not None and i.matured <= date]
    if mature:
        return ([i for i in mature if "{}.{}".format(*i.minor) in tested] or mature)[-1]
    return fitting[0] if fitting else None


@functools.cache
def find_interpreters() -> tuple[Interpreter, ...]:
    """Every usable CPython ≥ 3.6 that uv's discovery (PATH, uv's own) and pyenv know, the newest patch a minor.

    Each candidate is run once and asked for its version; what cannot answer (a shim without
    a version behind it, a broken installation), is no final release, is itself
    a virtual environment or a free-threaded build, is left out. Cached per process.
    """
    newest: dict[tuple[int, int], Interpreter] = {}
    root = _pyenv_root()
    for path in dict.fromkeys([*sorted(root.glob("versions/*/bin/python")), *_from_uv(root / "shims")]):
        found = _ask(path)
        if found and found.minor >= _OLDEST:
            known = newest.get(found.minor)
            if known is None or found.version > known.version:
                newest[found.minor] = found
    return tuple(sorted(newest.values(), key=lambda i: i.version))


def _from_uv(shims: Path) -> Iterable[Path]:
    """What uv finds without pyenv's shims: each of them starts dozens of processes, and leads to a known version."""
    argv = [find_uv_bin(), "python", "list", "--only-installed", "--output-format", "json"]
    folders = [one for one in os.get_exec_path() if Path(one) != shims]
    listing = answer_of(argv, Need.TOOLCHAINS, seconds=60.0, PATH=os.pathsep.join(folders))
    try:
        entries = json.loads(listing or "[]")
    except ValueError:
        return []
    return [Path(e["path"]) for e in entries if e.get("implementation") == "cpython" and e.get("path")]


def _pyenv_root() -> Path:
    """A folder that is not there, where there is no pyenv."""
    pyenv = shutil.which("pyenv")
    return Path(answer_of([pyenv, "root"], Need.TOOLCHAINS).strip() or os.devnull) if pyenv else Path(os.devnull)


def _ask(path: Path) -> Interpreter | None:
    answer = answer_of([str(path), "-I", "-c", _ASK], Need.TOOLCHAINS)
    try:
        facts = json.loads(answer or "null")
    except ValueError:
        return None
    if not isinstance(facts, dict) or not facts.get("usable"):
        return None
    return Interpreter(Path(facts["path"]), Version(facts["version"]))
