"""The page of a release: what it holds, that strangers' texts stay texts, and that it asks no host for anything."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest

from perfquarry.curation.evaluation.report import report_of, write_report
from perfquarry.curation.plots.canvas import times
from perfquarry.curation.plots.strips import strips
from perfquarry.curation.release import folder as files
from perfquarry.curation.release.manifest import LeftOut
from perfquarry.curation.release.selection import as_task, select
from perfquarry.curation.release.site import write_site
from perfquarry.data.errors import InputError
from perfquarry.data.funnel import Funnel, StageCount
from perfquarry.data.records import Grade, ReleasedTask
from tests.curation.test_evaluation import row as grade
from tests.curation.test_review_pages import BIDI, EVIL, EVIL_PATCH, Elements
from tests.drawn import Drawn
from tests.paged_release import candidates, manifest, released, revalidation, timings, write_release, write_table
from tests.review_home import MACHINE, PATCH

ROWS = released(4)
TIMED = timings(ROWS[:1])
ONE_SAMPLE = 1e-3
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


def pages_of(site: Path) -> dict[str, str]:
    return {path.relative_to(site).as_posix(): path.read_text() for path in site.rglob("*.html")}


def words_of(page: str) -> str:
    """What a reader of a page sees, the words parted by one space each."""
    body = re.sub(r"<(style|script)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


def text_of(site: Path, row: ReleasedTask) -> str:
    return words_of((site / "tasks" / f"{row.task_id}.html").read_text())


def search_index(page: str) -> list[dict[str, Any]]:
    found = re.search(r'<script type="application/json" id="index">(.*?)</script>', page, re.DOTALL)
    assert found
    parsed: list[dict[str, Any]] = json.loads(found.group(1))
    return parsed


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    again = [revalidation(ROWS[0]), revalidation(ROWS[1], "rejected", run_id="r2")]
    write_site(write_release(folder / "release", ROWS, TIMED, again))
    return folder / "release-page"


def test_the_index_lists_all_tasks_the_fastest_first_without_any_script(site: Path) -> None:
    page = (site / "index.html").read_text()
    order = sorted(ROWS, key=lambda row: -row.speedup)
    assert re.findall(r'<a href="tasks/([^"]+)\.html" data-row>', page) == [row.task_id for row in order]
    seen = words_of(page)
    for row in ROWS:
        assert times(row.speedup) in seen and row.title in seen and row.codebase in seen
    entries = search_index(page)
    assert [entry["title"] for entry in entries] == [row.title for row in order]
    assert {entry["repo"] for entry in entries} == {row.codebase for row in ROWS}
    assert all("words.count" in entry["text"] and entry["workloads"] == ["unit-test"] for entry in entries)


def test_a_tasks_page_shows_all_that_the_release_knows_of_it(site: Path) -> None:
    first = next(row for row in ROWS if row.workloads[0].count)
    text = text_of(site, ROWS[0])
    for known in (ROWS[0].problem_oracle, ROWS[0].message, ROWS[0].base_commit, ROWS[0].licence, ROWS[0].tests[0]):
        assert " ".join(known.split()) in text
    assert "session 2: confirms" in text and "A/A: base over base" in text and "spread of A/A" in text
    assert "2026-01-02 00:00" in text and "1 of 1" not in text and "holds" in text
    assert f"perfquarry evaluate predictions.jsonl --dataset RELEASE --tasks {ROWS[0].task_id}" in text
    assert "perfquarry export sample --format harbor" in text, "this release has no folders for Harbor"
    counted = text_of(site, first)
    assert "Words.count: 9,000,000 → 8,000,000 instructions (1.12×)" in counted
    assert "2 more functions" in counted and "pkg/words.py::helper_8" in counted
    failed = text_of(site, ROWS[1])
    assert "not every workload held (no_gain)" in failed and "The release holds no timings of it" in failed


def test_the_page_of_the_dataset_says_what_was_measured_where(site: Path) -> None:
    text = words_of((site / "dataset.html").read_text())
    assert f"{MACHINE.cpu} ({MACHINE.machine_id}) 2" in text and f"1 {len(TIMED)}" in text
    assert "owner/sample MIT 2" in text and "rejected by a curator" in text
    assert "80 79 78 77 76 75" in text, "the funnel of a repository"
    assert "not yet tried looked at until" in text
    drawn = [Drawn(one) for one in re.findall(r"<svg\b.*?</svg>", (site / "dataset.html").read_text(), re.DOTALL)]
    speedups, funnels, years = drawn
    assert len(speedups.marks("estimate-1")) == len(ROWS)
    assert ROWS[0].task_id in " ".join(speedups.tips("estimate-1"))
    assert len(funnels.group("kept")) == 3 * 6 and "judge" in funnels.texts and "100" in funnels.texts
    assert {str(row.created_at.year) for row in ROWS} <= set(years.texts) and "1" in years.texts


def test_many_repositories_and_impossible_counts_are_drawn_as_far_as_they_can_be(tmp_path: Path) -> None:
    [source] = manifest([]).sources[:1]
    many = [source.model_copy(update={"codebase": f"owner/{number}"}) for number in range(20)]
    stage = StageCount(stage="mine", entered=10**400, kept=10**400)
    odd = source.model_copy(update={"funnel": Funnel(repository="x", stages=[stage])})
    rows = [row.model_copy(update={"codebase": f"owner/{place}"}) for place, row in enumerate(released(9))]
    write_site(write_release(tmp_path / "release", rows, sources=[*many, odd]))
    text = (tmp_path / "release-page" / "dataset.html").read_text()
    funnels, years = [Drawn(one) for one in re.findall(r"<svg\b.*?</svg>", text, re.DOTALL)][1:]
    assert len(funnels.group("kept")) == 20 * 6 and years.texts.count("others") == 1


def test_harbor_folders_of_the_release_are_named_where_it_has_them(tmp_path: Path) -> None:
    release = write_release(tmp_path / "release", ROWS[:1])
    (release / "tasks" / ROWS[0].task_id).mkdir(parents=True)
    write_site(release)
    text = (tmp_path / "release-page" / "tasks" / f"{ROWS[0].task_id}.html").read_text()
    assert f"harbor run -p RELEASE/tasks/{ROWS[0].task_id} -a oracle -n 1" in text and "export sample" not in text


def test_the_same_release_makes_the_same_bytes(site: Path, tmp_path: Path) -> None:
    again = [revalidation(ROWS[0]), revalidation(ROWS[1], "rejected", run_id="r2")]
    write_site(write_release(tmp_path / "elsewhere", ROWS, TIMED, again), tmp_path / "other")
    assert (tmp_path / "other" / files.SUMS).read_text() == (site / files.SUMS).read_text()
    assert files.read_sums(site).keys() == pages_of(site).keys()


def test_every_link_within_the_site_leads_somewhere(site: Path) -> None:
    pages = pages_of(site)
    for name, text in pages.items():
        ids = {attributes.get("id") for _, attributes in Elements(text).tags}
        for tag, attributes in Elements(text).tags:
            link = attributes.get("href") or ""
            if tag != "a" or link.startswith("https://example.org/"):
                continue
            path, _, anchor = link.partition("#")
            assert not anchor or anchor in ids, (name, link)
            assert not path or (site / name).parent.joinpath(unquote(path)).is_file(), (name, link)


def test_ids_are_unique_and_elements_closed(site: Path) -> None:
    for name, text in pages_of(site).items():
        ids = [value for _, attributes in Elements(text).tags if (value := attributes.get("id"))]
        assert len(ids) == len(set(ids)), name
        opened = [tag for tag, _ in Elements(text).tags if tag not in VOID]
        for tag in set(opened) - {"script", "style"}:
            self_closed = len(re.findall(rf"<{tag}\b[^>]*/>", text, re.IGNORECASE))
            assert opened.count(tag) - self_closed == len(re.findall(rf"</{tag}>", text, re.IGNORECASE)), (name, tag)


def test_the_policy_allows_the_pages_own_style_and_script_and_nothing_else(site: Path) -> None:
    for name, text in pages_of(site).items():
        tags = Elements(text).tags
        [policy] = [
            one["content"] or ""
            for tag, one in tags
            if one.get("http-equiv") == "Content-Security-Policy" and tag == "meta"
        ]
        rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
        assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
        [style] = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
        [script] = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        for rule, inline in (("style-src", style), ("script-src", script)):
            digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
            assert rules[rule] == f"'sha256-{digest}'", name
        assert text.index("Content-Security-Policy") < text.index("<style>")
        asks = [
            one
            for tag, one in tags
            for key in one
            if key in ("src", "srcset", "action", "formaction", "poster", "style")
        ]
        assert not asks, name
        assert not re.search(r"url\(|@import|//cdn", style + script)


def hostile_rows() -> list[ReleasedTask]:
    """A task whose every text is an attack, as far as the record's types let it in."""
    [one] = candidates(1)
    [row] = select([one], {}, {}).rows
    texts: dict[str, Any] = {
        name: EVIL + BIDI
        for name, field in ReleasedTask.model_fields.items()
        if field.annotation is str and not field.metadata
    }
    del texts["patch"]
    workload = row.workloads[0]
    assert workload.count
    functions = [one.model_copy(update={"name": EVIL + BIDI}) for one in workload.count.functions]
    count = workload.count.model_copy(update={"functions": functions})
    script = {"source": "generated", "code": EVIL + BIDI, "calls": [EVIL], "count": count}
    node = f"tests/test_x.py::{EVIL}"
    return [
        row.model_copy(
            update=texts
            | {
                "codebase": EVIL[:200], "patch": EVIL_PATCH, "test_patch": "@@ nonsense " + EVIL, "apis": [EVIL, BIDI],
                "oracle_targets": [f"pkg/x.py::{EVIL}"], "realistic_targets": [f"pkg/x.py::{EVIL}"], "tests": [node],
                "warnings": [EVIL + BIDI], "url": "https://example.org/\"'><script>",
                "workloads": [workload.model_copy(update={"code": node}), workload.model_copy(update=script)],
                "recipe": row.recipe.model_copy(update={"setup_commands": [EVIL], "install_commands": [EVIL + BIDI]}),
            }
        )
    ]  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    rows = hostile_rows()
    machine = MACHINE.model_copy(update={"cpu": EVIL + BIDI, "governor": EVIL, "system": EVIL, "sandbox": EVIL})
    timed = [one.model_copy(update={"workload_id": rows[0].workloads[0].workload_id}) for one in timings(released(1))]
    again = [revalidation(rows[0], "rejected", reason=EVIL + BIDI, machine=machine)]
    left = [LeftOut(task_id=EVIL, why=EVIL + BIDI)]
    facts: dict[str, Any] = {"name": EVIL, "version": EVIL, "made_by": EVIL, "machines": [machine], "left_out": left}
    release = write_release(folder / "release", rows, timed, again, **facts)
    faster = {"speedup": 3.0, "of_expert": 1.5, "of_expert_low": 1.4, "of_expert_high": 1.6}
    evil = grade(as_task(rows[0]), EVIL, patch=EVIL_PATCH, against_expert="better", **faster)
    report = report_of([evil], [as_task(rows[0])], {}, EVIL, "p")
    (folder / "report").mkdir()
    write_report(report, [evil], folder / "report")
    write_site(release, report=folder / "report")
    return folder / "release-page"


