"""Each signal is seen on a true example and not on its near miss."""

from __future__ import annotations

import pytest
from judged_changes import change

from perfquarry.miners.judge.diff import parse
from perfquarry.miners.judge.forms import PYTHON
from perfquarry.miners.judge.heuristic import MEANING, observe, weights
from perfquarry.miners.judge.native import NATIVE


def seen(title: str, lines: str = "-a = 1\n+a = 2", body: str = "", path: str = "lib/core.py") -> set[str]:
    made = change(title, {path: lines}, body)
    return {finding.name for finding in observe(made, parse(made.patch))}


@pytest.mark.parametrize(
    ("signal", "title"),
    [
        ("title_speed", "Make parsing of headers faster"),
        ("title_speed", "Speed up lookups"),
        ("title_speed", "Reduce overhead of finish()"),
        ("title_speed", "Fix quadratic behaviour in _parse"),
        ("title_speed", "Turn an O(n) search into a bisection"),
        ("title_speed", "optimise the inner loop"),
        ("title_speed", "Add a fast path for strings"),
        ("title_speed", "Vectorize convolve"),
        ("title_speed", "Merge pull request #12 from someone/faster-headers"),
        ("title_saving", "Avoid copying the buffer"),
        ("title_saving", "Cache the compiled template"),
        ("title_saving", "Lazily build the index"),
        ("perf_prefix", "PERF: loadtxt"),
        ("perf_prefix", "perf(core): loadtxt"),
        ("perf_prefix", "ENH: speed up isin"),
        ("title_fix", "Fix wrong result of isin"),
        ("title_chore", "Bump version to 2.1"),
        ("title_feature", "Add support for named tuples"),
        ("sync", "Merge branch 'master' into feature"),
    ],
)
def test_words_of_a_title(signal: str, title: str) -> None:
    assert signal in seen(title)


@pytest.mark.parametrize(
    "title",
    [
        "Refactor the parser (no performance impact)",
        "This is not faster",
        "Mark slow tests",
        "Speed up the test suite",
        "speed up CI",
        "Speed up travis builds",
        "Improve performance docs",
        "Update the performance guide",
        "Optimize imports",
        "optimize.curve_fit: new keyword",
        "Fast-forward to upstream",
        "Only push if it is a fast forward",
        "Build is faster with ccache",
        "Perform the check first",
        "fastapi integration",
        "Merge pull request #12 from someone/steadfast",
    ],
)
def test_speed_that_is_not_the_libraries(title: str) -> None:
    assert not {"title_speed", "perf_prefix"} & seen(title)


@pytest.mark.parametrize(
    "body",
    [
        "This is 2x faster.",
        "It gives a 30 % speedup",
        "from 5 ms to 1 ms",
        "1000 loops, best of 3: 1.2 us per loop",
        "by 15%",
    ],
)
def test_measurements(body: str) -> None:
    assert "measured" in seen("Change the parser", body=body)


@pytest.mark.parametrize("body", ["Closes 3 issues.", "Needs python 3.11 or 2 to 3", "in 5 s we retry", "asvab"])
def test_numbers_that_measure_nothing(body: str) -> None:
    assert "measured" not in seen("Change the parser", body=body)


