"""The heuristic judge: hard rules, ranking, reasons, hostile texts."""

from __future__ import annotations

import time

import pytest
from judged_changes import change

from perfquarry.data.errors import InputError
from perfquarry.data.records import Change, FileChange, Reason, Stamp, Verdict
from perfquarry.miners.judge import Judge, make_judge
from perfquarry.miners.settings import JudgeSettings

STAMP = Stamp(repo="hand-made", stage_version="1", config_hash="0")


@pytest.fixture
def judge() -> Judge:
    return make_judge(JudgeSettings(), STAMP)


def test_an_unknown_judge_is_bad_input() -> None:
    with pytest.raises(InputError, match=r"'oracle'.*heuristic"):
        make_judge(JudgeSettings(judge="oracle"), STAMP)


def rejected(verdict: Verdict, reason: Reason) -> bool:
    return (verdict.status, verdict.reason, verdict.is_performance) == ("rejected", reason.value, "no")


@pytest.mark.parametrize("path", ["tests/test_core.py", "docs/speed.rst", "setup.py"])
def test_changes_without_source_are_rejected(judge: Judge, path: str) -> None:
    verdict = judge.judge(change("Make everything 10x faster", {path: "-a = 1\n+a = 2"}))
    assert rejected(verdict, Reason.NO_SOURCE_CHANGE)
    assert verdict.probability == 0 and "only tests" in verdict.why


def moved(added: int) -> Change:
    made = change("Speed: move the fast core", {})
    file = FileChange(
        path="lib/b.py", old_path="lib/a.py", status="renamed", added=added, deleted=0, role="source", language="python"
    )
    return made.model_copy(update={"files": [file]})


def test_pure_renames_are_rejected(judge: Judge) -> None:
    assert rejected(judge.judge(moved(0)), Reason.RENAME_ONLY)
    assert judge.judge(moved(3)).reason != Reason.RENAME_ONLY


@pytest.mark.parametrize(
    "lines",
    [
        "-# slow\n+# fast, see the benchmarks",
        ' def f():\n     """\n-    Slow text.\n+    Fast text = good (see x).\n     """',
        ' def f():\n-    """Slow text."""\n+    """Fast text = good."""',
        "-x = 1   # old\n+x = 1  # new",
        "-x = 1 \n+x = 1\n+",
        "-Explain how fast it is to users of it\n+Explain how fast it really is to users",
        '-__version__ = "0.5.3+dev"\n+__version__ = "0.5.4"',
        "-version_info = (1, 2)\n-__date__ = '2020'\n+version_info = (1, 3)\n+__date__ = '2021'",
    ],
)
def test_comments_and_white_space_are_rejected(judge: Judge, lines: str) -> None:
    assert rejected(judge.judge(change("Make it faster", {"lib/core.py": lines})), Reason.COMMENTS_ONLY)


@pytest.mark.parametrize(
    "lines",
    [
        "-    x = 1\n+x = 1",  # white space that means something
        '-x = "# slow"\n+x = "# fast"',
        "-return a and b or c\n+return a or b or c",
        '     """Text."""\n-    x = 1\n+    x = 2',
        '     End of a text.\n     """\n-    x = f(1)\n+    x = f(2)',
        '     text."""\n-    x = f(1)\n+    x = f(2)',
        ' x = """\n-a\n+b\n """',
        "-    version = 1\n+    version = 2",  # of a format, perhaps
        "-version = (read())\n+version = (read_fast())",
    ],
)
def test_code_is_no_comment(judge: Judge, lines: str) -> None:
    assert judge.judge(change("Make it faster", {"lib/core.py": lines})).reason != Reason.COMMENTS_ONLY


def test_white_space_means_nothing_in_c(judge: Judge) -> None:
    made = change("Faster", {"lib/a.c": "-  x = 1;\n+\tx = 1;\n-/* a */\n+// b"})
    assert rejected(judge.judge(made), Reason.COMMENTS_ONLY)


@pytest.mark.parametrize(
    ("title", "body"),
    [
        ('Revert "Make it faster"', "This reverts commit 1234567."),
        ("revert: make it faster", ""),
        ("Back out the fast path", "This reverts commit 1234567."),
        ('Revert "Revert "Revert "Make it faster"""', ""),
    ],
)
def test_reverts_are_rejected(judge: Judge, title: str, body: str) -> None:
    assert rejected(judge.judge(change(title, body=body)), Reason.REVERT)