@pytest.mark.parametrize("kind", ["index.html", "dataset.html", "tasks"])
def test_hostile_texts_stay_texts(hostile: Path, kind: str) -> None:
    [(_, text)] = [(name, text) for name, text in pages_of(hostile).items() if name.startswith(kind)]
    elements = Elements(text)
    tags = [tag for tag, _ in elements.tags]
    assert tags.count("script") == (2 if kind == "index.html" else 1) and tags.count("style") == 1
    assert not {"img", "iframe", "object", "base", "embed"}.intersection(tags)
    names = {name for _, attributes in elements.tags for name in attributes}
    assert not [name for name in names if name.startswith("on") or name == "style"]
    links = [attributes.get("href") or attributes.get("xlink:href") or "" for _, attributes in elements.tags]
    inside = re.compile(r"(#[\w-]+|(\.\./)?(tasks/)?[\w.-]+\.html|data:,|https://example\.org/.*)?")
    assert not [link for link in links if not inside.fullmatch(link)]
    assert not set("\u202e\u2066\x1b\x00\u2028").intersection(text)
    assert "49" not in re.findall(r"alert\(2\)&gt;(\d\d)", text)
    assert "<script>alert(1)</script>" in elements.text
    if kind == "tasks":
        assert "⟨U+202E⟩ nimda" in elements.text and elements.text.count("<script>alert(1)</script>") > 20


