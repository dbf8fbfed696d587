"""The review queue in a real Chromium: keyboard, conflicts, undo, search, deep links, accessibility."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from perfquarry.curation.review.queue import Filter
from perfquarry.curation.review.service import ReviewService
from perfquarry.data.home import Home
from perfquarry.data.records import FunctionCount
from perfquarry.data.store import TableStore
from tests.review_home import count_of, desk_of, fill, finding, serving, task_of

CHROMIUM = shutil.which("chromium-headless-shell") or "/usr/bin/chromium"
"""The first has no window of its own, which takes half of the processor's time."""
FLAGS = ["no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
         "disable-component-update", "disable-sync"]  # fmt: skip
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
NUMBER = 30

pytestmark = [
    pytest.mark.skipif(
        not os.access(CHROMIUM, os.X_OK), reason=f"no {CHROMIUM} on this machine (Debian: chromium-headless-shell)"
    ),
    pytest.mark.timeout(280),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=60_000)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=[f"--{flag}" for flag in FLAGS])
        yield launched
        launched.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """A fresh window; a test fails where its page logs an error (the CSP's refusals among them)."""
    errors: list[str] = []
    with ExitStack() as stack:

        def visited(address: str, **options: Any) -> Page:
            context = stack.enter_context(browser.new_context(**options))
            page = context.new_page()
            page.set_default_timeout(60_000)
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.on("console", lambda one: errors.append(one.text) if one.type == "error" else None)
            page.goto(address)
            return page

        yield visited
    assert not [error for error in errors if "409" not in error]


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[tuple[str, ReviewService, list[str]]]:
    home = Home(tmp_path)
    tasks = [task_of(number, 4 - number / 10) for number in range(NUMBER)]
    noted = [finding(tasks[0], "memo-survives", "a memo on count() goes unnoticed", "blocking")]
    fill(home, tasks, measured=2, findings=[*noted, *(finding(one, "screened", "", "info") for one in tasks)])
    function = {"ir_base": 9_000_000, "ir_head": 8_000_000, "native": False, "called_from_patch": False}
    functions = [FunctionCount(name=f"pkg/words.py::Words.count_{n}", in_patch=n == 0, **function) for n in range(10)]
    TableStore(home.tables).append([count_of(tasks[0], 1.0, functions)])
    desk = desk_of(home)
    with serving(desk, home) as (address, _):
        yield address, desk, [one.task_id for one in tasks]


def test_a_queue_of_30_is_cleared_by_keyboard_alone(
    queue: tuple[str, ReviewService, list[str]],
    visit: Callable[..., Page],
    record_property: Callable[[str, object], None],
) -> None:
    address, desk, ids = queue
    page = visit(address)
    began = time.monotonic()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    for number, task_id in enumerate(ids):
        page.wait_for_url(f"**/tasks/{task_id}*")
        expect(page.locator("h1")).to_have_text(task_of(number, 2.0).title)
        if number % 3:
            page.keyboard.press("a")
        else:
            page.keyboard.press("r")
            page.keyboard.press(str(1 + number % 8))
    expect(page.locator(".empty")).to_contain_text("The queue is clear")
    seconds = time.monotonic() - began
    record_property("seconds", round(seconds, 1))
    print(f"\n{NUMBER} candidates by keyboard in {seconds:.1f} s")
    assert desk.queue("ann").counts() == {"accepted": 20, "rejected": 10}
    assert [one.task_id for one in desk.decisions.log()] == ids


def test_next_previous_note_undo_help_and_search_by_keyboard(
    queue: tuple[str, ReviewService, list[str]], visit: Callable[..., Page]
) -> None:
    address, desk, ids = queue
    page = visit(f"{address}/tasks/{ids[3]}")
    for key, place in (("j", 4), ("j", 5), ("k", 4)):
        page.keyboard.press(key)
        page.wait_for_url(f"**/tasks/{ids[place]}*")
    page.keyboard.press("n")
    page.keyboard.type("a, r and j are letters here")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#record + .log, .log blockquote").last).to_have_text("a, r and j are letters here")
    page.keyboard.press("a")
    page.wait_for_url(f"**/tasks/{ids[5]}*")
    page.keyboard.press("u")
    page.wait_for_url(f"**/tasks/{ids[4]}*")
    expect(page.locator(".opinions")).to_have_count(0)
    assert [one.action for one in desk.decisions.log()] == ["note", "accept", "undo"]
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.locator("#keys-on").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("?")
    page.locator("#keys-on").check()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("count (17)")
    page.keyboard.press("Enter")
    expect(page.locator(".entry")).to_have_count(1)
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/tasks/{ids[17]}?q=count*")


def test_two_simultaneous_reviewers_see_their_conflict(tmp_path: Path, visit: Callable[..., Page]) -> None:
    home = Home(tmp_path)
    tasks = [task_of(number, 4 - number / 10) for number in range(2)]
    fill(home, tasks)
    desk = desk_of(home)
    with serving(desk, home, ("ann", "bob")) as (address, guard):
        pages = {name: visit(f"{address}/sign-in?token={guard.token(name)}") for name in ("ann", "bob")}
        for page in pages.values():
            page.goto(f"{address}/tasks/{tasks[0].task_id}")
        pages["ann"].keyboard.press("a")
        pages["ann"].wait_for_url(f"**/tasks/{tasks[1].task_id}*")
        pages["bob"].keyboard.press("r")
        pages["bob"].keyboard.press("2")
        alert = pages["bob"].get_by_role("alert")
        expect(alert).to_contain_text("ann accepted it")
        assert [(one.reviewer, one.action) for one in desk.decisions.opinions(tasks[0].task_id)] == [("ann", "accept")]
        alert.get_by_role("button", name="Record mine beside theirs").click()
        pages["bob"].wait_for_url(f"**/tasks/{tasks[1].task_id}*")
        opinions = desk.decisions.opinions(tasks[0].task_id)
        assert sorted((one.reviewer, one.action) for one in opinions) == [("ann", "accept"), ("bob", "reject")]
        assert desk.queue("ann").counts() == {"disputed": 1, "open": 1}


