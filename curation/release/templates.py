"""The texts of a release are jinja templates in `curation/templates`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

FOLDER = Path(__file__).parents[1] / "templates"


def render(name: str, **values: Any) -> str:
    """A template filled in: text is escaped in HTML; `cell` keeps it in one line and cell of a table."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=name.endswith(".html.jinja"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["cell"] = cell
    return environment.get_template(name).render(values)


def cell(text: object) -> str:
    """Text from a repository as one cell of a Markdown table: one line, neither HTML nor markup of ours."""
    plain = " ".join(str(text).split()).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{sign}" if sign in r"\`*_[]|!" else sign for sign in plain)