def test_the_search_index_is_the_strangers_text_letter_by_letter(hostile: Path) -> None:
    [entry] = search_index((hostile / "index.html").read_text())
    assert entry["title"] == EVIL + BIDI and EVIL.lower() in entry["text"]


OLDER = {
    "default": ["overall_speedup", "overall_low", "overall_high", "timed_workloads", "margin", "instructions_ratio"],
    "timings": ["schedule"],
    "revalidations": list(files.CONFIGURATIONS["revalidations"].names),
}


def test_an_older_release_makes_a_page_and_a_newer_one_does(tmp_path: Path) -> None:
    release = write_release(tmp_path / "release", ROWS, TIMED, without=OLDER)
    rows = files.read_table(release, "default").to_pylist()
    for row in rows:
        row["of_the_future"] = "x"
        for workload in row["workloads"]:
            del workload["count"], workload["count_label"]
    write_table(release, "default", pa.Table.from_pylist(rows))
    write_site(release)
    text = (tmp_path / "release-page" / "tasks" / f"{ROWS[0].task_id}.html").read_text()
    assert "session 2: confirms" in text and "Instructions were not counted." in text and "Not yet." in text
    assert "that were timed</span>" not in text
    write_release(tmp_path / "bare", ROWS, without=OLDER | {"timings": list(files.CONFIGURATIONS["timings"].names)})
    write_site(tmp_path / "bare")
    assert "The release holds no timings" in (tmp_path / "bare-page" / "tasks" / f"{ROWS[0].task_id}.html").read_text()


