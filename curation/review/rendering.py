"""Templates: everything that is written into a page is escaped, and treacherous characters are made visible."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from jinja2 import Environment, FileSystemLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup

from perfquarry.curation.plots.canvas import times
from perfquarry.curation.plots.palette import PALETTE, css
from perfquarry.curation.review.colours import code_html, visible
from perfquarry.curation.review.vocabulary import FINDINGS, INTENT_TEXT, OUTCOME_TEXT, REASON_TEXT, TERMS
from perfquarry.data.records import MEANING, Reason

STATIC = Path(__file__).with_name("static")
SITE = Path(__file__).parents[1] / "templates" / "site"
_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
_UNITS = (("s", 1.0), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9))


def _shown(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _path_part(text: str) -> str:
    return quote(text, safe="")


def _day(text: str) -> str:
    return datetime.fromisoformat(text).strftime("%Y-%m-%d")


def _minute(text: str) -> str:
    return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M")


def _seconds(value: float) -> str:
    """A duration with three digits and its unit."""
    unit, scale = next((one for one in _UNITS if abs(value) * one[1] >= 1), _UNITS[-1])
    return f"{value * scale:.3g} {unit}"


def _share(value: float | None) -> str:
    """A share or a relative spread for people: '1.3 %'."""
    return "–" if value is None else f"{100 * value:.3g} %"


def _meaning(reason: str | None) -> str:
    return MEANING.get(Reason(reason), reason) if reason in set(Reason) and reason else reason or ""


def web_address(url: str, *parts: str) -> str:
    """An https address below a repository's; '' where it is no web address."""
    split = urlsplit(url)
    if split.scheme not in ("http", "https") or not split.hostname or split.username:
        return ""
    return "/".join([url.removesuffix(".git").rstrip("/"), *(quote(part, safe="") for part in parts)])


@cache
def _digest(name: str) -> str:
    return hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]


def _static(name: str) -> str:
    return f"/static/{name}?v={_digest(name)}"


@cache
def environment() -> Environment:
    """The templates of this folder."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters |= {
        "part": _path_part, "day": _day, "minute": _minute, "seconds": _seconds, "times": times, "code": code_html,
        "meaning": _meaning, "share": _share,
    }  # fmt: skip
    made.globals |= {
        "static": _static, "web": web_address, "REASONS": REASON_TEXT, "OUTCOMES": OUTCOME_TEXT,
        "INTENTS": INTENT_TEXT, "TERMS": TERMS, "FINDINGS": FINDINGS,
    }  # fmt: skip
    return made


@cache
def pages() -> Environment:
    """The same for pages that need no server, which have the templates of both folders."""
    folders = {"site": SITE, "review": STATIC.with_name("templates")}
    return environment().overlay(loader=PrefixLoader({name: FileSystemLoader(one) for name, one in folders.items()}))


@cache
def style() -> Markup:
    """The style of such pages, with the colours of all plots."""
    sheets = [file.read_text(encoding="utf-8") for file in (STATIC / "review.css", SITE / "site.css")]
    return Markup("".join([*sheets, css(frozenset(one.name for one in PALETTE))]))  # noqa: S704 - files of ours


def inline(svg: str) -> Markup:
    """A plot within such a page, without the style that it has as a file."""
    return Markup(_STYLE.sub("", svg))  # noqa: S704 - drawn here, its texts are escaped


def warm() -> None:
    """Compiles all templates, so that the first page is no slower than others."""
    for name in environment().list_templates():
        environment().get_template(name)


def render(template: str, **context: Any) -> str:
    """A page or a part of one."""
    return environment().get_template(template).render(**context)
