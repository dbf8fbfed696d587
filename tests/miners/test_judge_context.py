"""What a model is shown of a change: hunks by relevance, functions and calls at the change's own commit."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_repository import Repository, only_row

from perfquarry.llm.tokens import about_tokens
from perfquarry.miners.judge.context import context_of, hunks_of
from perfquarry.miners.scopes import spans

LOOP = """import re


class Index:
    def __init__(self, words):
        self.words = words

    def lookup(self, text):
        # one
        # two
        # three
        # four
        found = []
        for word in self.words:
            if re.compile(word).match(text):
                found.append(word)
        return found


def unrelated(x):
    return x
"""
CALLER = "from lib.core import Index\n\n\ndef run(text):\n    return Index(['a']).lookup(text)\n"
PROSE = '"""Text."""\n# a comment\n' * 300


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repository")
    files = {"lib/core.py": LOOP, "lib/use.py": CALLER, "lib/prose.py": PROSE, "tests/test_core.py": CALLER}
    made.commit("first", files)
    return made


@pytest.fixture
def improved(repository: Repository) -> str:
    better = LOOP.replace("if re.compile(word).match(text):", "if word in known:").replace(
        "        found = []\n", "        known = set(text.split())  # not: self.lookup(text)\n        found = []\n"
    )
    sha = repository.commit(
        "Look words up in a set\n\nMuch less work. Fixes #7.",
        {"lib/core.py": better, "lib/prose.py": PROSE.replace("comment", "remark")},
    )
    repository.commit(
        "later", {"lib/core.py": "def lookup():\n    return 'a later lookup'\n", "lib/use.py": "lookup()\n" * 9}
    )
    return sha


def test_functions_and_calls_are_those_of_the_commit_and_not_of_the_head(repository: Repository, improved: str) -> None:
    change = only_row(repository.folder, improved)
    context = context_of(repository.folder, change, 8000)
    assert "def lookup(self, text):" in context.functions and "known = set(text.split())" in context.functions
    assert "unrelated" not in context.functions and "later" not in context.functions + context.calls
    assert context.calls.splitlines() == [
        "lib/use.py:5: return Index(['a']).lookup(text)",
        "tests/test_core.py:5: return Index(['a']).lookup(text)",
    ]
    assert (context.issues, context.pull, context.files) == ([7], None, 2)


def test_of_a_long_diff_the_informative_hunk_is_shown(repository: Repository, improved: str) -> None:
    change = only_row(repository.folder, improved)
    context = context_of(repository.folder, change, 900)
    assert "+            if word in known:" in context.diff and "left out" in context.diff
    assert context.diff.count("remark") < change.patch.count("remark")
    assert sum(map(about_tokens, (context.message, context.diff, context.functions, context.calls))) <= 900


def test_relevance_is_that_of_rewritten_code(repository: Repository, improved: str) -> None:
    hunks = hunks_of(only_row(repository.folder, improved).patch)
    assert {hunk.path for hunk in hunks} == {"lib/core.py", "lib/prose.py"}
    best = max(hunks, key=lambda hunk: hunk.relevance)
    assert best.path == "lib/core.py"
    assert all(hunk.relevance == 0 for hunk in hunks if hunk.path == "lib/prose.py"), "comments only"
    assert all(hunk.text.splitlines()[1].startswith("@@ ") for hunk in hunks)


def test_a_diff_that_the_table_cut_is_read_whole(repository: Repository) -> None:
    files = {f"lib/a{number:02}.py": "x = 1\n" * 400 for number in range(20)}
    repository.commit("many", files)
    more = {name: text.replace("1", "2") for name, text in files.items()}
    sha = repository.commit("rewrite", {**more, "lib/core.py": LOOP.replace("for word in self.words:", "if text:")})
    change = only_row(repository.folder, sha)
    assert change.patch_truncated and "lib/core.py" not in change.patch
    assert "+        if text:" in context_of(repository.folder, change, 2000).diff


def test_without_a_clone_or_its_blobs_the_diff_alone_is_shown(
    repository: Repository, improved: str, tmp_path: Path
) -> None:
    change = only_row(repository.folder, improved)
    partial = tmp_path / "partial"
    repository.git("config", "uploadpack.allowFilter", "true")
    repository.git("clone", "-q", "--bare", "--filter=blob:none", f"file://{repository.folder}", str(partial))
    for clone in (None, partial):
        context = context_of(clone, change, 8000)
        assert "+            if word in known:" in context.diff
        assert (context.functions, context.calls) == ("", "")


@pytest.mark.parametrize(
    ("language", "source", "wanted"),
    [
        (
            "python",
            "class A:\n    @cached\n    def f(self,\n          x):\n        return 1\n\n    x = 2\n\ndef g(): pass\n",
            [("A", 1, 7), ("A.f", 2, 5), ("g", 9, 9)],
        ),
        ("cython", "cdef class A:\n    cdef int f(self) except -1:\n        return 1\n", [("A", 1, 3), ("A.f", 2, 3)]),
        ("c", "int x;\n\nint f(int a)\n{\n  return a;\n}\n", [("f", 3, 6)]),
        ("text", "def f(): pass", []),
    ],
)
def test_places_of_definitions(language: str, source: str, wanted: list[tuple[str, int, int]]) -> None:
    assert [tuple(span) for span in spans(language, source.encode())] == wanted