@pytest.mark.parametrize("number", [0, 1])
def test_no_task_and_one_task(tmp_path: Path, number: int) -> None:
    made = write_site(write_release(tmp_path / "release", ROWS[:number]))
    page = (tmp_path / "release-page" / "index.html").read_text()
    assert (made.tasks, made.pages) == (number, 2 + number)
    assert ("This release holds no tasks." in page) == (number == 0)
    assert ("1 task: make" in page) == (number == 1) and ('id="filters"' in page) == (number == 1)
    assert f"0 of {number}" in (tmp_path / "release-page" / "dataset.html").read_text()


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, 0.0, 1e300])
def test_figures_that_are_none_do_not_stop_it(tmp_path: Path, value: float) -> None:
    odd = ROWS[0].model_copy(
        update={"speedup": value, "low": value, "high": value, "overall_speedup": value, "delta": value}
    )
    workload = odd.workloads[0].model_copy(
        update={"speedup": value, "low": value, "base_seconds": value, "margin": value}
    )
    odd = odd.model_copy(update={"workloads": [workload]})
    wild = [one.model_copy(update={"samples": [value, ONE_SAMPLE]}) for one in TIMED]
    write_site(write_release(tmp_path / "release", [odd, ROWS[1]], wild))
    entries = search_index((tmp_path / "release-page" / "index.html").read_text())
    assert {entry["speedup"] for entry in entries} == {None, ROWS[1].speedup}


def test_a_few_pairs_are_plotted_without_an_interval(tmp_path: Path) -> None:
    few = [one for one in TIMED if one.block < 2 and not one.aa]
    write_site(write_release(tmp_path / "release", ROWS[:1], few))
    text = (tmp_path / "release-page" / "tasks" / f"{ROWS[0].task_id}.html").read_text()
    assert "session 1: selects, 2 pairs and 0 A/A pairs" in text and "spread of pairs" not in text


