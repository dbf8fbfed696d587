"""The documents as tests see them: fenced blocks, and what a comment before a block asks for.

`<!-- run -->` before a block: it is executed, in the order of the page, in one empty folder per page, with a home in
which the demo is curated. `<!-- run slow -->`: only with the slow tests. `<!-- run if PROGRAM -->`: where it is
installed. `<!-- run, exit code 1 -->`: it ends so. A block with a title is written to a file of that name, for the
blocks after it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(
    r"^(?P<indent> *)(?:<!-- (?P<mark>run[^\n]*?) -->\n+ *)?```(?P<kind>\w*)(?: title=\"(?P<title>[^\"]+)\")?[^\n]*\n"
    r"(?P<text>.*?)^ *```$",
    re.M | re.S,
)


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: str
    line: int
    kind: str
    text: str
    mark: str
    title: str

    @property
    def commands(self) -> list[str]:
        """Commands of a console block, continued lines joined."""
        joined = re.sub(r"\\\n\s*", " ", self.text)
        return [line.strip()[2:] for line in joined.splitlines() if line.strip().startswith("$ ")]

    @property
    def shell(self) -> str:
        """A console block as a shell script; a Python block run by Python."""
        if self.kind == "python":
            return f"python - <<'END_OF_BLOCK'\n{self.text}\nEND_OF_BLOCK"
        return "\n".join(self.commands)


def documents() -> list[Path]:
    """README, CONTRIBUTING and all pages but decisions, which are history."""
    pages = (path for path in (ROOT / "docs").rglob("*.md") if "decisions" not in path.parts)
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(pages)]


def blocks(path: Path) -> Iterator[Block]:
    """Fenced blocks of a page, in order."""
    text = path.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        indent = re.compile(f"^{found['indent']}", re.M)
        body = indent.sub("", found["text"])
        yield Block(str(path.relative_to(ROOT)), line, found["kind"], body, found["mark"] or "", found["title"] or "")


def words_of(command: str) -> list[str]:
    """A command's words: without comments, variables before it, redirections and a '&' after it."""
    words = shlex.split(command, comments=True)
    while words and re.match(r"^[A-Z_]+=", words[0]):
        words.pop(0)
    ends = [number for number, word in enumerate(words) if word in ("&", "&&", "|", ">", ";")]
    return words[: ends[0]] if ends else words
