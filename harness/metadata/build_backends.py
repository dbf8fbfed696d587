"""Where the settings of build backends in pyproject.toml say that packages lie."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*")

Tables = dict[str, Any]


def modules_of(tool: Tables) -> list[str]:
    """Paths of packages and modules, without an ending, that the table `tool` names; most say nothing.

    Settings with patterns are passed over: the tree shows what they find.
    """
    found = [path for read in _READERS for path in read(tool)]
    cleaned = [path.removeprefix("./").strip("/").removesuffix(".py") for path in found]
    return list(dict.fromkeys(path for path in cleaned if _PATH.fullmatch(path) and ".." not in path))


def _flit(tool: Tables) -> Iterator[str]:
    names = [table_of(tool, "flit", "module").get("name"), table_of(tool, "flit", "metadata").get("module")]
    for name in texts_of(names):
        path = name.replace(".", "/")
        yield from (f"src/{path}", path)


def _hatch(tool: Tables) -> Iterator[str]:
    build = table_of(tool, "hatch", "build")
    for table in (table_of(build, "targets", "wheel"), build):
        yield from texts_of(table.get("packages"))
        for key in ("include", "only-include"):
            yield from (path for path in texts_of(table.get(key)) if path.endswith(".py") or "." not in path)


def _poetry(tool: Tables) -> Iterator[str]:
    packages = table_of(tool, "poetry").get("packages")
    for entry in packages if isinstance(packages, list) else []:
        if isinstance(entry, dict) and entry.get("format") != "sdist":
            folder = "/".join(texts_of([entry.get("from"), entry.get("include")]))
            yield folder.removesuffix("/**/*").removesuffix("/*")


def _pdm(tool: Tables) -> Iterator[str]:
    for table in (table_of(tool, "pdm", "build"), table_of(tool, "pdm")):
        yield from (path for path in texts_of(table.get("includes")) if path.endswith(".py") or "." not in path)


def _uv(tool: Tables) -> Iterator[str]:
    backend = table_of(tool, "uv", "build-backend")
    names = backend.get("module-name")
    root = backend.get("module-root")
    for name in texts_of(names if isinstance(names, list) else [names]):
        yield "/".join(filter(None, [root if isinstance(root, str) else "src", name.replace(".", "/")]))


def _scikit_build(tool: Tables) -> Iterator[str]:
    packages = table_of(tool, "scikit-build", "wheel").get("packages")
    yield from texts_of(list(packages.values()) if isinstance(packages, dict) else packages)


def _maturin(tool: Tables) -> Iterator[str]:
    settings = table_of(tool, "maturin")
    for name in texts_of([settings.get("module-name")]):
        root = settings.get("python-source")
        yield "/".join(filter(None, [root if isinstance(root, str) else "", name.partition(".")[0]]))


_READERS: tuple[Callable[[Tables], Iterator[str]], ...] = (_flit, _hatch, _poetry, _pdm, _uv, _scikit_build, _maturin)


def table_of(data: Tables, *keys: str) -> Tables:
    """A table within others; empty where there is none."""
    for key in keys:
        value = data.get(key)
        data = value if isinstance(value, dict) else {}
    return data


def texts_of(value: object) -> list[str]:
    """The texts of a list; none where it is no list."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
