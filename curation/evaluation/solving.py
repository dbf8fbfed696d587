"""Baselines: a model solves tasks from one prompt, with the files named (SWE-Perf's oracle) or found by itself.

The second is agentless in two steps: first the files, then the edits (arXiv 2407.01489, without its repair).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, StringConstraints

from perfquarry.curation import Method
from perfquarry.curation.problems.texts import gso_text
from perfquarry.data.errors import InputError
from perfquarry.data.records import Task
from perfquarry.llm.fences import Piece, fit
from perfquarry.llm.prompts import Prompt
from perfquarry.llm.request import Request

PROMPTS = Path(__file__).with_name("prompts")
STAGE = "solve"
MOST_FILES = 5
SOURCES = (".py", ".pyx", ".pxd", ".c", ".cc", ".cpp", ".h", ".hpp")
_FILE_TOKENS = 24_000
_NAME_TOKENS = 12_000
_ANSWER_TOKENS = 8_000


Outline = Callable[[str, bytes], Sequence[tuple[str, int, int]]]
"""Of a file's path and source its functions and classes: name, first and last line, counted from 1."""


class Edit(BaseModel):
    """One replacement in one file."""

    path: Annotated[str, StringConstraints(strip_whitespace=True)] = Field(description="As it is shown.")
    search: str = Field(description="Whole lines that stand in the file exactly once.", min_length=1)
    replace: str


class Edits(BaseModel):
    """A solution."""

    plan: str = Field(description="What is slow, and what is done about it, in at most five sentences.")
    edits: list[Edit]


class Files(BaseModel):
    """Where to look."""

    files: list[str] = Field(max_length=MOST_FILES)


def problem_text(task: Task, method: Method) -> str:
    """What a solver of a method is shown; never anything of the fix.

    Raises:
        InputError: the task has no text for it.
    """
    choice = (task.problem_oracle,) if method == "oracle" else (gso_text(task), task.problem_realistic)
    text = next((one for one in choice if one), "")
    if not text:
        raise InputError(f"{task.task_id} has no problem text for the method {method}: try the other one")
    return text


def source_files(tree: Path) -> list[str]:
    """Paths of a tree's sources, without tests, in order."""
    found = (path.relative_to(tree) for path in tree.rglob("*") if path.suffix in SOURCES and not path.is_symlink())
    named = (path for path in found if not {"test", "tests", ".git"}.intersection(path.parts))
    return sorted(str(path) for path in named if not path.name.startswith("test_"))


def oracle_files(task: Task) -> list[str]:
    """Files of the functions that SWE-Perf's oracle setting names ('path:function')."""
    return list(dict.fromkeys(target.partition(":")[0] for target in task.oracle_targets))[:MOST_FILES]


def locate_request(task: Task, tree: Path) -> Request[Files]:
    """The question which files matter."""
    names = fit([Piece(name, 1.0) for name in source_files(tree)], _NAME_TOKENS)
    values = {"problem": problem_text(task, "locate"), "names": names}
    return Prompt(PROMPTS, "locate", "v1").request(Files, STAGE, task.change_id, values=values, max_tokens=2_000)


def solve_requests(
    task: Task, tree: Path, files: Sequence[str], outline: Outline, method: Method, attempts: int
) -> Iterator[Request[Edits]]:
    """The question for edits, once per attempt; files that are not in the tree are passed over."""
    known = set(source_files(tree))
    problem = problem_text(task, method)
    targets = {target.partition("::")[2] for target in task.oracle_targets} if method == "oracle" else set[str]()
    shown = [name for name in files if name in known]
    pieces = [piece for name in shown for piece in _parts(tree, name, outline, targets, problem)]
    values: Mapping[str, Any] = {
        "problem": problem,
        "python": task.python,
        "files": fit(pieces, _FILE_TOKENS),
    }
    prompt = Prompt(PROMPTS, "solve", "v2")
    first = prompt.request(Edits, STAGE, task.change_id, values=dict(values), max_tokens=_ANSWER_TOKENS)
    for number in range(1, attempts + 1):
        yield replace(first, seed=number)


def _parts(tree: Path, path: str, outline: Outline, targets: Set[str], problem: str) -> Iterator[Piece]:
    """A file by functions, so that of a long one those are shown which the task is about, and what they call."""
    source = (tree / path).read_bytes()
    lines = source.decode("utf-8", errors="replace").splitlines()
    found = outline(path, source)
    starts = {first: name for name, first, _ in found if first > 1}
    wanted = "\n".join("\n".join(lines[first - 1 : last]) for name, first, last in found if name in targets)
    begin, called = 1, ""
    for start in [*sorted(starts), len(lines) + 1]:
        text = "\n".join(lines[begin - 1 : start - 1])
        used = re.search(rf"\b{re.escape(re.split(r'[.:]', called)[-1])}\b", wanted or problem)
        relevance = 1.0 if called in targets else 0.9 if not called else 0.6 if used else 0.1
        yield Piece(f"# file: {path}, lines {begin} to {start - 1}\n{text}", relevance, f"{path}: {called}")
        begin, called = start, starts.get(start, "")


def edit_tree(tree: Path, edits: Sequence[Edit]) -> list[str]:
    """Carries out edits in a copy of a tree, all or none; why not, a line each, is empty where they fit.

    A path that is no source of the tree is refused, so no edit leads out of it.
    """
    known = set(source_files(tree))
    texts: dict[str, str] = {}
    wrong = []
    for number, one in enumerate(edits, 1):
        if one.path not in known:
            wrong.append(f"edit {number}: {one.path[:200]} is no source file of the repository")
            continue
        text = texts.get(one.path) or (tree / one.path).read_bytes().decode("utf-8", errors="surrogateescape")
        if (count := text.count(one.search)) != 1:
            wrong.append(f"edit {number}: its text stands {count} times in {one.path}, not once")
            continue
        texts[one.path] = text.replace(one.search, one.replace)
    for path, text in {} if wrong else texts.items():
        (tree / path).write_bytes(text.encode("utf-8", errors="surrogateescape"))
    return wrong
