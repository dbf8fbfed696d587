"""Checks of tasks that run no code."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta

import pytest
from screened_task import DAY, PATCH, STAMP, task, workload

from perfquarry.curation.private import addresses_in, secrets_in
from perfquarry.curation.problems import Fix, templates
from perfquarry.curation.screening.demands import demands
from perfquarry.curation.screening.duplicates import Landing, core_title, merged_by, relations
from perfquarry.curation.screening.found import FoundProblem, carried, rows_of, screened
from perfquarry.curation.screening.sources import test_source as source_of
from perfquarry.curation.screening.static import Subject, leaked, licence_of, look, private_of
from perfquarry.curation.screening.trivial import trivial
from perfquarry.curation.screening.weak import chance_in, nondeterministic, weak
from perfquarry.curation.settings import ScreenSettings
from perfquarry.data.records import Evidence, SessionStatistics, Stamp, Task

SETTINGS = ScreenSettings()
OTHER_PATCH = PATCH.replace("fast_table", "quick_index").replace("table", "index").replace("consume", "eat")


def landing(of: Task, patch_id: str | None = None, parents: Iterable[str] = (), message: str = "") -> Landing:
    return Landing(of.head_sha, tuple(parents), of.title, message or of.message, patch_id, of.created_at_commit)


def checks(found: Iterable[FoundProblem]) -> dict[str, str]:
    return {one.check: one.severity for one in found}


def related(tasks: list[Task], history: list[Landing]) -> dict[str, dict[str, str]]:
    found = relations(tasks, history, SETTINGS)
    return {one.head_sha[0]: checks(found[one.task_id]) for one in tasks}


def test_of_equal_patches_the_commit_stays_and_the_merge_goes() -> None:
    commit, merge = task("a"), task("b", 1, title="Merge pull request #1")
    history = [landing(commit, "same", ["0" * 40]), landing(merge, "same", ["0" * 40, commit.head_sha])]
    found = relations([commit, merge], history, SETTINGS)
    (gone,) = found[merge.task_id]
    assert (gone.check, gone.severity, gone.subject) == ("duplicate", "blocking", commit.task_id)
    assert "patch id same" in gone.evidence and "it is the merge" in gone.evidence
    assert checks(found[commit.task_id]) == {"stands-for": "info"}


def test_a_merge_and_a_commit_it_brought_in_are_one_whatever_their_patches() -> None:
    commit, merge = task("a"), task("b", 1, patch=OTHER_PATCH, lines_changed=80, title="Merge branch 'x'")
    other = landing(task("c", patch=""), "3", ["0" * 40])
    history = [landing(commit, "1", [other.head_sha]), other, landing(merge, "2", ["f" * 40, commit.head_sha])]
    assert related([commit, merge], history) == {"a": {"stands-for": "info"}, "b": {"duplicate": "blocking"}}
    by_head = {one.head_sha: one for one in history}
    assert merged_by(merge.head_sha, by_head) == {commit.head_sha, other.head_sha}
    assert merged_by(commit.head_sha, by_head) == set()


def test_two_commits_stay_and_the_merge_of_both_goes() -> None:
    one, other = task("a"), task("b", 1, patch=OTHER_PATCH, title="Another", oracle_targets=["pkg/core.py::x"])
    merge = task("c", 2, patch=PATCH + OTHER_PATCH, lines_changed=16, title="Merge branch 'both'")
    history = [
        landing(one, "1", ["0" * 40]),
        landing(other, "2", [one.head_sha]),
        landing(merge, "3", ["0" * 40, other.head_sha]),
    ]
    assert related([one, other, merge], history) == {
        "a": {"stands-for": "info"},
        "b": {"stands-for": "info"},
        "c": {"duplicate": "blocking"},
    }


@pytest.mark.parametrize(
    "message",
    [f"Sum\n\n(cherry picked from commit {'a' * 40})", "Backport PR #12: sum", "[3.1] Sum a with a table (GH-3)"],
)
def test_backports_are_duplicates(message: str) -> None:
    first = task("a", pull_number=12)
    same_title = message.startswith("[3.1]")
    patch = PATCH if same_title else OTHER_PATCH
    later = task("b", 300, title=message.partition("\n")[0].replace(" (GH-3)", ""), message=message, patch=patch)
    history = [landing(first, "1"), landing(later, "2")]
    assert related([first, later], history)["b"] == {"duplicate": "blocking"}


def test_what_lands_again_after_a_revert_is_one_task_and_the_revert_is_reported() -> None:
    first, again = task("a"), task("b", 5, title='Reapply "Sum a with a table"')
    undone = Landing(
        "e" * 40, (), 'Revert "Sum a with a table"', f"This reverts commit {'a' * 40}.", None, DAY + timedelta(days=2)
    )
    found = related([first, again], [landing(first, "1"), landing(again, "2"), undone])
    assert found == {"a": {"duplicate": "blocking", "reverted": "warning"}, "b": {"stands-for": "info"}}
    assert core_title('Reapply "Sum a"') == core_title("[2.x] Sum a (#4)") == "sum a"
    assert core_title('Revert "Revert "Sum a""') == "sum a"


def test_patches_that_share_most_lines_are_near_duplicates() -> None:
    more = PATCH.replace("-5 +1,5", "-5 +1,6") + "+    # one more line of the same\n"
    first, larger = task("a"), task("b", 200, patch=more, lines_changed=9, title="Something else")
    assert related([first, larger], [])["b"] == {"near-duplicate": "blocking"}


def test_tasks_on_the_same_functions_are_noted_within_a_window_only() -> None:
    one, other = task("a"), task("b", 20, patch=OTHER_PATCH, title="Another")
    assert related([one, other], []) == {"a": {"same-functions": "info"}, "b": {"same-functions": "info"}}
    assert related([one, task("b", 90, patch=OTHER_PATCH, title="Another")], []) == {"a": {}, "b": {}}


def test_the_same_patch_elsewhere_in_the_history_is_reported() -> None:
    one = task("a")
    assert related([one], [landing(one, "1"), landing(task("b"), "1")]) == {"a": {"landed-again": "info"}}


def statistics(low: float, high: float) -> SessionStatistics:
    return SessionStatistics(
        session=1, n_base=9, n_head=9, base_median=1, head_median=1, speedup=low, low=low, high=high, delta=0, p_value=0
    )


def evidence(identity: str, *sessions: SessionStatistics, **fields: object) -> Evidence:
    values = {**STAMP.fields(), "workload_id": identity, "change_id": "change-a", "sessions": sessions}
    return Evidence.model_validate(values | fields)


def test_a_gain_of_one_workload_only_is_reported() -> None:
    one = workload()
    rows = [evidence(one.workload_id), evidence("x", status="rejected", reason="no_gain")]
    assert checks(weak(task(workloads=[one]), rows, SETTINGS)) == {"single-workload": "warning"}
    assert checks(weak(task(workloads=[one]), rows[:1], SETTINGS)) == {"single-workload": "info"}
    uneven = [workload(speedup=10.0), workload("t::other", speedup=1.1)]
    assert checks(weak(task(workloads=uneven), [], SETTINGS)) == {"uneven-gain": "info"}
    assert checks(weak(task(), [], SETTINGS)) == {}


@pytest.mark.parametrize(
    ("reason", "reported"),
    [("undecided", True), ("unstable", True), ("no_gain", False), ("not_confirmed", False), ("slower", False)],
)
def test_what_noise_hid_is_reported(reason: str, reported: bool) -> None:
    rows = [evidence(one.workload_id) for one in task().workloads]
    rows.append(evidence("x", statistics(0.7, 1.5), status="rejected", reason=reason))
    assert ("noise" in checks(weak(task(), rows, SETTINGS))) is reported


def test_what_pays_for_the_gain_is_reported() -> None:
    paying = evidence("x", statistics(0.85, 0.9), status="rejected", reason="slower")
    rows = [*(evidence(one.workload_id) for one in task().workloads), paying]
    (found,) = weak(task(overall_speedup=0.94, timed_workloads=3), rows, SETTINGS)
    assert (found.check, found.severity, found.details) == ("slower-elsewhere", "warning", {"workloads": ["x"]})
    assert "1 of 3" in found.evidence and "0.85×" in found.evidence and "over all 3 timed 0.94×" in found.evidence


def test_calls_of_microseconds_are_reported() -> None:
    short, longer = workload(base_seconds=8e-6), workload("t::longer", base_seconds=0.01)
    assert checks(weak(task(workloads=[short, longer]), [], SETTINGS)) == {"too-short": "info"}
    everything = [short, workload("t::other", base_seconds=2e-5)]
    (found,) = weak(task(workloads=everything), [], SETTINGS)
    assert (found.check, found.severity) == ("too-short", "warning")
    assert "8 µs, 20 µs" in found.evidence


def test_chance_is_reported() -> None:
    one, other = workload(), workload("tests/test_core.py::test_large")
    rows = [evidence(one.workload_id, statistics(1.5, 1.6), statistics(2.0, 2.1))]
    texts = {other.code: "def test_large():\n    data = [random.random() for _ in range(9)]\n    time.sleep(1)\n"}
    found = {found.check: found for found in nondeterministic(task(), rows, texts)}
    assert "1.50× [1.50, 1.60] and then 2.00×" in found["sessions-disagree"].evidence
    assert found["non-determinism"].details == {"calls": {"time": ["sleep"], "random": ["random"]}}
    assert chance_in("import random\nrandom.seed(7)\nrandom.random()") == {}
    near = [evidence(one.workload_id, statistics(1.50, 1.51), statistics(1.52, 1.53))]
    assert list(nondeterministic(task(), near, {})) == []


def test_source_of_a_test_is_that_of_the_named_one() -> None:
    text = "class A:\n    def test(self):\n        return 1\n\ndef test():\n    return 2\n"
    assert source_of(text, "t.py::A::test[x::y]") == "def test(self):\n    return 1"
    assert source_of(text, "t.py::test") == "def test():\n    return 2"
    assert source_of(text, "t.py::B::test") == source_of("def", "t.py::test") == ""


def patch_of(path: str, before: str, after: str) -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{before}\n+{after}\n"


@pytest.mark.parametrize(
    ("path", "before", "after", "kind"),
    [
        ("pkg/__init__.py", '__version__ = "1.0"', '__version__ = "1.1"', "version bump"),
        ("setup.py", '    version="1.0",', '    version="1.1",', "version bump"),
        ("setup.py", '    "numpy>=1.20",', '    "numpy>=1.21",', "dependency upgrade"),
        ("requirements/tests.txt", "numpy==1.20", "numpy==1.21", "dependency upgrade"),
        ("pkg/_vendor/six.py", "x = 1", "x = compute()", "dependency upgrade"),
        ("setup.py", 'extra_compile_args=["-O2"]', 'extra_compile_args=["-O3", "-march=native"]', "compiler flag"),
        ("meson.build", "add_args('-O2')", "add_args('-Ofast')", "compiler flag"),
    ],
)
def test_changes_without_an_idea_are_trivial(path: str, before: str, after: str, kind: str) -> None:
    (found,) = trivial(task(patch=patch_of(path, before, after)))
    assert (found.check, found.subject, found.severity) == ("trivial", kind, "blocking")
    mixed = list(trivial(task(patch=patch_of(path, before, after) + PATCH)))
    assert checks(mixed) == ({"trivial": "warning"} if kind == "compiler flag" else {})


def test_a_change_of_numbers_only_is_reported_and_code_is_not_trivial() -> None:
    (found,) = trivial(task(patch=patch_of("pkg/core.py", "LIMIT = compute(100)", "LIMIT = compute(5000)")))
    assert (found.subject, found.severity) == ("constant", "warning")
    assert list(trivial(task())) == []
    assert list(trivial(task(patch=patch_of("pkg/core.py", "version = parse(text)", "version = quick(text)")))) == []


@pytest.mark.parametrize(
    ("licence", "severity"),
    [
        ("MIT", None),
        ("Apache-2.0 OR BSD-3-Clause", None),
        ("GPL-3.0", "warning"),
        ("MIT AND LGPL-2.1", "warning"),
        ("", "blocking"),
        ("LicenseRef-Secret", "blocking"),
    ],
)
def test_licences(licence: str, severity: str | None) -> None:
    assert checks(licence_of(task(licence=licence))) == ({"licence": severity} if severity else {})


SECRETS = [
    "-----BEGIN RSA PRIVATE KEY-----",
    "AKIA" + "ABCDEFGHIJKLMNOP",
    "ghp_" + "a1B2" * 9,
    "xoxb-" + "123456789012-abcdef",
    "AIza" + "Sy" + "a1B2c" * 6 + "xyz",
    "sk-ant-" + "a1B2c3D4" * 5,
    "hf_" + "a1B2c3D4" * 5,
    "postgres://admin:" + "hunter22@db.host/x",
    'api_key = "' + "q9X2mL7pR4tZ8vB1" + '"',
    "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0NTYifQ.abcdefghijklm",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_are_found_and_not_repeated(secret: str) -> None:
    (found,) = private_of(task(patch=PATCH + f"+    x = '''{secret}'''\n"))
    assert (found.check, found.severity, found.subject) == ("secret", "blocking", "patch")
    assert secret not in found.evidence


def test_addresses_of_people_are_found_and_those_of_nobody_are_not() -> None:
    one = task(message="Faster\n\nSigned-off-by: Jane Roe <jane.roe@company.org>\nsee me@example.com")
    (found,) = private_of(one)
    assert (found.check, found.subject) == ("e-mail", "message")
    assert "jane.roe@company.org" not in found.evidence and "1 more" not in found.evidence
    for nobody in (
        "git@github.com:owner/repo",
        "a@b.example.com",
        "logo@2x.png",
        "12+jane@users.noreply.github.com",
        "noreply@github.com",
        "@functools.wraps(f)",
        "token = get_token_from_the_environment()",
        "password = 'correct horse'",
        "https://user:{password}@host/",
    ):
        assert addresses_in(nobody) == secrets_in(nobody) == []


FIX = Fix.of(
    task(pull_number=12, issues=[3], message="Sum a with a table\n\nKeeps the partial sums of all items in a table."),
    identifiers=["fast_table"],
    literals=["4096"],
    lines=["table = fast_table(items)"],
)


@pytest.mark.parametrize(
    ("text", "leak"),
    [
        ("calls fast_table", "identifier fast_table"),
        ("with 4096 entries", "literal '4096'"),
        ("    table  = fast_table(items)", "line of the patch: table = fast_table(items)"),
        (f"see {'a' * 12}", "commit " + "a" * 12),
        ("as of #12", "number #12"),
        ("https://github.com/o/n/pull/12/files", "number #12"),
        ("fixes GH-3", "number #3"),
        ("sum A with a table", "title of the commit: Sum a with a table"),
        ("it keeps the partial sums of all things", "words of the commit's message: keeps the partial sums of all"),
    ],
)
def test_what_reveals_the_fix(text: str, leak: str) -> None:
    assert leak in FIX.leaks_in(text)


@pytest.mark.parametrize("text", ["total in pkg/core.py", "14096 entries", "4096.5", "#120", "aaaaaa", "a table", ""])
def test_what_reveals_nothing(text: str) -> None:
    assert FIX.leaks_in(text) == []


def test_a_visible_script_that_reveals_the_fix_blocks_the_task() -> None:
    scripts = [
        workload("import fast_table", source="generated", workload_id="1"),
        workload("import fast_table as it", source="generated", workload_id="2", role="hidden"),
    ]
    found = list(leaked(task(workloads=scripts), FIX))
    assert [(one.check, one.severity) for one in found] == [("test-leak", "blocking"), ("test-leak", "info")]
    problems = templates(task(problem_oracle="Use fast_table"), FIX, STAMP)
    (leak,) = leaked(task(), FIX, problems)
    assert (leak.check, leak.subject, leak.severity) == ("problem-leak", "oracle (template)", "info")


def test_all_checks_give_rows_and_one_that_says_that_they_were_made() -> None:
    one = task(licence="")
    found = look([Subject(one, Fix.of(one))], [], SETTINGS)[one.task_id]
    rows = rows_of(one, [*found, found[0]], STAMP)
    assert {row.check: row.severity for row in rows} == {"licence": "blocking", "screened": "info"}
    assert json.loads(rows[0].details) == {"licence": ""} and rows[-1].subject == "static"


def test_what_was_found_by_running_an_unchanged_task_stays_found() -> None:
    one = task()
    mutation = FoundProblem("mutation-survives", "", "pkg/core.py::total", "blocking")
    made = screened("run", ["mutation-survives"], of="the task", found=[("mutation-survives", "pkg/core.py::total")])
    rows = rows_of(one, [FoundProblem("noise", ""), screened("static", ["noise"]), mutation, made], STAMP)
    later = Stamp(repo="sample", stage_version="1", config_hash="later")
    again = carried(rows, "the task", later)
    assert [(row.check, row.subject, row.severity, row.config_hash) for row in again] == [
        ("mutation-survives", "pkg/core.py::total", "blocking", "later"), ("screened", "run", "info", "later"),
    ]  # fmt: skip
    assert carried(rows, "another one", later) == [] == carried([], "the task", later)
    latest = later.model_copy(update={"config_hash": "latest"})
    assert [row.check for row in carried([*rows, *again], "the task", latest)] == [row.check for row in again]


def test_what_is_asked_of_the_generator_follows_from_the_findings() -> None:
    good = task("a", workloads=[workload(f"t::{name}", calls=[f"pkg/core.py::{name}"]) for name in ("x", "y", "z")])
    alike = task("b", workloads=[workload(f"t::{name}", calls=["pkg/core.py::total"]) for name in ("x", "y", "z")])
    weak_one = task("c", workloads=[workload()])
    found = [
        FoundProblem("memo-survives", "", "t", "blocking"),
        FoundProblem("mutation-survives", "", "pkg/core.py::total", "warning"),
        FoundProblem("too-short", "", "", "info"),
    ]
    asked = {one.head_sha[0]: one.wishes for one in demands([good, alike, weak_one], rows_of(weak_one, found, STAMP))}
    assert list(asked) == ["b", "c"]
    assert "other functions than total" in asked["b"][0]
    memo, mutation, few = asked["c"]
    assert "repeats" in memo and "all that total computes" in mutation and "other sizes" in few.lower()
