"""The documentation site: built strictly, complete, links checked, readable without a server and without a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, sync_playwright

from docs import hooks
from perfquarry.data.records import MEANING, Reason, Row
from perfquarry.data.schema import row_models
from perfquarry.flows.settings import Settings
from tests.doc_pages import ROOT, blocks, documents
from tests.system.test_review_browser import CHROMIUM, FLAGS, RULES

PAGES = hooks.pages()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr[-3000:]
    return folder


class Page(HTMLParser):
    """What a page refers to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.parts: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors.update(name for name in (found.get("id"), found.get("name")) if name)
        place = found.get("href") or found.get("src") or found.get("srcset")
        if place:
            (self.links if tag == "a" else self.parts).append(place)


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 90  # decisions among them
    for path in pages:
        foreign = [part for part in Page(path).parts if urlsplit(part).netloc]
        assert not foreign, f"{path.name} loads {foreign}"
    for style in site.rglob("*.css"):
        assert not re.findall(r"url\(['\"]?(?:https?:)?//", style.read_text(encoding="utf-8")), style


def test_links_of_built_pages_lead_somewhere(site: Path) -> None:
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        if path.name == "404.html":  # its links are those of a site at the root of a host
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            assert target.exists(), f"{path.relative_to(site)} links to {link}"
            if parts.fragment and not parts.fragment.startswith("__"):
                known = pages[target].anchors if target in pages else {unquote(parts.fragment)}
                assert unquote(parts.fragment) in known, f"{path.relative_to(site)} links to {link}"


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_of_the_files_at_the_top_lead_somewhere(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)|src(?:set)?=\"([^\"]+)\"", text)
    assert links
    for link in (one or other for one, other in links):
        assert (ROOT / link).exists(), link


def test_readme_fits_on_two_screens_and_names_both_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 80
    assert "make curate" in text and "make test" in text


def test_each_page_that_the_code_names_exists() -> None:
    for room in (*hooks.ROOMS, "benchmarks", "tests"):
        for path in hooks.sources(room):
            for name in re.findall(r"\bdocs/[\w/-]+\.md\b", path.read_text(encoding="utf-8")):
                if path.name not in ("test_history.py", "test_pulls_git.py", "test_apis.py", "test_docs_site.py"):
                    assert (ROOT / name).exists(), f"{path.relative_to(ROOT)} names {name}"


# completeness of the reference


def test_every_command_and_option_is_described() -> None:
    page = PAGES["reference/commands.md"]
    import typer

    from perfquarry.flows.cli import app

    found = list(hooks.commands(typer.main.get_command(app)))
    assert len(found) > 35
    for path, command in found:
        section = page.partition(f" perfquarry {' '.join(path)}\n")[2].split("\n### ")[0]
        assert section, path
        for option in command.params if not getattr(command, "commands", None) else []:
            if option.name != "help":
                assert hooks._names(option) in section, (path, option.name)
                assert getattr(option, "help", None), f"{path}: {option.name} has no help text"


def fields(model: type[Any], place: str) -> Iterator[tuple[str, str, Any]]:
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and hasattr(inner, "model_fields"):
            yield from fields(inner, f"{place}.{name}".strip("."))
        else:
            yield place, name, field


def test_every_setting_is_described() -> None:
    page = PAGES["reference/settings.md"]
    found = list(fields(Settings, ""))
    assert len(found) > 100
    for place, name, field in found:
        section = page.partition(f"## [{place}]\n")[2].split("\n## ")[0]
        assert f"| `{name}` |" in section, (place, name)
        assert field.description, f"{place}.{name} has no description"


def test_every_table_and_column_is_in_the_reference() -> None:
    page = PAGES["reference/tables.md"]
    for model in row_models().values():
        section = page.partition(f"\n## {model.TABLE}\n")[2].split("\n## ")[0]
        assert section, model
        for name in set(model.model_fields) - set(Row.model_fields):
            assert f"| `{name}` |" in section, (model.TABLE, name)


def test_every_column_of_a_release_is_in_the_reference() -> None:
    page = PAGES["reference/release-columns.md"]
    for name, schema in hooks.CONFIGURATIONS.items():
        section = page.partition(f"\n## {name}\n")[2].split("\n## ")[0]
        assert [column for column in schema.names if f"| `{column}` |" not in section] == [], name


