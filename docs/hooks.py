"""What mkdocs does beside rendering: reference pages made from the code.

They are made at each build and not committed, so that they cannot differ from the code.
"""

from __future__ import annotations

import ast
import re
import typing
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pydantic import BaseModel
from pydantic_core import PydanticUndefined
from rich.text import Text

from perfquarry.curation.release.folder import CONFIGURATIONS
from perfquarry.data.records import HELP, MEANING, Reason, Row
from perfquarry.data.schema import arrow_schema, row_models
from perfquarry.flows.cli import GROUPS, app
from perfquarry.flows.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("perfquarry", "data", "llm", "harness", "miners", "testgen", "curation", "flows")
_KINDS: dict[Any, str] = {int: "number", float: "number", Path: "path", datetime: "date"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the reference pages."""
    for name, text in pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def pages() -> dict[str, str]:
    """The generated pages by their path."""
    return {
        "reference/commands.md": commands_page(),
        "reference/settings.md": settings_page(),
        "reference/tables.md": tables_page(),
        "reference/release-columns.md": release_page(),
        "reference/reasons.md": reasons_page(),
        "reference/modules.md": modules_page(),
        "decisions/index.md": decisions_page(),
    }


# commands


def commands(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All commands below one, with the words that call them."""
    for name, one in getattr(command, "commands", {}).items():
        yield (*path, name), one
        yield from commands(one, *path, name)


def commands_page() -> str:
    """Every command with its arguments and options."""
    whole = typer.main.get_command(app)
    known = list(commands(whole))
    text = [
        "# Commands",
        "Exit codes: 0 done, 1 the work failed, 2 wrong usage or input, 130 interrupted by Ctrl-C. Every command that "
        "prints facts has `--json`. `perfquarry --version` prints the version.",
    ]
    for group, names in GROUPS.items():
        text.append(f"## {group}")
        text += [_command(path, one) for path, one in known if path[0] in names]
    return "\n\n".join(text) + "\n"


def _command(path: tuple[str, ...], command: Any) -> str:
    level = "#" * (2 + len(path))
    text = [f"{level} perfquarry {' '.join(path)}", plain(command.help or "")]
    if not getattr(command, "commands", None):
        shown = [one for one in command.params if one.name != "help" and not getattr(one, "hidden", False)]
        rows = [(f"{_names(one)} {_kind(one)}", _meaning(one)) for one in shown]
        text.append(table(("argument or option", "meaning"), rows))
    return "\n\n".join(text)


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{str(parameter.name).upper()}`"
    return ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))


def _kind(parameter: Any) -> str:
    if getattr(parameter, "is_flag", False):
        return ""
    kind = parameter.type_descriptor.annotation
    if typing.get_origin(kind) is typing.Literal:
        return ", ".join(f"`{one}`" for one in typing.get_args(kind))
    kind = next((one for one in typing.get_args(kind) if one is not type(None)), kind)
    return _KINDS.get(kind, "text")


def _meaning(parameter: Any) -> str:
    default, shown = parameter.default, getattr(parameter, "show_default", None)
    if parameter.required:
        after = " Required."
    elif isinstance(shown, str):
        after = f" Default: {shown}."
    else:
        none = default is None or isinstance(default, bool) or callable(default) or default == ""
        after = "" if none else f" Default: `{default}`."
    return plain(getattr(parameter, "help", "") or "") + after


# settings


def settings_page() -> str:
    """Every table of a settings file and every field."""
    text = [
        "# Settings",
        "A settings file is TOML: one table per stage, given with `--settings FILE.toml`. Unknown names are errors. "
        "Every row carries the hash of the settings that decided it; with other settings, a stage makes new rows "
        "beside the old ones.",
    ]
    for name, field in Settings.model_fields.items():
        text += _settings(name, typing.cast(Any, field.annotation))
    return "\n\n".join(text) + "\n"


def _settings(place: str, model: type[BaseModel]) -> list[str]:
    rows, nested = [], []
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            nested += _settings(f"{place}.{name}", field.annotation)
            continue
        for inner in typing.get_args(field.annotation):
            if isinstance(inner, type) and issubclass(inner, BaseModel):  # tables by name
                nested += _settings(f'{place}.{name}."NAME"', inner)
        default = "" if field.default is PydanticUndefined else f" Default: `{_toml(field.default)}`."
        rows.append((f"`{name}`", f"{field.description or ''}{default}"))
    summary = " ".join((model.__doc__ or "").split("\n\n")[0].split())
    return [f"## [{place}]", _linked(summary), table(("field", "meaning"), rows), *nested]


def _toml(value: Any) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    return str(list(value)) if isinstance(value, tuple) else str(value)


# tables, columns of a release


def tables_page() -> str:
    """Every table and column."""
    text = [
        "# Tables",
        "One Parquet table per record, in `HOME/tables/TABLE/repo=NAME/`. Rows are only added. A rejection is a row, "
        "too, with its reason. `perfquarry.open_home().frame(TABLE)` reads a table as a pandas frame.",
    ]
    common = set(Row.model_fields)
    text += ["## Columns of every table", _columns(arrow_schema(Row))]
    for model in row_models().values():
        key = ", ".join(f"`{name}`" for name in model.KEY)
        own = pa.schema([field for field in arrow_schema(model) if field.name not in common])
        text += [f"## {model.TABLE}", _linked(" ".join((model.__doc__ or "").split())), f"Key: {key}.", _columns(own)]
    return "\n\n".join(text) + "\n"


def release_page() -> str:
    """Every column of every configuration of a release."""
    text = [
        "# Columns of a release",
        "A release has one Parquet file per configuration. Its own `SCHEMA.md` holds the same text.",
    ]
    for name, schema in CONFIGURATIONS.items():
        text += [f"## {name}", _columns(schema)]
    return "\n\n".join(text) + "\n"


def _columns(schema: pa.Schema) -> str:
    return table(("column", "meaning", "type"), [row for field in schema for row in _column(field)])


def _column(field: pa.Field, place: str = "") -> Iterator[tuple[str, str, str]]:
    kind, name = field.type, f"{place}{field.name}"
    described = (field.metadata or {}).get(b"description", b"").decode()
    mark = ""
    while pa.types.is_list(kind):
        kind, mark = kind.value_type, mark + "[]"
    nested = pa.types.is_struct(kind)
    shown = f"{'struct' if nested else kind}{mark}{', or null' if field.nullable else ''}"
    yield f"`{name}`", described, shown
    for inner in kind if nested else ():
        yield from _column(inner, f"{name}.")


# reasons, modules, decisions


def reasons_page() -> str:
    """Every reason with its meaning and what helps."""
    rows = [(f"`{one}`", MEANING[one], HELP.get(one, "")) for one in Reason]
    text = [
        "# Reasons",
        "Why a change, a workload, a problem text or a graded patch was rejected, in the order of the stages. "
        "`perfquarry funnel` counts them.",
    ]
    return "\n\n".join([*text, table(("reason", "meaning", "what helps"), rows)]) + "\n"


def modules_page() -> str:
    """Every module with the first sentence of its docstring."""
    text = [
        "# Modules",
        "Rooms import downwards only: `flows`, then `curation`, `testgen` and `miners`, then `harness` and `llm`, then "
        "`data`. Each is imported as `perfquarry.ROOM`.",
    ]
    for room in ROOMS:
        rows = [(f"`{path}`", summary) for path, summary in modules(room)]
        text += [f"## {room}/", table(("file", "what is in it"), rows)]
    return "\n\n".join(text) + "\n"


def modules(room: str) -> Iterator[tuple[str, str]]:
    """Files of a room with the first paragraph of their docstrings; those without one are left out."""
    for path in sources(room):
        summary = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")[0]
        if summary:
            yield str(path.relative_to(ROOT)), " ".join(summary.split())


def sources(room: str) -> list[Path]:
    """Python files of a room, without the demo's library and without links to other rooms."""
    found = (path for path in (ROOT / room).rglob("*.py") if "demo/history" not in path.as_posix())
    return sorted(path for path in found if path.resolve() == path)


def decisions_page() -> str:
    """All decisions by number."""
    rows = []
    for path in sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md")):
        title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("#").strip()
        rows.append(f"- [{re.sub('[][]', '', title)}]({path.name})")
    return "\n".join(["# Decisions", "", "Why it is built this way, one page each, oldest first.", "", *rows, ""])


def plain(text: str) -> str:
    """A help text without rich's markup, as one line."""
    return " ".join(Text.from_markup(text).plain.split())


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table; brackets and bars in cells stay what they are."""
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    # only what is outside of code may be taken for a link or a tag
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else _linked(re.sub(r"([\[\]<>*_|])", r"\\\1", part)) for part in parts)


def _linked(text: str) -> str:
    """Pages that help texts name as files, as links."""
    return re.sub(r"docs/([\w/-]+)\.md", r"[\1](../\1.md)", text)