def test_merged_reverts_are_rejected(judge: Judge) -> None:
    made = change("Merge pull request #7 from me/revert-6-fast", body='Revert "Make it faster"', merge=True)
    assert rejected(judge.judge(made), Reason.REVERT)


def test_landing_again_is_no_revert(judge: Judge) -> None:
    made = change('Revert "Revert "Make parsing 3x faster""', body="This reverts commit 1234567.")
    assert judge.judge(made).status == "kept"


def test_the_thresholds_are_those_of_the_settings() -> None:
    made = change("Cache the result")
    probability = make_judge(JudgeSettings(), STAMP).judge(made).probability

    def answer(keep: float, yes: float) -> tuple[str, str | None]:
        verdict = make_judge(JudgeSettings(keep_from=keep, yes_from=yes), STAMP).judge(made)
        assert verdict.probability == probability
        return verdict.is_performance, verdict.reason

    assert answer(probability / 2, probability) == ("yes", None)
    assert answer(probability, (1 + probability) / 2) == ("unsure", None)
    assert answer((1 + probability) / 2, 1.0) == ("no", Reason.UNLIKELY)


LOUD = change("Speed up header parsing", {"lib/core.py": "-for x in xs:\n-    f(x)\n+g(xs)"}, "About 2x faster.")
QUIET = {
    "cache": (
        "-return compute(self.a, self.b)\n+if self._value is None:\n+    self._value = compute(self.a, self.b)\n"
        "+return self._value"
    ),
    "set": "-seen = []\n+seen = set()\n-    seen.append(x)\n+    seen.add(x)",
    "copies": "-for x in list(xs.keys()):\n+for x in xs:\n-    y = list(x)\n+    y = x",
    "constant": "+_PATTERN_re = re.compile('a+')\n-    if re.match('a+', s):\n+    if _PATTERN_re.match(s):",
}  # fmt: skip
DULL = {
    "feature": change(
        "Add support for tuples", {"lib/core.py": "+def tuples(x):\n+    raise TypeError(x)", "docs/a.rst": "+x"}
    ),
    "fix": change(
        "Fix wrong result for empty input", {"lib/core.py": "-if x:\n+if x is not None:", "tests/test_a.py": "+a"}
    ),
    "version": change("Bump version to 1.2.3", {"lib/__init__.py": "-v = '1.2.2'\n+v = '1.2.3'"}),
    "sync": change("Merge branch 'main' into topic", {f"lib/{n}.py": "-a = 1\n+b = 2" for n in range(40)}, merge=True),
}


def test_ranking(judge: Judge) -> None:
    quiet = [judge.judge(change("Tidy work()", {"lib/core.py": lines})) for lines in QUIET.values()]
    dull = [judge.judge(made) for made in DULL.values()]
    loud = judge.judge(LOUD)
    assert loud.is_performance == "yes"
    assert loud.probability > max(v.probability for v in quiet)
    assert min(v.probability for v in quiet) > max(v.probability for v in dull)


def test_speed_of_tests_is_not_speed(judge: Judge) -> None:
    lines = {"lib/testing.py": "-a = 1\n+a = 2"}
    real, other = (judge.judge(change(title, lines)) for title in ("Speed up lookups", "Speed up the test suite"))
    assert real.probability > 5 * other.probability


@pytest.mark.parametrize("kind", QUIET)
def test_silent_improvements_go_on(judge: Judge, kind: str) -> None:
    verdict = judge.judge(change("Tidy work()", {"lib/core.py": QUIET[kind]}))
    assert verdict.status == "kept", (verdict.probability, verdict.why)


@pytest.mark.parametrize("kind", DULL)
def test_dull_changes_do_not(judge: Judge, kind: str) -> None:
    verdict = judge.judge(DULL[kind])
    assert verdict.reason == Reason.UNLIKELY and verdict.probability < 0.03