def test_strips_lie_on_their_axis() -> None:
    axis = strips([(1.9, 2.0, 2.1), (0.9, 1.0, 1.1), (math.nan, 2.0, 3.0)])
    two, one, none = axis.strips
    assert two and one and none is None
    assert 0 < one.low < axis.one == one.at < one.high < two.low < two.at < two.high < 100
    assert all(later[0] - before[0] > 0 for before, later in zip(axis.ticks, axis.ticks[1:], strict=False))
    assert strips([]).strips == []


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("release", "within the release or around it"),
        ("release/page", "within the release or around it"),
        (".", "within the release or around it"),
        ("taken", "is there and is no page of a release"),
        ("other", "is there and is no page of a release"),
    ],
)
def test_only_a_page_is_replaced(tmp_path: Path, place: str, words: str) -> None:
    release = write_release(tmp_path / "release", ROWS[:1])
    write_release(tmp_path / "other", ROWS[:2])
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "index.html").write_text("mine")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=words):
        write_site(release, tmp_path / place)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_page_takes_the_place_of_a_page(tmp_path: Path) -> None:
    release = write_release(tmp_path / "release", ROWS[:2])
    write_site(release)
    write_release(release, ROWS[:1])
    write_site(release)
    assert len(list((tmp_path / "release-page" / "tasks").iterdir())) == 1


def test_what_is_no_release_makes_no_page(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is no release"):
        write_site(tmp_path / "nothing")
    release = write_release(tmp_path / "release", [ROWS[0], ROWS[0]])
    with pytest.raises(InputError, match="holds a task twice"):
        write_site(release)
    assert not (tmp_path / "release-page").exists()


Report = Callable[..., Path]


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """Grades of the first two tasks, written as `perfquarry evaluate` writes them."""

    def written(*more: Grade, speedup: float | None = None) -> Path:
        tasks = [as_task(row) for row in ROWS[:2]]
        if speedup:
            tasks = [task.model_copy(update={"speedup": speedup}) for task in tasks]
        nothing = {"status": "rejected", "speedup": 1.0, "of_expert": 0.5, "of_expert_low": 0.4, "of_expert_high": 0.6,
                   "against_expert": "worse"}  # fmt: skip
        half = {**nothing, "reason": "below_expert", "speedup": 1.5, "low": 1.4, "high": 1.6}
        grades = [
            grade(tasks[0], "expert"), grade(tasks[0], "half", **half),
            grade(tasks[0], "nop", reason="empty_patch", **nothing),
            grade(tasks[1], "expert"), grade(tasks[1], "nop"), *more,
        ]  # fmt: skip
        (tmp_path / "report").mkdir()
        write_report(report_of(grades, tasks, {}, "d", "p"), grades, tmp_path / "report")
        return tmp_path / "report"

    return written


def test_a_report_adds_discrimination_and_the_best_known_result(tmp_path: Path, report: Report) -> None:
    better = {
        "speedup": 5.0,
        "of_expert": 1.25,
        "of_expert_low": 1.2,
        "of_expert_high": 1.3,
        "against_expert": "better",
    }
    folder = report(grade(as_task(ROWS[0]), "clever", patch=PATCH, **better))
    write_site(write_release(tmp_path / "release", ROWS[:3]), report=folder)
    shown = text_of(tmp_path / "release-page", ROWS[0])
    assert "discrimination nop < half <= expert" in shown
    assert (
        "best known clever: 5.00×, 1.25 [1.20, 1.30] of the expert’s speedup" in shown
        and "The best known patch" in shown
    )
    weak = text_of(tmp_path / "release-page", ROWS[1])
    assert "discrimination no patch at all has a reward does not tell solutions apart" in weak
    assert "best known the expert’s patch" in weak
    assert "Graded solutions" not in text_of(tmp_path / "release-page", ROWS[2]), "it was not graded"


def test_a_report_of_other_tasks_is_refused(tmp_path: Path, report: Report) -> None:
    release = write_release(tmp_path / "release", ROWS[:2])
    with pytest.raises(InputError, match="holds no report"):
        write_site(release, report=tmp_path)
    with pytest.raises(InputError, match=r"another dataset .*another speedup"):
        write_site(release, report=report(speedup=9.0))
    write_release(release, ROWS[1:])
    with pytest.raises(InputError, match="it is not in the release"):
        write_site(release, report=tmp_path / "report")
    assert not (tmp_path / "release-page").exists()
