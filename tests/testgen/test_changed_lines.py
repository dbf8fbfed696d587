"""Which changed lines a test can execute."""

import textwrap

from perfquarry.testgen.changed_lines import (
    callers_of,
    differing_lines,
    in_functions,
    named_functions,
    standing_for,
)
from perfquarry.testgen.imports import parse


def code(text: str) -> bytes:
    return textwrap.dedent(text).encode()


def test_only_differing_lines_are_named() -> None:
    base = b"a\nb\nc\nd\n"
    assert differing_lines(base, b"a\nB\nc\nx\nd\n") == ({2}, {2, 4})
    assert differing_lines(base, b"a\nc\nd\n") == ({2}, set())
    assert differing_lines(base, base.replace(b"\n", b"\r\n")) == (set(), set())
    assert differing_lines(b"", b"a\n") == (set(), {1})


def test_form_feeds_and_line_separators_do_not_shift_numbers() -> None:
    text = "x = '\u2028'\n\x0c\ndef f():\n    return 1\n".encode()
    assert differing_lines(text, text.replace(b"1", b"2")) == ({4}, {4})


SOURCE = code(
    '''\
    import re

    LIMIT = 3

    @cache
    def outer(a,
              b=2):
        """Text."""
        # a comment
        total = [
            a,
            b,
        ]
        for item in total:
            if item:
                use(item)
            else:
                pass
        try:
            def inner():
                return a
        except (ValueError,
                KeyError):
            pass
        return inner
    '''
)


def test_a_statement_of_several_lines_is_hit_by_any_of_them() -> None:
    targets = in_functions("m.py", SOURCE, set(range(1, 26)))
    assert targets.hit_by([10]) == [5, 6, 7, 10, 11, 12, 13]
    assert targets.hit_by([14]) == [5, 6, 7, 14]
    assert 16 not in targets.hit_by([14, 15])
    assert targets.hit_by([22]) == [5, 6, 7, 22, 23]


def test_comments_docstrings_and_module_lines_do_not_count() -> None:
    assert in_functions("m.py", SOURCE, {1, 2, 3, 8, 9, 17}).spans == {}
    assert in_functions("m.py", b"print 'old'\n", {1}).spans == {}


def test_decorator_and_signature_are_hit_by_the_body() -> None:
    targets = in_functions("m.py", SOURCE, {5, 7, 20})
    assert targets.hit_by([5, 6, 7]) == []
    assert targets.hit_by([14]) == [5, 7]
    assert targets.hit_by([21]) == [5, 7, 20]


def test_functions_stand_for_changed_definitions() -> None:
    source = code(
        """\
        import re
        TABLE = {1: 2}
        class Node:
            __slots__ = ("x",)
            def size(self):
                return 1
        class Leaf:
            def size(self):
                return 2
        def look(key):
            return TABLE[key]
        def match(text):
            return re.match("a", text)
        """
    )
    assert set(standing_for("m.py", source, {2}, []).spans) == {11}
    assert set(standing_for("m.py", source, {1}, []).spans) == {13}
    assert set(standing_for("m.py", source, {4}, []).spans) == {6}
    assert set(standing_for("m.py", source, {3}, []).spans) == {6}
    assert set(standing_for("m.py", source, set(), ["Leaf.size"]).spans) == {9}
    made = code(
        """\
        class Base(object):
            __slots__ = ()
        class Middle(Base): ...
        class Other:
            def f(self):
                return 1
        class Leaf(Other, Middle):
            def g(self):
                return 2
        """
    )
    assert set(standing_for("m.py", made, {2}, []).spans) == {9}
    told = code('class A:\n    """Text.\n\n    More."""\n    def f(self):\n        return 1\n')
    assert standing_for("m.py", told, {2, 4}, []).spans == {}, "a docstring of a class is no definition"


def test_names_of_functions_are_qualified() -> None:
    tree = parse("if x:\n    class A:\n        class B:\n            async def f(self): ...\ndef g(): ...\n")
    assert tree is not None
    assert [name for name, _ in named_functions(tree)] == ["A.B.f", "g"]


def test_who_uses_a_function_is_followed_through_private_ones() -> None:
    source = b"""
class Builder:
    def _columns(self): ...
    def get_sql(self): return self._body()
    def _body(self): return self._columns()
    def __init__(self): self._columns()

class Query:
    def create_table(self): return Builder()
    def other(self): return self.create_table()

def alone(): ...
"""
    assert callers_of(source, ["Builder._columns"]) == {"get_sql", "create_table"}
    assert callers_of(source, ["Query.other", "Builder.gone"]) == set()
    assert callers_of(b"print 1", ["f"]) == set()


def test_users_of_what_a_function_made_at_import_count_beside_it() -> None:
    source = code("""\
        def make():
            return {1: 2}

        def other():
            return make()

        try:
            TABLE = make()
        except ValueError:
            pass
        LOOKUP = TABLE.get

        def look(n):
            return LOOKUP(n)

        class Reader:
            def read(self):
                return TABLE[self]
        """)
    assert in_functions("m.py", source, {2}).spans == {2: {2, 14, 18}}
    assert in_functions("m.py", source, {5, 14}).spans == {5: {5}, 14: {14}}
    assert in_functions("m.py", code("def make():\n    return 1\nprint(make())\n"), {2}).spans == {2: {2}}


def test_a_module_all_of_whose_functions_changed_keeps_nobody_busy() -> None:
    count = 1000
    makers = [
        f"def make_{number}():\n    return {number}\nTABLE_{number} = make_{number}()\n" for number in range(count)
    ]
    users = [f"def use_{number}():\n    return TABLE_{number}\n" for number in range(count)]
    spans = in_functions("m.py", "".join([*makers, *users]).encode(), set(range(1, 3 * count + 1))).spans
    assert len(spans) == 2 * count
    assert all(spans[3 * number + 2] == {3 * number + 2, 3 * count + 2 * number + 2} for number in range(count))
