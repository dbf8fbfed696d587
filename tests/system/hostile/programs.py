"""The corpus as data: every file of `corpus/` says in its first comments what it does and how it must end."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import Path

from perfquarry.harness.contracts import Isolation

CORPUS = Path(__file__).parent / "corpus"
STAGES = ("build", "generate", "measure")


@dataclass(frozen=True)
class Program:
    """One hostile program.

    Its first comment is its title. The others are 'name: value': `as`, the file of the tree it becomes (`package`:
    the imported module); a stage, with the reason of the row it must end as ('kept', 'a or b'), or '-' where it
    is not run; `process: yes` where it is safe to run without isolation; `seconds`, the limit of one command, and
    `call`, of one call of a test.
    """

    name: str
    title: str
    text: str
    facts: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> Program:
        """The program of a file."""
        text = path.read_text(encoding="utf-8")
        lines = [line[2:] for line in takewhile(lambda line: line.startswith("# "), text.splitlines())]
        facts = dict(line.split(": ", 1) for line in lines[1:])
        return cls(path.stem, lines[0], text, facts)

    @property
    def place(self) -> str:
        """File of the tree it becomes."""
        return self.facts["as"]

    @property
    def seconds(self) -> float:
        """Wall limit of one command."""
        return float(self.facts.get("seconds", 120.0))

    @cached_property
    def expected(self) -> dict[str, str]:
        """Reason by stage."""
        return {stage: self.facts[stage] for stage in STAGES if self.facts.get(stage, "-") != "-"}

    def runs_in(self, isolation: Isolation) -> bool:
        """Whether a sandbox with these walls can run it without harm to the machine."""
        return all(astuple(isolation)) or self.facts.get("process") == "yes"


def corpus() -> list[Program]:
    """All programs, by name."""
    return [Program.read(path) for path in sorted(CORPUS.glob("*.py"))]