CODE = [
    ("vectorised", "-for x in xs:\n-    total += x\n+total = np.add.reduce(xs)",
     "+for x in xs:\n+    total += np.abs(x)"),
    ("loop_removed", "-for x in xs:\n-    f(x)\n+g(xs)", "-for x in xs:\n+for y in xs:"),
    ("comprehension", "-out.append(f(x))\n+out = [f(x) for x in xs]", "+out = [f(x) for x in xs]"),
    ("batched_update", "-for k in ks:\n-    d[k] = 1\n+d.update(ks)", "+d.update(ks)"),
    ("set_membership", "-if x in [1, 2]:\n+if x in {1, 2}:", "-if x in {1, 2}:\n+if x in {1, 3}:"),
    ("set_membership", "-seen = []\n+seen = set()", "-seen = set(a)\n+seen = set(b)"),
    ("caching", "+@lru_cache(maxsize=None)", "-@lru_cache(maxsize=1)\n+@lru_cache(maxsize=2)"),
    ("caching", "+if self._x is None:\n+    self._x = f()", "+if self._x is None:\n+    raise ValueError"),
    ("precompiled", "-m = re.match(P, s)\n+m = _P_re.match(s)", "-m = re.match(P, s)\n+m = re.match(Q, s)"),
    ("precompiled", "-n = struct.unpack('!H', b)\n+n = UNPACK(b)", "+n = UNPACK(b)"),
    ("regex_dropped", "-m = re.sub('a', 'b', s)\n+m = s.replace('a', 'b')",
     "-m = re.sub('a', 'b', s)\n+m = re.sub('a', 'c', s)"),
    ("local_alias", "+append = out.append", "+append = out.append(1)"),
    ("fewer_copies", "-return list(xs.values())\n+return xs", "-return list(a)\n+return list(b)"),
    ("no_copy", "+y = x.astype(t, copy=False)", "+y = x.astype(t, copy=True)"),
    ("string_building", "-s += part\n+s = ''.join(parts)", "-s = part\n+s = ''.join(parts)"),
    ("slots", "+__slots__ = ('a',)", "-__slots__ = ('a',)\n+__slots__ = ('b',)"),
    ("containers", "+queue = deque()", "-queue = deque(a)\n+queue = deque(b)"),
    ("lazy_iteration", "-total = sum([f(x) for x in xs])\n+total = sum(f(x) for x in xs)",
     "+total = sum(f(x) for x in xs)"),
    ("linear_search_dropped", "-x = queue.pop(0)\n+x = queue.popleft()", "-x = q.pop(0)\n+x = r.pop(0)"),
    ("type_check", "-if isinstance(x, str):\n+if type(x) is str:", "+if type(x) is str:"),
    ("checks_dropped", "-if hasattr(x, 'a'):\n+if x.a:", "-if hasattr(x, 'a'):\n+if hasattr(x, 'b'):"),
    ("cheaper_form", "-if x[:1] == 'a':\n+if x.startswith('a'):", "-if x.startswith('b'):\n+if x.startswith('a'):"),
    ("module_constant", "+_NAMES = frozenset(['a'])\n-x = frozenset(['a'])", "+    _NAMES = frozenset(['a'])\n-x = 1"),
    ("early_exit", "+if not xs:\n+    return []", "-if not xs:\n-    return []\n+if not ys:\n+    return []"),
    ("fewer_calls", "-y = f(g(x))\n+y = x", "-y = f(g(x))\n+y = f(h(x))"),
    ("fast_name", "+def _fast_add(a):", "-def _fast_add(a):\n+def _fast_sub(a):"),
    ("out_of_loop", " def f(xs):\n+    size = g(y)\n     for x in xs:\n-        size = g(y)",
     " def f(xs):\n+    size = g(y)\n-    size = h(y)"),
    ("computed_once", "-f(self.a.b.c, self.a.b.c)\n+abc = self.a.b.c\n+f(abc, abc)", "+abc = self.a.b.c"),
    ("lazy_import", "-import inspect\n+    import inspect", "+import inspect"),
    ("threads", "+pool = ThreadPool(4)", "-pool = ThreadPool(4)\n+pool = ThreadPool(8)"),
    ("new_errors", "+raise ValueError(x)", "-raise ValueError(x)\n+raise ValueError(y)"),
    ("type_hints", "-def f(x):\n+def f(x) -> int:", "-def f(x) -> str:\n+def f(x) -> int:"),
    ("new_public_names", "+def fetch(x):", "+def _fetch(x):"),
    ("comment_speed", "+# this avoids the overhead of a call\n+a = 3", "+# this is a call\n+a = 3"),
    ("only_additions", "+a = 3", "-a = 1\n+a = 3"),
    ("only_deletions", "-a = 3", "-a = 1\n+a = 3"),
]  # fmt: skip


@pytest.mark.parametrize(("signal", "lines", "near_miss"), CODE)
def test_kinds_of_code_change(signal: str, lines: str, near_miss: str) -> None:
    assert signal in seen("Change it", lines)
    assert signal not in seen("Change it", near_miss)


NATIVE_CODE = [
    ("nogil", "lib/a.pyx", "+with nogil:", "+with gil:"),
    ("typed", "lib/a.pyx", "+cdef int i", "+cdef class Heap:"),
    ("cython_checks_off", "lib/a.pyx", "+@cython.boundscheck(False)", "+@cython.embedsignature(True)"),
    ("simd", "lib/a.c", "+__m256i v = _mm256_load_si256(p);", "+int v = mm(p);"),
    ("unchecked_calls", "lib/a.c", "+PyList_GET_ITEM(l, i);", "-PyList_GET_ITEM(l, i);\n+PyList_GET_ITEM(l, j);"),
    ("compiler_hints", "lib/a.c", "+static inline int f(void) {", "+static int f(void) {"),
    ("block_copy", "lib/a.c", "+memcpy(a, b, n);", "+a[i] = b[i];"),
    ("fewer_allocations", "lib/a.c", "-p = malloc(n);\n+p = stack;", "-p = malloc(n);\n+p = malloc(m);"),
    ("blas", "lib/a.c", "+cblas_dgemm(a, b);", "+my_gem(a, b);"),
]  # fmt: skip


@pytest.mark.parametrize(("signal", "path", "lines", "near_miss"), NATIVE_CODE)
def test_kinds_of_native_change(signal: str, path: str, lines: str, near_miss: str) -> None:
    assert signal in seen("Change it", lines, path=path)
    assert signal not in seen("Change it", near_miss, path=path)


def test_lines_that_only_moved_are_no_signal() -> None:
    assert not {"caching", "slots", "fewer_copies"} & seen(
        "Move it", "-@lru_cache\n-__slots__ = ()\n-list(x)\n+@lru_cache\n+__slots__ = ()\n+list(x)"
    )


def test_files_touched() -> None:
    made = change(
        "Change it", {"lib/a.py": "+a", "benchmarks/bench_a.py": "+b", "docs/x.rst": "+c", "tests/test_a.py": "+d"}
    )
    names = {finding.name for finding in observe(made, parse(made.patch))}
    assert {"benchmark_files", "docs_changed", "tests_added"} <= names
    assert not {"benchmark_files", "docs_changed", "tests_added"} & seen("Change it")


def test_every_signal_can_be_explained_and_every_form_is_tested() -> None:
    assert set(weights().by_signal) <= set(MEANING)
    tested = {signal for signal, *_ in CODE} | {signal for signal, *_ in NATIVE_CODE}
    assert {form.name for form in PYTHON + NATIVE} <= tested
