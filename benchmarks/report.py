"""Writes the sections of docs/benchmarks.md: one benchmark, one section, replaced as a whole."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
TITLE = "# Benchmarks\n\nEach section is written by the benchmark of that name (`make help` lists them).\n"


def replace_section(title: str, body: str, page: Path = PAGE) -> None:
    """Puts `body` (Markdown) under the heading `## title`, in place of what was there, or at the end.

    The other sections keep their text and place. The page is made when it is missing.
    """
    text = page.read_text(encoding="utf-8") if page.exists() else TITLE
    section = f"## {title}\n\n{body.strip()}\n"
    # A section ends where the next heading of its level or above begins, fenced code aside.
    old = re.compile(rf"^## {re.escape(title)}[ \t]*\n(?:(?!#{{1,2}} )(?:```.*?^```[^\n]*\n|[^\n]*\n))*", re.M | re.S)
    new = old.sub(lambda found: section + ("\n" if found.end() < len(text) else ""), text, count=1)
    if not old.search(text):
        new = text.rstrip("\n") + "\n\n" + section
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(new, encoding="utf-8")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def percent(share: float, digits: int = 1) -> str:
    """A share as a percentage, '1.3 %'."""
    return f"{100 * share:.{digits}f} %"


def machine_facts() -> str:
    """One line: CPU model, cores this process may use, kernel, git and Python."""
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{_cpu_model()}, {cores} core{'s' if cores != 1 else ''}, {platform.system()} {platform.release()}, "
        f"git {git}, Python {platform.python_version()}"
    )


def _cpu_model() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
    except OSError:
        found = None
    return found.group(1).strip() if found else platform.processor() or platform.machine()
