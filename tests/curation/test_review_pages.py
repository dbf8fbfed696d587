"""The pages over real HTTP: what they hold, who may ask for them, and that nobody's text does harm."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from perfquarry.curation.review.colours import lexer_for, lines_of_part, visible
from perfquarry.curation.review.diff import side_by_side
from perfquarry.curation.review.rendering import web_address
from perfquarry.curation.review.witness import doubts
from perfquarry.curation.screening.sources import test_source as source_of
from perfquarry.data.home import Home
from perfquarry.data.records import FunctionCount
from perfquarry.data.store import TableStore
from tests.drawn import Drawn
from tests.review_home import count_of, desk_of, fill, finding, serving, task_of

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7*7 }}{% include 'layout.html.jinja' %}"
BIDI = "if user != '\u202e nimda\u2066'\x1b[31m\x00\u2028"
EVIL_PATCH = f"""diff --git a/{EVIL} b/{EVIL}
--- a/pkg/x.py
+++ b/pkg/x.py
@@ -1,2 +1,3 @@ {EVIL}
 {EVIL}
-{EVIL}{BIDI}
+</td></table>{EVIL}
+{"A" * 5000}
"""


Visit = Callable[..., httpx.Client]


class Elements(HTMLParser):
    """All tags with their attributes, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def visit() -> Iterator[Visit]:
    """`visit(address)`: a browser's connection, closed in the end."""
    with ExitStack() as stack:
        yield lambda address, **options: stack.enter_context(
            httpx.Client(base_url=address, trust_env=False, timeout=60, **options)
        )


