"""Python's syntax, read by several threads."""

from __future__ import annotations

import ast
from concurrent.futures import ThreadPoolExecutor

import pytest

from perfquarry.data.syntax import parse

NESTED = "x = " + "(" * 60 + "1" + ",)" * 60
TEXT = "\n".join(f"def f{number}(a, *b, c=(1, [2, {{3: 4}}])): return {NESTED[4:]}" for number in range(40))


def test_threads_may_parse_at_once() -> None:
    with ThreadPoolExecutor(8) as pool:
        trees = list(pool.map(parse, [TEXT] * 64))
    assert {len(tree.body) for tree in trees} == {40}


def test_what_is_wrong_is_told_as_ever() -> None:
    with pytest.raises(SyntaxError):
        parse("def :")
    assert ast.dump(parse(b"# coding: latin-1\nx = '\xe9'")) == ast.dump(ast.parse("x = 'é'"))
