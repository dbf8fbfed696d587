"""What callers may notice of a change, and the class that follows, on real commits."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_repository import Repository, only_row

from perfquarry.data.records import Effect
from perfquarry.miners.intent import effects_of, opinion_of
from perfquarry.miners.intent.model import IntentAnswer, intent_request, opinion_in

BASE = """\
import re

LINK_RE = re.compile("<.*>")


class Items(list):
    def __init__(self, items=()):
        self.items = items

    def __repr__(self):
        return "Items"

    def __eq__(self, other):
        return self.items == other.items

    def find(self, name, limit=10):
        for item in self.items:
            if item == name:
                return item
        raise KeyError(name)

    def clear(self):
        self.items = []


def total(items, start=0, *, key=None):
    found = start
    for item in items:
        found += item
    return found


def _hidden(items):
    return items
"""
TEST = (
    "from pkg.core import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n\n\ndef test_no():\n    pass\n"
)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "work")
    made.commit("base", {"pkg/__init__.py": "", "pkg/core.py": BASE, "tests/test_core.py": TEST, "tests/a.html": "x\n"})
    return made


def effects(repository: Repository, files: dict[str, str | bytes]) -> list[Effect]:
    sha = repository.commit("Make it faster", files)
    return effects_of(repository.folder, only_row(repository.folder, sha))


@pytest.mark.parametrize(
    ("old", "new", "kind", "words"),
    [
        ("def _hidden(items):", "def _other(items):", "", ""),
        ("found += item\n", "found = found + item\n", "", ""),
        ("def total(items, start=0, *, key=None):", "def total(items, start=0, *, key=None, more=1):", "", ""),
        ("start=0, *, key=None", "start=None, *, key=None", "", ""),
        ("def total(", "def total_of(", "removed", "total is gone"),
        ("    def clear(self)", "    def empty(self)", "removed", "Items.clear"),
        ("start=0, *, key=None", "start=0", "signature", "key is gone"),
        ("start=0, *, key=None", "start, *, key=None", "signature", "start must be given"),
        ("name, limit=10", "limit, name=10", "signature", "another order"),
        ("limit=10", "limit=20", "signature", "no longer 10"),
        ("class Items(list)", "class Items(dict)", "bases", "list"),
        ('return "Items"', 'return "Items()"', "special", "__repr__"),
        ("    def __eq__(self, other):\n        return self.items == other.items\n", "", "special", "__eq__ gone"),
        ("raise KeyError(name)", "raise LookupError(name)", "raises", "LookupError"),
        ("    found = start\n", "    found = start\n    print(found)\n", "output", "print"),
        ('"<.*>"', '"<[^>]*>"', "pattern", "LINK_RE"),
        ("        self.items = []", "        return self", "returns", "Items.clear"),
        ("self.items", "self._items", "attribute", "items"),
    ],
)
def test_what_callers_may_notice(repository: Repository, old: str, new: str, kind: str, words: str) -> None:
    assert old in BASE
    found = effects(repository, {"pkg/core.py": BASE.replace(old, new)})
    if not kind:
        assert found == []
    else:
        assert any(one.kind == kind and words in one.text for one in found), found
        assert found == sorted(found, key=lambda one: -one.weight)


def test_what_moved_or_is_bound_by_an_import_is_still_there(repository: Repository) -> None:
    start = BASE.index("def total(")
    rest, moved = BASE[:start], BASE[start:]
    head = "from pkg.sums import total\n" + rest
    assert effects(repository, {"pkg/core.py": head, "pkg/sums.py": moved}) == []


def test_names_of_private_modules_count_where_a_package_imports_them(repository: Repository) -> None:
    files: dict[str, str | bytes] = {"pkg/__init__.py": "from pkg._in import shown\n"}
    repository.commit("more", files | {"pkg/_in.py": "def shown():\n    pass\n\n\ndef inner():\n    pass\n"})
    assert effects(repository, {"pkg/_in.py": "def shown():\n    pass\n"}) == []
    (gone,) = effects(repository, {"pkg/_in.py": "def other():\n    pass\n"})
    assert "shown is gone" in gone.text


def test_all_says_what_is_public(repository: Repository) -> None:
    repository.commit("all", {"pkg/core.py": '__all__ = ["Items"]\n' + BASE})
    assert (
        effects(repository, {"pkg/core.py": '__all__ = ["Items"]\n' + BASE.replace("def total(", "def sum_of(")}) == []
    )


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"tests/test_core.py": TEST.replace("def test_no():\n    pass\n", "")}, "test_no"),
        ({"tests/test_core.py": TEST.replace("test_no", "test_yes")}, ""),
        ({"tests/a.html": "y\n"}, "a.html"),
        ({"tests/b.html": "y\n"}, ""),
    ],
)
def test_tests_that_are_changed_to_pass(repository: Repository, files: dict[str, str | bytes], words: str) -> None:
    found = effects(repository, files | {"pkg/core.py": BASE.replace("found += item", "found = found + item")})
    assert [one.kind for one in found] == (["tests"] if words else [])
    assert not words or words in found[0].text


def test_python_2_and_broken_files_say_nothing(repository: Repository) -> None:
    assert effects(repository, {"pkg/core.py": "print 'x'\n"}) == []


STRONG, WEAK = (Effect(kind="removed", text=f"weight {one}", weight=one) for one in (1.0, 0.5))


@pytest.mark.parametrize(
    ("title", "body", "found", "intent"),
    [
        ("Make total() faster", "", [], "intended"),
        ("Make total() faster", "", [WEAK], "intended"),
        ("Make total() faster", "", [WEAK, WEAK], "behaviour_changed"),
        ("Make total() faster", "", [STRONG], "behaviour_changed"),
        ("Cache the lengths", "", [], "intended"),
        ("Avoid reusing objects", "Fixes #7", [], "side_effect"),
        ("Fix a crash in total()", "", [], "side_effect"),
        ("Fix slow totals", "", [], "intended"),
        ("Rework totals", "", [], "side_effect"),
        ("Rework totals", "Twice as fast: 20 ms instead of 40 ms.", [], "intended"),
    ],
)
def test_the_class_by_effects_and_words(title: str, body: str, found: list[Effect], intent: str) -> None:
    opinion = opinion_of(title, f"{title}\n\n{body}", found)
    assert opinion.intent == intent and opinion.evidence


def test_a_model_is_shown_both_sides_and_its_quotes_are_looked_up(repository: Repository) -> None:
    sha = repository.commit("Sum at once", {"pkg/core.py": BASE.replace("found += item", "found = found + item")})
    change = only_row(repository.folder, sha)
    request = intent_request(repository.folder, change, "diff --git a/tests/x.py b/tests/x.py\n+assert True\n")
    assert all(one in request.text for one in ("Sum at once", "found = found + item", "+assert True"))
    good = IntentAnswer(why="Less work.", evidence=["found += item", "not there"], intent="side_effect")
    opinion = opinion_in(good, change.patch)
    assert opinion is not None and opinion.intent == "side_effect"
    assert opinion.evidence == ["Less work.", "quote that is not in the diff: not there"]
    assert opinion_in(good.model_copy(update={"evidence": ["not there"]}), change.patch) is None