def csrf_of(html: str) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]+)"', html)
    assert found
    return found.group(1)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Address and task id of a queue whose every text is an attack."""
    home = Home(tmp_path_factory.mktemp("hostile"))
    targets = {"oracle_targets": [f"pkg/x.py::{EVIL}"], "url": "javascript:alert(1)//", "python": EVIL, "licence": EVIL}
    task = task_of(1, 2.0, title=EVIL + BIDI, message=EVIL * 300, patch=EVIL_PATCH, test_patch="@@ nonsense", **targets)
    fill(home, [task], measured=1, findings=[finding(task, EVIL, EVIL + BIDI), finding(task, "screened", "")])
    with serving(desk_of(home), home) as (address, _):
        yield address, task.task_id


@pytest.mark.parametrize(
    "place", ["/", "/?q={evil}", "/tasks/{task}", "/tasks/{task}/evidence", "/log", "/tasks/{evil}"]
)
def test_hostile_texts_stay_texts(hostile: tuple[str, str], place: str, visit: Visit) -> None:
    address, task = hostile
    client = visit(address)
    page = client.get("/tasks/" + task).text
    client.post(f"/tasks/{task}/decide", data={"csrf": csrf_of(page), "seen": 0, "action": "note", "note": EVIL + BIDI})
    answer = client.get(place.format(task=task, evil=EVIL.replace("/", "")))
    elements = Elements(answer.text)
    scripts = [attributes for tag, attributes in elements.tags if tag == "script"]
    assert all(one.get("src", "").startswith("/static/") for one in scripts)  # type: ignore[union-attr]
    images = [attributes.get("src") or "" for tag, attributes in elements.tags if tag == "img"]
    assert all(source.startswith(f"/tasks/{task}/plots/") for source in images)
    assert not [tag for tag, _ in elements.tags if tag in ("iframe", "object", "base", "style")]
    names = {name for _, attributes in elements.tags for name in attributes}
    assert not [name for name in names if name.startswith("on") or name == "style"]
    links = [attributes.get("href") or "" for _, attributes in elements.tags]
    assert not [link for link in links if not link.startswith(("", "/", "#", "https://example.org/"))]
    assert not [link for link in links if "javascript" in link.lower()]
    assert not set("\u202e\u2066\x1b\x00\u2028").intersection(answer.text)
    assert "49" not in re.findall(r"alert\(2\)&gt;(\d\d)", answer.text)
    if place in ("/", "/tasks/{task}"):
        assert "⟨U+202E⟩ nimda" in elements.text and "<script>alert(1)</script>" in elements.text


def test_treacherous_characters_are_shown() -> None:
    assert visible("a\u202eb\u200b\ttab\n") == "a⟨U+202E⟩b⟨U+200B⟩\ttab\n"
    assert visible("naïve 日本 ✓") == "naïve 日本 ✓"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    home = Home(tmp_path_factory.mktemp("plain"))
    tasks = [task_of(number, 1.2 + number / 10) for number in range(3)]
    fill(home, tasks, measured=3)
    with serving(desk_of(home), home) as (address, _):
        yield address, tasks[2].task_id


def test_an_acceptance_can_set_the_class_of_the_change(tmp_path: Path, visit: Visit) -> None:
    home = Home(tmp_path)
    task = task_of(1, 1.5)
    fill(home, [task], measured=1)
    desk = desk_of(home)
    with serving(desk, home) as (address, _):
        client = visit(address)
        page = client.get("/tasks/" + task.task_id).text
        options = [attributes.get("value") for tag, attributes in Elements(page).tags if tag == "option"]
        assert options == ["", "intended", "side_effect", "behaviour_changed"]
        form = {"csrf": csrf_of(page), "seen": 0, "action": "accept"}
        place = f"/tasks/{task.task_id}/decide"
        assert client.post(place, data=form | {"intent": "anything"}).status_code == 422
        client.post(place, data=form | {"intent": "side_effect"})
        assert {name: intent for name, (intent, _) in desk.decisions.intents().items()} == {task.task_id: "side_effect"}


def test_headers_of_every_answer(page: tuple[str, str]) -> None:
    for place in ("/", "/tasks/none", "/static/review.css", "/log?page=x", "/nowhere"):
        answer = httpx.get(page[0] + place, trust_env=False)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "Traceback" not in answer.text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "localhost.evil", ""])
def test_other_host_names_are_refused(page: tuple[str, str], host: str) -> None:
    assert httpx.get(page[0], headers={"host": host}, trust_env=False).status_code in (400, 421)
    assert httpx.get(page[0], headers={"host": "localhost:1"}, trust_env=False).status_code == 200


@pytest.mark.parametrize("attack", ["no token", "wrong token", "no cookie", "other origin", "cross-site", "too long"])
def test_forms_of_other_sites_do_nothing(page: tuple[str, str], attack: str, visit: Visit) -> None:
    client = visit(page[0])
    form = {"csrf": csrf_of(client.get("/tasks/" + page[1]).text), "seen": 0, "action": "accept"}
    headers = {"origin": page[0]}
    if attack == "no token":
        del form["csrf"]
    elif attack == "wrong token":
        form["csrf"] = "0" * 64
    elif attack == "no cookie":
        client.cookies.clear()
    elif attack == "other origin":
        headers["origin"] = "https://evil.example"
    elif attack == "cross-site":
        headers["sec-fetch-site"] = "cross-site"
    else:
        form["note"] = "x" * 100_000
    refused = client.post(f"/tasks/{page[1]}/decide", data=form, headers=headers)
    assert refused.status_code in (403, 413)
    assert "Nobody has acted on it" in client.get("/tasks/" + page[1]).text


def test_bad_requests_get_a_clear_page(page: tuple[str, str], visit: Visit) -> None:
    client = visit(page[0])
    csrf = csrf_of(client.get("/tasks/" + page[1]).text)
    form = {"csrf": csrf, "seen": 0, "action": "reject", "reason": "nonsense"}
    wrong = client.post(f"/tasks/{page[1]}/decide", data=form | {"note": "my words"})
    assert wrong.status_code == 422 and "needs one of the reasons" in wrong.text
    assert "Your note was “my words”" in wrong.text and 'id="patch"' in wrong.text  # inside of the task
    form["action"] = "destroy"
    assert client.post(f"/tasks/{page[1]}/decide", data=form).status_code == 422
    assert client.post("/tasks/none/decide", data=form | {"action": "accept"}).status_code == 404
    assert client.get("/?state=nonsense").status_code == 422
    assert client.get("/static/../app.py").status_code == 404


def test_the_page_of_a_candidate_shows_everything(page: tuple[str, str]) -> None:
    text = Elements(httpx.get(f"{page[0]}/tasks/{page[1]}", trust_env=False).text).text
    for part in ("1.40×", "Judge", "made anew", "Words.count", "#3", "issue 7", "removed: ", "not in list(found)"):
        assert part in text
    plots = httpx.get(f"{page[0]}/tasks/{page[1]}/evidence", trust_env=False).text
    assert "confirmed" in plots
    for part in ("base, median", "hold", "margin", "A/A"):
        assert part in plots
    address = re.search(r'href="(/tasks/[^"]+/plots/[^"]+)[.]svg"', plots)
    assert address
    for narrow in ("", "?narrow=1"):
        answer = httpx.get(f"{page[0]}{address[1]}.svg{narrow}", trust_env=False)
        drawn = Drawn(answer.text)
        assert (
            answer.headers["content-type"] == "image/svg+xml" and "sandbox" in answer.headers["content-security-policy"]
        )
        assert sum(len(drawn.marks(name)) for name in ("pair", "busy")) == 2 * 12 and len(drawn.marks("aa")) == 2 * 4
        assert "base over head, ×" in drawn.texts
    assert httpx.get(f"{page[0]}/tasks/{page[1]}/plots/none.svg", trust_env=False).status_code == 404
    assert f"perfquarry count sample --changes {task_of(2, 1.4).head_sha}" in plots


def test_where_clock_and_count_disagree_is_marked(tmp_path: Path) -> None:
    home = Home(tmp_path)
    tasks = [task_of(number, 1.5 + number / 10) for number in range(3)]
    fill(home, tasks, measured=3)
    functions = [
        FunctionCount(name=f"{EVIL}{n}", ir_base=n + 5, ir_head=None, native=False, in_patch=n == 0,
                      called_from_patch=True)
        for n in range(10)
    ]  # fmt: skip
    TableStore(home.tables).append([count_of(tasks[0], 1.0, functions), count_of(tasks[1], 1.5)])
    with serving(desk_of(home), home) as (address, _):
        queue = httpx.get(f"{address}/?state=all", trust_env=False).text
        assert queue.count("clock ≠ count") == 1
        doubted = httpx.get(f"{address}/?finding=count", trust_env=False).text
        assert tasks[0].task_id in doubted and tasks[1].task_id not in doubted
        page = httpx.get(f"{address}/tasks/{tasks[0].task_id}", trust_env=False).text
        assert "wall time and instruction count disagree" in page
        html = httpx.get(f"{address}/tasks/{tasks[0].task_id}/evidence", trust_env=False).text
        text = " ".join(Elements(html).text.split())
        for part in (
            "Instructions 1.000×",
            "over 2 seeds",
            "not_fewer",
            "2 more functions",
            "in the patch",
            "clock ≠ count",
        ):
            assert part in text
        assert "called from the patch" in text and "perfquarry count" not in text
        assert not [tag for tag, _ in Elements(html).tags if tag in ("script",)]
        html = httpx.get(f"{address}/tasks/{tasks[1].task_id}/evidence", trust_env=False).text
        assert "faster, with fewer instructions" in html and "clock ≠ count" not in html


def test_what_counts_as_disagreement() -> None:
    counts = {ratio: count_of(task_of(1, 2.0), ratio) for ratio in (1.0, 1.02, 1.5)}
    workload = counts[1.0].workload_id
    assert len(doubts([counts[1.0]], {workload: True})) == 1
    [small] = doubts([counts[1.02]], {workload: True})
    assert "1.020×" in small and "below 1.03×" in small
    assert doubts([counts[1.5]], {workload: True}) == doubts([counts[1.5]], {}) == []
    assert "not faster by the clock" in doubts([counts[1.5]], {workload: False})[0]


def test_elsewhere_each_reviewer_needs_a_token(tmp_path: Path, visit: Visit) -> None:
    home = Home(tmp_path)
    task = task_of(1, 2.0)
    fill(home, [task])
    with serving(desk_of(home), home, ("ann", "Zoë O'Neil")) as (address, guard):
        client = visit(address, follow_redirects=True)
        for place in ("/", f"/tasks/{task.task_id}", "/log", f"/tasks/{task.task_id}/evidence"):
            assert client.get(place).url.path == "/sign-in" and task.title not in client.get(place).text
        for wrong in ("x", guard.token("ann")[:-1] + "0x", guard.token("eve"), "Zm9v.é"):
            assert client.get("/sign-in", params={"token": wrong}).status_code == 403
        refused = client.post(f"/tasks/{task.task_id}/decide", data={"seen": 0, "action": "accept"})
        assert task.title not in refused.text
        answer = client.get("/sign-in", params={"token": guard.token("Zoë O'Neil")})
        assert task.title in answer.text and "Zoë O&#39;Neil" in answer.text and "token" not in str(answer.url)
        form = {"csrf": csrf_of(client.get(f"/tasks/{task.task_id}").text), "seen": 0, "action": "accept"}
        client.post(f"/tasks/{task.task_id}/decide", data=form)
        assert "accepted it" in client.get("/log").text
        stranger = visit(address)
        stranger.get("/sign-in", params={"token": guard.token("ann")})
        assert stranger.post(f"/tasks/{task.task_id}/decide", data=form).status_code == 403


def test_near_candidates_are_there_when_asked_for(tmp_path: Path) -> None:
    home = Home(tmp_path)
    near = task_of(1, 1.5, status="rejected", reason="not_confirmed")
    far = task_of(2, 1.0, status="rejected", reason="slower")
    fill(home, [near, far, task_of(3, 2.0)], measured=2)
    for limit, number in ((None, 1), (0.025, 2)):
        desk = desk_of(home, near=limit)
        assert sum(desk.queue("ann").counts().values()) == number
        desk.close()


def test_the_diff_pairs_lines_and_marks_words_and_targets() -> None:
    patch = task_of(1, 2.0).patch
    [file] = side_by_side(patch, ["pkg/words.py::Words.count"]).files
    rows = file.hunks[0].rows
    [changed] = [row for row in rows if row.kind == "change"]
    assert (changed.old, changed.new) == (4, 4) and "<mark>" in changed.old_html
    assert all(row.target for row in rows)
    assert [row.old for row in rows if row.note == "Words.count"] == [1], "noted once, where it begins"
    assert not any(row.target for row in side_by_side(patch, ["pkg/words.py::other"]).files[0].hunks[0].rows)
    assert side_by_side("@@ no diff").raw and side_by_side("").files == []
    long = side_by_side("--- a/x\n+++ b/x\n@@ -0,0 +1,4000 @@\n" + "+x\n" * 4000)
    assert long.hidden == 1500 and len(long.files[0].hunks[0].rows) == 2500


@pytest.mark.parametrize(
    ("text", "strings"),
    [
        ('    [1, 2]\n    """\n    it = 1\n', [0, 1]),
        ("    ends here.'''\n    it = 1\n", [0]),
        ('    of f("a")\n\n    more.\n    """\n    it = 1\n', [0, 2, 3]),
        ('def f():\n    """One line."""\n    it = 1\n', [1]),
        ('def f():\n    """\n    Text.\n    """\n    it = 1\n', [1, 2, 3]),
        ('it = """\ntext\n', [0, 1]),
        ('it = f(r"""\ntext\n""")\n', [0, 1, 2]),
        ("it = 1\nno = 2\n", []),
    ],
)
def test_a_part_that_begins_within_a_docstring_is_coloured_so(text: str, strings: list[int]) -> None:
    lines = lines_of_part(text, lexer_for("a.py"))
    assert [number for number, line in enumerate(lines) if any(colour == "s" for _, colour in line)] == strings
    assert "".join(part for line in lines for part, _ in line) == text.replace("\n", "")
    assert not any(colour for _, colour in lines_of_part('"""\n', lexer_for("a.txt"))[0])


def test_code_of_a_test_is_found_by_indentation() -> None:
    head = "class A:\n    @mark\n    def t(self,\n          x):\n        print 'python 2'\n\n"
    text = head + "    def u(self):\n        pass\ndef t():\n    pass\n"
    assert source_of(text, "f.py::A::t") == "@mark\ndef t(self,\n      x):\n    print 'python 2'"
    assert source_of(text, "f.py::A::u") == "def u(self):\n    pass"
    assert source_of(text, "f.py::B::t") == ""


def test_only_web_addresses_become_links() -> None:
    assert web_address("https://example.org/a/b.git", "pull", "3") == "https://example.org/a/b/pull/3"
    for other in ("javascript:alert(1)", "file:///etc", "/tmp/x", "", "https://user:pw@example.org/x"):
        assert web_address(other, "pull", "3") == ""