def test_filters_and_deep_links(queue: tuple[str, ReviewService, list[str]], visit: Callable[..., Page]) -> None:
    address, desk, ids = queue
    page = visit(address)
    page.get_by_label("Findings").select_option("blocking")
    expect(page.locator(".entry")).to_have_count(1)
    expect(page.locator(".badge.blocking")).to_have_text("1 blocking")
    page.goto(f"{address}/?sort=-speedup")
    expect(page.locator(".entry .kept .figure").first).to_have_text("1.10×")
    page.goto(f"{address}/tasks/{ids[0]}?sort=-speedup#p1R4")
    expect(page.locator("td:target")).to_have_text("4")
    expect(page.locator(".findings")).to_contain_text("a memo on count() goes unnoticed")
    expect(page.locator("a.plot img")).to_have_count(1)
    page.keyboard.press("k")
    page.wait_for_url(f"**/tasks/{ids[1]}?sort=-speedup")
    assert desk.queue("ann").count(Filter(sort="-speedup")) == NUMBER


def test_what_was_sent_back_is_started_and_its_progress_shown(
    queue: tuple[str, ReviewService, list[str]], visit: Callable[..., Page]
) -> None:
    address, desk, ids = queue
    page = visit(f"{address}/tasks/{ids[0]}")
    page.keyboard.press("m")
    page.keyboard.type("too noisy")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".runs")).to_contain_text("nothing was done")
    assert desk.queue("ann").counts() == {"sent-back": 1, "open": NUMBER - 1}
    assert desk.sending.of(ids[0])[0].state == "done"


@pytest.mark.parametrize(("scheme", "width"), [pytest.param("light", 1440, marks=pytest.mark.slow), ("dark", 390)])
def test_axe_finds_nothing(
    queue: tuple[str, ReviewService, list[str]], visit: Callable[..., Page], scheme: str, width: int
) -> None:
    address, desk, ids = queue
    for reviewer, action in (("ann", "accept"), ("bob", "reject")):
        desk.decisions.record(ids[0], reviewer, action, seen=9, reason="trivial", note="why")  # type: ignore[arg-type]
    page = visit(address, viewport={"width": width, "height": 800}, color_scheme=scheme)
    for place, keys in (("/?state=all", ""), (f"/tasks/{ids[0]}", ""), (f"/tasks/{ids[0]}", "r"), ("/log", "?")):
        page.goto(address + place)
        if place.startswith("/tasks"):
            expect(page.locator("a.plot img").first).to_be_visible()
            expect(page.locator("a.plot img").first).to_have_js_property("complete", True)
            assert page.locator("a.plot img").first.evaluate("image => image.naturalWidth") == (
                640 if width > 600 else 340
            )
        for key in keys:
            page.keyboard.press(key)
            expect(page.locator("dialog[open]")).to_be_visible()
        found = Axe().run(page, options={"runOnly": RULES}).response["violations"]
        assert not [(one["id"], [node["html"] for node in one["nodes"]]) for one in found], place
        wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wider <= 0, f"{place} is {wider} pixels wider than the window"


def test_the_first_screen_has_patch_and_evidence_side_by_side_or_below_each_other(
    queue: tuple[str, ReviewService, list[str]], visit: Callable[..., Page]
) -> None:
    address, _, ids = queue
    for width, beside in ((1440, True), (390, False)):
        page = visit(f"{address}/tasks/{ids[0]}", viewport={"width": width, "height": 900})
        boxes = [page.locator(place).bounding_box() for place in ("#patch", "#workloads", ".strips", "a.plot img")]
        patch, workloads, strips, _ = (box or {} for box in boxes)
        assert (workloads["x"] > patch["x"] + 300) == beside
        if beside:
            assert max(patch["y"], strips["y"] + strips["height"]) < 900
    expect(page.locator(".findings")).to_contain_text("remembered results pass the workload")
    expect(page.locator(".findings")).to_contain_text("more tests: t")


def test_on_a_phone_rare_actions_are_behind_one_button(
    queue: tuple[str, ReviewService, list[str]], visit: Callable[..., Page]
) -> None:
    address, _, ids = queue
    page = visit(f"{address}/tasks/{ids[0]}", viewport={"width": 390, "height": 800})
    bar, rare, more = page.locator("footer.actions"), page.get_by_role("button", name="Measure again"), "More actions"
    expect(page.get_by_role("button", name="Accept")).to_be_visible()
    expect(rare).to_be_hidden()
    closed = (bar.bounding_box() or {})["height"]
    page.get_by_label(more).check()
    expect(rare).to_be_visible()
    assert (bar.bounding_box() or {})["height"] > closed and closed < 60
    rare.click()
    expect(page.locator("#measure-again")).to_be_visible()
    wide = visit(f"{address}/tasks/{ids[0]}", viewport={"width": 1440, "height": 800})
    expect(wide.get_by_role("button", name="Measure again")).to_be_visible()
    expect(wide.get_by_label(more)).to_be_hidden()