def test_merges_are_judged_by_what_they_bring(judge: Judge) -> None:
    merge = change(
        "Merge pull request #3 from me/topic", {"lib/core.py": QUIET["cache"]}, "Make lookups faster", merge=True
    )
    assert judge.judge(merge).is_performance == "yes"


def test_verdicts_explain_themselves(judge: Judge) -> None:
    verdict = judge.judge(LOUD)
    assert verdict.why.startswith("for: ") and "speed" in verdict.why
    assert verdict.signals == sorted(verdict.signals, key=lambda s: (-abs(s.weight), s.name))
    assert all(len(signal.evidence) <= 100 for signal in verdict.signals)
    assert (verdict.change_id, verdict.judge, verdict.tokens) == (LOUD.change_id, "heuristic", 0)


def test_equal_changes_get_equal_verdicts(judge: Judge) -> None:
    changes = [LOUD, *DULL.values()]
    first = [v.model_dump(exclude={"created_at"}) for v in judge.judge_all(changes)]
    again = [v.model_dump(exclude={"created_at"}) for v in make_judge(JudgeSettings(), STAMP).judge_all(changes)]
    assert first == again and len(first) == len(changes)


HOSTILE = {
    "long title": change("faster " * 150_000),
    "long word": change("a" * 1_000_000, body="b" * 1_000_000),
    "spaces": change(" " * 500_000 + "x", body="\n" * 500_000),
    "negations": change("not " * 5_000, body="no " * 300_000),
    "nothing": change("", {"lib/core.py": ""}),
    "NULs and emoji": change("faster \0 🚀\ud7ff", {"lib/core.py": "-\0🚀 = 1\n+\0🚀 = 2"}, "\0" * 1000),
    "reverts": change("Revert " * 100_000),
    "digits": change("1" * 200_000, body="10 ms " * 100_000),
    "dots": change("x", {"lib/core.py": "\n".join("+a = " + "a." * 200 for _ in range(500))}),
    "for": change("x", {"lib/core.py": "\n".join("-" + "for :" * 80 + "x" for _ in range(500))}),
    "brackets": change("x", {"lib/core.py": "\n".join("-" + "([{" * 100 + "\n+" + "[(" * 150 for _ in range(200))}),
    "quotes": change("x", {"lib/core.py": "\n".join("+" + '"""' * 100 for _ in range(300))}),
    "none": change("x", {"lib/core.py": "+if self.a is None:" + "\n+" * 10_000}),
    "one line": change("x", {"lib/core.py": "+" + "x" * 60_000}),
    "words": change("x", {"lib/core.py": "\n".join("+" + "cache regex pattern " * 15 for _ in range(200))}),
    "assignments": change("x", {"lib/core.py": "\n".join(f"-f(a.b[{n}])\n+v{n} = a.b[{n}]" for n in range(1500))}),
    "many files": change("x", {f"lib/{n}.py": "-a\n+b" for n in range(3000)}),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_texts_are_judged_quickly(judge: Judge, kind: str) -> None:
    judge.judge(LOUD)  # the weights are read once
    start = time.process_time()
    verdict = judge.judge(HOSTILE[kind])
    spent = time.process_time() - start
    assert 0 <= verdict.probability <= 1
    assert spent < 1.0, "an expression is not linear"  # 20 times the budget: only a blow-up gets there


@pytest.mark.parametrize(
    "title",
    ["Make everything 5x slower", "Slow down the parser", "perf: made lookups 30% slower", "Introduce a slowdown"],
)
def test_what_becomes_slower_does_not_rank_high(judge: Judge, title: str) -> None:
    lines = {"lib/core.py": "-    return cache[key]\n+    return compute(key)"}
    slower, neutral, gain = (judge.judge(change(one, lines)) for one in (title, "Tidy work()", "Speed up lookups"))
    assert slower.probability <= neutral.probability < gain.probability


@pytest.mark.parametrize(
    "title", ["Make slow path faster", "Fix 5x slower import", "Avoid slowdown in parse", "Make lookups no longer slow"]
)
def test_a_gain_may_speak_of_what_was_slow(judge: Judge, title: str) -> None:
    lines = {"lib/core.py": "-    return compute(key)\n+    return other(key)"}
    assert judge.judge(change(title, lines)).probability > judge.judge(change("Tidy work()", lines)).probability