def test_every_reason_is_in_the_reference() -> None:
    for reason in Reason:
        assert f"| `{reason}` | {hooks._cell(MEANING[reason])} |" in PAGES["reference/reasons.md"]


def test_every_variable_of_ours_is_described() -> None:
    page = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
    texts = [path.read_text(encoding="utf-8") for room in hooks.ROOMS for path in hooks.sources(room)]
    texts += [(ROOT / name).read_text(encoding="utf-8") for name in ("compose.yaml", "Dockerfile", "Makefile")]
    found = {name for text in texts for name in re.findall(r"\bPERFQUARRY_[A-Z_]*[A-Z]\b", text)}
    assert len(found) >= 8
    assert {name for name in found if f"| `{name}` |" not in page} == set()


def test_the_glossary_has_at_most_25_terms_in_order() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^\| \*\*(.+?)\*\*", text, re.M)
    keys = [term.replace("δ", "delta").lower() for term in terms]
    assert len(terms) <= 25 and keys == sorted(keys)


def test_blocks_that_are_run_are_found() -> None:
    """A mark that is not read would let a block rot."""
    for path in documents():
        marks = re.findall(r"^<!-- run|^```\w+ title=", path.read_text(encoding="utf-8"), re.M)
        assert len(marks) == sum(bool(block.mark) + bool(block.title) for block in blocks(path)), path


def test_files_that_pages_name_are_there_and_define_what_the_pages_say() -> None:
    """How to extend it: `Stage` in `flows/stages.py`, `supervise` (`harness/…`); and the rows of the hops."""
    file, found = rf"`((?:{'|'.join(hooks.ROOMS)})/[\w/]+\.py)`", 0
    for path in documents():
        for line in path.read_text(encoding="utf-8").splitlines():
            said = re.findall(rf"`(\w+)` (?:in |\(){file}", line) if path.parent.name == "extend" else []
            if path.name == "hops.md" and line.startswith("| "):
                said += [("|".join(re.findall(r"`(\w+)`", line)), place) for place in re.findall(file, line)]
            for name, place in said:
                text = (ROOT / place).read_text(encoding="utf-8")
                assert re.search(rf"^(?:def |class )?(?:{name})\b", text, re.M), f"{path.name}: {place} has no {name}"
            found += len(said)
            assert all((ROOT / place).is_file() for place in re.findall(file, line)), f"{path.name}: {line[:200]}"
    assert found > 20


# in a browser, from files


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not os.access(CHROMIUM, os.X_OK):
        pytest.skip(f"no {CHROMIUM} on this machine (Debian: chromium-headless-shell)")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=[f"--{flag}" for flag in FLAGS])
        yield launched
        launched.close()


def test_the_search_works_without_a_server(site: Path, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(60_000)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"file://{site}/tutorial.html")
    page.click("input[name=query]")
    page.keyboard.type("harmonic")
    page.wait_for_selector(".md-search-result__item a")
    titles = page.locator(".md-search-result__item h1").all_inner_texts()
    assert "Evaluation" in titles
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:"))] == []


@pytest.mark.parametrize(
    ("scheme", "width", "names"),
    [
        pytest.param(
            "light",
            1440,
            ("index", "tutorial", "glossary", "statistics", "figures", "how-to/review"),
            marks=pytest.mark.slow,
        ),
        ("dark", 390, ("index", "statistics", "reference/settings")),
    ],
)
def test_axe_finds_nothing(site: Path, browser: Browser, scheme: Any, width: int, names: tuple[str, ...]) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    for name in names:
        page.goto(f"file://{site}/{name}.html")
        found = Axe().run(page, options={"runOnly": RULES}).response["violations"]
        assert not [(one["id"], [node["html"] for node in one["nodes"]]) for one in found], name


@pytest.mark.parametrize("name", ["index", "statistics", "reference/commands", "reference/tables", "security"])
def test_pages_do_not_overflow_a_phone(site: Path, browser: Browser, name: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(f"file://{site}/{name}.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
