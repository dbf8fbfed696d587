"""Tables for terminals of any width: no word is ever broken, none is lost."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from perfquarry.data.output import Listing, show

WORDS = st.lists(st.text("abc_:./×δ[]", min_size=1, max_size=40), max_size=6).map(" ".join)


def printed(table: Listing, width: int) -> str:
    out = io.StringIO()
    show(table, console=Console(file=out, width=width))
    return out.getvalue()


@given(rows=st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=4), width=st.integers(20, 130))
def test_no_word_is_broken_or_lost(rows: list[tuple[str, str, str]], width: int) -> None:
    table = Listing(("first", ">second", "third"), "Title of it")
    for row in rows:
        table.add(*row)
    words = printed(table, width).split()
    assert all(word in words for row in rows for cell in row for word in cell.split())


def test_it_is_a_table_where_that_fits_and_blocks_where_it_does_not() -> None:
    table = Listing(("task", ">figure", "why"))
    table.add("x" * 30, "1.25×", "tests/test_of_a_long_name.py::test_one is slow")
    wide, narrow = printed(table, 120), printed(table, 60)
    assert wide.splitlines()[0].split() == ["task", "figure", "why"]
    assert all(len(line) <= 120 for line in wide.splitlines()) and "figure: " not in wide
    assert narrow.splitlines()[0] == "x" * 30 and "figure: 1.25×" in narrow
    assert all(len(line) <= 60 for line in narrow.splitlines())


@pytest.mark.parametrize("width", [40, 80])
def test_figures_stand_right_in_their_columns(width: int) -> None:
    table = Listing(("name", ">count"), head=False)
    table.add("a", "1")
    table.add("b", "100")
    assert printed(table, width).splitlines() == ["a    1", "b  100"]
