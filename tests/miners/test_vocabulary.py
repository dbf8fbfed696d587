"""What only the head of a change says, and sizes of trees."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_repository import Repository, only_row

from perfquarry.miners.vocabulary import content_at, only_at_head, size_at, words_of

BASE = 'LIMIT = 10\n\ndef total(items):\n    """Adds up."""\n    return sum(items, 0)\n'
HEAD = (
    'import heapq\nLIMIT = 4096\n\ndef total(items):\n    """Adds cleverly."""\n    # uses_comment\n'
    '    table = fast_table(items, key="by_size")\n    return helper.answer_of(table)\n'
)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "work")
    made.commit(
        "base", {"pkg/core.py": BASE, "pkg/fast.c": "int a;\n", "README.md": "the helper", "tests/test_a.py": "x"}
    )
    return made


def test_words_lines_and_literals_that_no_file_of_the_base_has(repository: Repository) -> None:
    source = 'int a;\nint quick_sum; // slow_word\nchar *s = "in C", t = 7777;\n'
    sha = repository.commit("head", {"pkg/core.py": HEAD, "pkg/fast.c": source, "CHANGES.rst": "prose_word"})
    found = only_at_head(repository.folder, only_row(repository.folder, sha))
    assert found.identifiers == {"heapq", "table", "fast_table", "answer_of", "quick_sum", "char"}
    assert found.literals == {"4096", "by_size", "in C", "7777"}
    assert "return helper.answer_of(table)" in found.lines and "def total(items):" not in found.lines


def test_a_change_without_source_says_nothing(repository: Repository) -> None:
    sha = repository.commit("docs", {"CHANGES.rst": "prose_word"})
    assert not any(only_at_head(repository.folder, only_row(repository.folder, sha)))


def test_source_that_does_not_parse_is_read_as_it_looks() -> None:
    identifiers, literals, _ = words_of("a.py", b"def broken(:\n    x = 'text in it'\n")
    assert {"broken"} <= identifiers and literals == {"text in it"}


def test_sizes_leave_tests_and_documentation_out(repository: Repository) -> None:
    assert size_at(repository.folder, repository.head()) == (2, 6)


def test_contents_of_files_that_exist(repository: Repository) -> None:
    found = content_at(repository.folder, repository.head(), ["pkg/fast.c", "nowhere"])
    assert found == {"pkg/fast.c": b"int a;\n"}
