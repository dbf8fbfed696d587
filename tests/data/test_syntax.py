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


def test_what_a_librarys_thread_disturbs_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ast.parse("x = 1")
    answers: list[ast.Module | SystemError] = [SystemError("AST constructor recursion depth mismatch"), found]

    def disturbed(_: object) -> ast.Module:
        answer = answers.pop(0)
        if isinstance(answer, SystemError):
            raise answer
        return answer

    monkeypatch.setattr(ast, "parse", disturbed)
    assert parse("x = 1") is found and not answers


def test_what_is_wrong_is_reported_as_ever() -> None:
    with pytest.raises(SyntaxError):
        parse("def :")
    assert ast.dump(parse(b"# coding: latin-1\nx = '\xe9'")) == ast.dump(ast.parse("x = 'é'"))
