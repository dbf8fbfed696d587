"""The page of a release in a real Chromium, opened as files with the network off: filters, keys, accessibility."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from perfquarry.curation.evaluation.report import report_of, write_report
from perfquarry.curation.release.selection import as_task
from perfquarry.curation.release.site import write_site
from tests.curation.test_evaluation import row as grade
from tests.paged_release import released, revalidation, timings, write_release
from tests.review_home import PATCH
from tests.system.test_review_browser import RULES, browser, pytestmark

__all__ = ["browser", "pytestmark"]
MANY = 500
ROWS = released(12)
Visit = Callable[..., Page]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    again = [revalidation(ROWS[0]), revalidation(ROWS[1], "rejected")]
    task = as_task(ROWS[0])
    better = {"of_expert": 1.25, "of_expert_low": 1.2, "of_expert_high": 1.3, "against_expert": "better"}
    grades = [grade(task, "expert"), grade(task, "clever", patch=PATCH, speedup=5.0, **better)]
    (folder / "report").mkdir()
    write_report(report_of(grades, [task], {}, "d", "p"), grades, folder / "report")
    release = write_release(folder / "release", ROWS, timings(ROWS[:2]), again)
    write_site(release, report=folder / "report")
    return folder / "release-page"


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """A fresh window without a network; a test fails where its page logs anything or asks for anything but its file."""
    said: list[str] = []
    with ExitStack() as stack:

        def visited(file: Path, **options: Any) -> Page:
            context = stack.enter_context(browser.new_context(offline=True, **options))
            page = context.new_page()
            page.on("pageerror", lambda error: said.append(str(error)))
            page.on("console", lambda one: said.append(one.text))
            page.on("request", lambda one: None if one.url.startswith(("file:", "data:")) else said.append(one.url))
            page.goto(file.as_uri())
            return page

        yield visited
    assert not said


def listed(page: Page) -> list[str]:
    return page.locator(".tasks tbody tr:visible .id").all_inner_texts()


def test_filters_narrow_the_list_and_stay_in_the_address(site: Path, visit: Visit) -> None:
    page = visit(site / "index.html")
    everything = listed(page)
    assert everything == [row.task_id for row in sorted(ROWS, key=lambda row: -row.speedup)]
    page.get_by_label("Repository", exact=False).and_(page.locator("[name=repo]")).select_option("other/library")
    assert set(listed(page)) == {row.task_id for row in ROWS if row.codebase == "other/library"}
    page.get_by_label("Year").select_option("2019")
    chosen = [row for row in ROWS if row.codebase == "other/library" and row.created_at.year == 2019]
    assert sorted(listed(page)) == sorted(row.task_id for row in chosen)
    expect(page.locator("#found")).to_have_text(f"{len(chosen)} of {len(ROWS)} tasks")
    page.locator(".tasks tbody tr:visible a").first.click()
    page.wait_for_url("**/tasks/*.html")
    page.go_back()
    expect(page.get_by_label("Year")).to_have_value("2019")
    assert sorted(listed(page)) == sorted(row.task_id for row in chosen)
    page.get_by_role("button", name="Clear", exact=True).click()
    expect(page.locator("#found")).to_be_empty()
    assert listed(page) == everything and "#" not in page.url


def test_speedups_words_and_orders(site: Path, visit: Visit) -> None:
    page = visit(site / "index.html")
    page.get_by_label("at least").fill("5")
    page.get_by_label("at most").fill("10")
    assert set(listed(page)) == {row.task_id for row in ROWS if 5 <= row.speedup <= 10}
    page.get_by_label("Order").select_option("smallest speedup")
    found = {row.task_id: row.speedup for row in ROWS}
    speedups = [found[name] for name in listed(page)]
    assert speedups == sorted(speedups) and len(speedups) > 1
    page.get_by_role("button", name="Clear", exact=True).click()
    page.get_by_label("Order").select_option("newest")
    dates = {row.task_id: row.created_at for row in ROWS}
    assert [dates[name] for name in listed(page)] == sorted(dates.values(), reverse=True)
    page.get_by_label("Search").fill(f"WORDS.COUNT {ROWS[7].title.rpartition(' ')[2]}")
    assert listed(page) == [ROWS[7].task_id]
    page.get_by_label("Search").fill(ROWS[7].head_commit[:12])
    assert len(listed(page)) == 1
    page.get_by_label("Search").fill("no such thing")
    expect(page.locator("#nothing")).to_be_visible()
    expect(page.locator(".tasks")).to_be_hidden()
    page.get_by_role("button", name="Clear the filters").click()
    expect(page.locator("#nothing")).to_be_hidden()
    expect(page.get_by_label("Search")).to_be_focused()
    assert len(listed(page)) == len(ROWS)


def test_it_is_read_by_keyboard_alone(site: Path, visit: Visit) -> None:
    order = [row.task_id for row in sorted(ROWS, key=lambda row: -row.speedup)]
    page = visit(site / "index.html")
    page.keyboard.press("/")
    page.keyboard.type("jkgd")
    expect(page.get_by_label("Search")).to_have_value("jkgd")
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.press("Escape")
    for key in "jjk":
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/tasks/{order[0]}.html")
    for key, place in (("j", 1), ("j", 2), ("k", 1)):
        page.keyboard.press(key)
        page.wait_for_url(f"**/tasks/{order[place]}.html")
    page.keyboard.press("d")
    page.wait_for_url("**/dataset.html")
    page.keyboard.press("g")
    page.wait_for_url("**/index.html")
    page.get_by_label("Single keys").uncheck()
    page.get_by_label("Single keys").blur()
    page.keyboard.press("d")
    page.reload()
    expect(page.get_by_label("Single keys")).not_to_be_checked()
    assert page.url.endswith("index.html")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    assert len(listed(page)) == len(ROWS), "the link past the head does not touch the filters"


def test_without_javascript_it_is_a_plain_table(site: Path, visit: Visit) -> None:
    page = visit(site / "index.html", java_script_enabled=False)
    assert len(listed(page)) == len(ROWS)
    expect(page.locator("#filters")).to_be_hidden()
    page.locator(".tasks tbody a").first.click()
    expect(page.locator(".diff")).to_have_count(1)
    expect(page.locator(".keys-note")).to_be_hidden()


@pytest.mark.parametrize(("scheme", "width"), [pytest.param("light", 1440, marks=pytest.mark.slow), ("dark", 390)])
def test_axe_finds_nothing(site: Path, visit: Visit, scheme: str, width: int) -> None:
    page = visit(site / "index.html", viewport={"width": width, "height": 900}, color_scheme=scheme)
    tasks = [f"tasks/{ROWS[number].task_id}.html" for number in (0, 1, 2)]
    for place in ("index.html", "dataset.html", *tasks, "index.html#q=nothing+at+all"):
        page.goto(f"{site.as_uri()}/{place}")
        for details in page.locator("details").all():
            details.evaluate("one => { one.open = true; }")
        found = Axe().run(page, options={"runOnly": RULES}).response["violations"]
        assert not [(one["id"], [node["html"] for node in one["nodes"]]) for one in found], place
        wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wider <= 0, f"{place} is {wider} pixels wider than the window"


def test_plots_follow_a_dark_page(site: Path, visit: Visit) -> None:
    colours = set()
    for scheme in ("light", "dark"):
        page = visit(site / "tasks" / f"{ROWS[0].task_id}.html", color_scheme=scheme)
        ground = page.locator(".drawn svg .f-ground").first
        colours.add(ground.evaluate("one => getComputedStyle(one).fill"))
    assert colours == {"rgb(255, 255, 255)", "rgb(24, 28, 31)"}


def test_500_tasks_are_filtered_at_once(
    tmp_path: Path, visit: Visit, record_property: Callable[[str, object], None]
) -> None:
    rows = released(MANY)
    began = time.process_time()
    made = write_site(write_release(tmp_path / "release", rows))
    record_property("seconds", round(time.process_time() - began, 1))
    page = visit(tmp_path / "release-page" / "index.html", viewport={"width": 1440, "height": 900})
    expect(page.locator(".tasks tbody tr")).to_have_count(MANY)
    typed = page.evaluate(
        """async () => {
            const box = document.querySelector("[name=q]"), times = [];
            for (const text of ["c", "ca", "cac", "cache", ""]) {
                const began = performance.now();
                box.value = text;
                box.dispatchEvent(new Event("input", {bubbles: true}));
                document.body.offsetHeight;
                times.push(performance.now() - began);
            }
            return times;
        }"""
    )
    record_property("milliseconds", [round(one) for one in typed])
    print(f"\n{made.pages} pages, {made.bytes / 2**20:.1f} MiB; a key takes {max(typed):.0f} ms at most")
    page.get_by_label("Search").fill("cache")
    titles = page.locator(".tasks tbody tr:visible a").all_inner_texts()
    assert len(titles) == sum("cache" in row.title.lower() for row in rows) > 10
    assert (tmp_path / "release-page" / "index.html").stat().st_size < 2**20
