"""Measurements quoted in discussions, in the forms in which tools print them and people report them."""

from __future__ import annotations

import pytest

from perfquarry.miners.pulls.results import gains, quoted_results

ASV = """
       before           after         ratio
     [2a1f3c4d]       [9b8c7d6e]
     <main>           <faster>
-     1.52±0.02ms          755±10μs     0.50  bench_core.Index.time_lookup(100, 'a')
+       12.0±0.1s        13.2±0.1s     1.10  bench_core.time_other
"""
ASV_PIPES = """
| Change | Before [a] <main> | After [b] | Ratio | Benchmark |
|---|---|---|---|---|
| - | 250±3μs | 125±2μs | 0.5 | bench.time_x |
"""
PYPERF = "Mean +- std dev: [base] 12.0 ms +- 0.1 ms -> [head] 4.00 ms +- 0.05 ms: 3.00x faster (-67%)"
PYPERF_TABLE = """
+-----------+---------+-----------------------+
| Benchmark | base    | head                  |
+===========+=========+=======================+
| loads     | 12.3 ms | 4.1 ms: 3.00x faster  |
+-----------+---------+-----------------------+
| dumps     | 1.0 us  | not significant       |
+-----------+---------+-----------------------+
"""
TABLE = """
| case | main | this PR |
| --- | --- | --- |
| `f(10)` | 4 s | 1 s |
| g | 30 ms | 20 ms |

text | 1 s | 2 s |
"""
TIMEIT = """
On main:
```
In [2]: %timeit f(x)
1.20 ms ± 4 µs per loop (mean ± std. dev. of 7 runs, 1000 loops each)
```
With this PR:
```
In [2]: %timeit f(x)
400 µs ± 2.1 µs per loop (mean ± std. dev. of 7 runs, 1000 loops each)
```
"""
OLD_TIMEIT = "$ python -m timeit 'f()'\n100000 loops, best of 3: 21.5 usec per loop"


def figures(text: str) -> list[tuple[str, str, float | None, float | None, float | None]]:
    return [
        (
            one.form,
            one.name,
            one.before and pytest.approx(one.before),
            one.after and pytest.approx(one.after),
            one.speedup,
        )
        for one in quoted_results(text)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ASV, [
            ("asv", "bench_core.Index.time_lookup(100, 'a')", 1.52e-3, 755e-6, 2.0132),
            ("asv", "bench_core.time_other", 12.0, 13.2, 0.9091),
        ]),
        (ASV_PIPES, [("asv", "bench.time_x", 250e-6, 125e-6, 2.0)]),
        (PYPERF, [("pyperf", "", 12e-3, 4e-3, 3.0)]),
        (PYPERF_TABLE, [("table", "loads", 12.3e-3, 4.1e-3, 3.0)]),
        (TABLE, [("table", "f(10)", 4.0, 1.0, 4.0), ("table", "g", 0.03, 0.02, 1.5)]),
        (TIMEIT, [("timeit", "f(x)", 1.2e-3, 400e-6, 3.0)]),
        (OLD_TIMEIT, [("timeit", "'f()'", None, 21.5e-6, None)]),
        ("It went from 1,200 ms to about 0.3 s here.", [("prose", "", 1.2, 0.3, 4.0)]),
        ("parse: 3.0 us -> 1.5 us", [("prose", "parse", 3e-6, 1.5e-6, 2.0)]),
        ("Now 2.5x faster", [("prose", "", None, None, 2.5)]),
        ("takes 75 % less time", [("prose", "", None, None, 4.0)]),
    ],
)  # fmt: skip
def test_forms(text: str, expected: list[tuple[str, str, float | None, float | None, float | None]]) -> None:
    assert figures(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Fixes #12 from 2 to 3 places", "a timeout of 30 s", "versions 1.2 -> 1.3",
        "| a | b | c |\n|---|---|---|\n| 1 | 2 | 3 |",
        "from 3 minutes ago", "python 3.8 to 3.9 s/foo/bar/", "",
    ],
)  # fmt: skip
def test_no_measurement(text: str) -> None:
    assert quoted_results(text) == []


def test_many_lines_are_bounded_and_a_hostile_text_takes_no_time() -> None:
    assert len(quoted_results("from 2 s to 1 s\n" * 1000)) == 50
    assert quoted_results("1" * 200_000 + "| " * 50_000 + "± " * 50_000) == []


def test_gains_are_those_that_are_faster_the_largest_first() -> None:
    found = quoted_results(f"{ASV}\nnow 7x faster\nfrom 1.00 s to 0.99 s")
    assert [one.speedup for one in gains(found)] == [7.0, 2.0132]
