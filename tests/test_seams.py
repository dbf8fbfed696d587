"""What has one place in the product is done nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.test_names import sources

ALONE = ("harness/probe/", "harness/grader/", "harness/sandbox/supervise.py")
"""Programs that run by themselves with the standard library only."""
MOVED_AWAY = {"harness/building/build_folders.py", "harness/images/sides.py", "harness/leases/eviction.py"}
"""What they rename is to be deleted, or goes into a folder that nobody else sees."""


def name_of(node: ast.expr) -> str:
    return ast.unparse(node) if isinstance(node, ast.Attribute | ast.Name) else ""


def renames(call: ast.Call, file: str) -> bool:
    """`Path.replace` has one argument; those of texts and dates have two, or names."""
    if name_of(call.func) in ("os.replace", "os.rename", "os.renames"):
        return True
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    one = len(call.args) == 1 and not call.keywords
    return one and (method == "replace" or (method == "rename" and file not in MOVED_AWAY))


def locks(call: ast.Call, file: str) -> bool:
    return name_of(call.func).endswith((".flock", ".lockf"))


def starts_git(call: ast.Call, file: str) -> bool:
    first = call.args[0] if call.args else None
    words = first.elts if isinstance(first, ast.List | ast.Tuple) else [first]
    program = next((word.value for word in words if isinstance(word, ast.Constant)), None)
    return program == "git" and name_of(call.func).startswith(("subprocess.", "os.", "Popen"))


def migrates(call: ast.Call, file: str) -> bool:
    texts = [part.value for part in ast.walk(call) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return name_of(call.func).endswith(".create_all") or any("ALTER TABLE" in text for text in texts)


def calls() -> Iterator[tuple[str, ast.Call]]:
    root = Path(__file__).parents[1]
    for path, text in sources().items():
        file = path.relative_to(root).as_posix()
        if not file.startswith(ALONE):
            yield from ((file, node) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))


@pytest.mark.parametrize(
    ("done", "place"),
    [
        (renames, "data/files.py"),
        (locks, "data/files.py"),
        (starts_git, "data/git.py"),
        (migrates, "curation/review/migrations/"),
    ],
)
def test_it_is_done_in_its_place_only(done: Callable[[ast.Call, str], bool], place: str) -> None:
    elsewhere = {f"{file}:{call.lineno}" for file, call in calls() if done(call, file) and not file.startswith(place)}
    assert elsewhere == set()


def test_the_rules_see_what_they_forbid() -> None:
    found = {
        rule.__name__
        for rule in (renames, locks, starts_git, migrates)
        for text in (
            "a.replace(b)",
            "fcntl.flock(a, 2)",
            "subprocess.run(['git', 'log'])",
            "op.execute('ALTER TABLE a')",
        )
        if rule(ast.parse(text, mode="eval").body, "data/x.py")  # type: ignore[arg-type]
    }
    assert found == {"renames", "locks", "starts_git", "migrates"}
