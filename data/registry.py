"""The registry: what is known of each repository, one TOML file each in `data/repositories/`."""

from __future__ import annotations

import difflib
import re
import tomllib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit, urlunsplit

from pydantic import Field, ValidationError, field_validator

from perfquarry.data.errors import InputError, UnknownRepository
from perfquarry.data.records import Record, content_id

_SCHEMES = ("https", "http", "ssh", "git", "file")
_SCP_LIKE = re.compile(r"(?P<user>[\w.-]+@)?(?P<host>[\w.-]{2,}):(?!//)(?P<path>[^:]+)")


class Repository(Record):
    """What cannot be read from the repository itself. Defaults mean: find out from the tree."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", description="Registry name; names folders and tables.")
    codebase: str = Field(description="'owner/name', or the name where there is no owner.")
    url: str = Field(default="", description="Where to clone from, without credentials; empty: built on the spot.")
    branch: str = Field(default="", description="Branch whose history is mined; empty: the remote's default.")
    packages: list[str] = Field(default_factory=list, description="Import names; empty: those found in the tree.")
    source_dirs: list[str] = Field(
        default_factory=list,
        description="Folders that have held the packages, relative: those a commit has go on sys.path; empty: found.",
    )
    project_dir: str = Field(
        default="", description="Folder with the pyproject.toml or setup.py of the package, relative; empty: found."
    )
    test_paths: list[str] = Field(
        default_factory=list, description="Folders or globs that hold test files, relative; others are found by name."
    )
    test_globs: list[str] = Field(
        default_factory=lambda: ["test_*.py", "*_test.py"], description="Names of test files."
    )
    python: str = Field(
        default="", description="Versions to try, '>=3.6': with the commit's own metadata and date, whichever is less."
    )
    requirements: list[str] = Field(
        default_factory=list, description="Installed besides the commit's own dependencies: what the build needs."
    )
    build: list[str] = Field(
        default_factory=list,
        description="Shell commands in the tree that build extensions in place; empty: pure Python used from the tree, "
        "or, without `packages`, found in the tree.",
    )
    build_env: dict[str, str] = Field(default_factory=dict, description="Environment variables of the commands.")
    without_submodules: dict[str, dict[str, str]] = Field(
        default_factory=dict,
        description="Environment variables that turn off what a submodule holds, by its path: set where it is absent.",
    )
    test_requirements: list[str] = Field(
        default_factory=list,
        description="Installed besides pytest, for all of the history; empty: those the tree names.",
    )
    extras: list[str] = Field(
        default_factory=list, description="Extras and dependency groups of the package that its tests need, too."
    )
    environment: dict[str, str] = Field(
        default_factory=dict, description="Environment variables of the tests, beside those that measuring needs."
    )
    test_arguments: list[str] = Field(
        default_factory=list, description="Options of pytest, such as '-p', 'no:doctest': the tree's own do not count."
    )
    writable_tree: bool = Field(
        default=False, description="Tests write into the tree: each of their processes gets a copy of its own."
    )
    test_command: str = Field(default="python -m pytest", description="How its developers run the tests, for people.")
    test_kind: Literal["pytest"] = Field(default="pytest", description="What collects the tests.")
    licence: str = Field(default="", description="SPDX expression of the repository's licence.")
    notes: str = Field(default="", description="What is particular or not known, for people.")

    @field_validator("python")
    @classmethod
    def _is_specifier(cls, value: str) -> str:
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        try:
            SpecifierSet(value)
        except InvalidSpecifier as error:
            raise ValueError(f"{value!r} is no version range such as '>=3.6,<3.12'") from error
        return value

    def recipe_hash(self) -> str:
        """Hash of what decides how a commit is built and tested; notes and names are not part of it."""
        left_out = {"notes", "licence", "url", "branch", "test_command"}
        later = {"project_dir", "writable_tree"}  # where these say nothing, the hash is as it was before them
        left_out |= {name for name in later if not getattr(self, name)}
        return content_id(self.model_dump(mode="json", exclude=left_out))


def names() -> list[str]:
    """Names in the registry, sorted."""
    return sorted(file.name.removesuffix(".toml") for file in _folder().iterdir() if file.name.endswith(".toml"))


def load(name: str) -> Repository:
    """The entry of a name, in any case.

    Raises:
        UnknownRepository: no such entry; lists names that are near.
        InputError: the entry has an unknown key or a wrong value; names file and key.
    """
    known = names()
    if name.lower() not in known:
        near = difflib.get_close_matches(name.lower(), known, n=3)
        names_there = f"Near names: {', '.join(near)}" if near else f"The registry has {', '.join(known)}"
        raise UnknownRepository(f"{name!r} is no repository of the registry, no git URL and no folder. {names_there}")
    return _load(name.lower())


@cache
def _load(name: str) -> Repository:
    file = _folder() / f"{name}.toml"
    return parse(name, file.read_text(encoding="utf-8"), str(file))


def _folder() -> resources.abc.Traversable:
    return resources.files("perfquarry.data") / "repositories"


def parse(name: str, text: str, where: str, **known: str) -> Repository:
    """The entry that a TOML text describes; `where` names it in errors, `known` is what the text need not say.

    Raises:
        InputError: it is no TOML, or has an unknown key or a wrong value.
    """
    try:
        return Repository.model_validate({"name": name, **known, **tomllib.loads(text)})
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where} is no TOML: {error}") from error
    except ValidationError as error:
        found = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        raise InputError(f"{where}: {'; '.join(found)}") from error


def resolve(text: str, recipes: Path | None = None) -> Repository:
    """What a person means by a name of the registry or of a recipe, a git URL, or a local folder.

    What the recipe of that repository says (`NAME.toml` in `recipes`) takes precedence; the rest stays as it was.

    Raises:
        UnknownRepository: none of these; lists names that are near.
        InputError: the recipe is no TOML, or has an unknown key or a wrong value.
    """
    own = named(text)
    if recipes is None:
        return _resolve(text)
    try:
        found = _resolve(text)
    except UnknownRepository:
        if own is None or not (recipes / f"{own.name}.toml").is_file():
            raise
        found = own
    return with_recipe(found, recipes / f"{found.name}.toml")


def with_recipe(entry: Repository, file: Path) -> Repository:
    """The entry with what a recipe says in its place; the entry itself where there is no such file.

    Raises:
        InputError: it cannot be read, is no TOML, or has an unknown key or a wrong value.
    """
    if not file.is_file():
        return entry
    try:
        said = parse(entry.name, file.read_text(encoding="utf-8"), str(file), codebase=entry.codebase)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the recipe {file}: {error}") from error
    given = said.model_dump(include=said.model_fields_set - {"name"})
    return Repository.model_validate(entry.model_dump(include=entry.model_fields_set) | given)


def named(text: str) -> Repository | None:
    """An entry that has only a name of the user's own, as tables and folders spell it; None for what can be no name."""
    text = text.strip()
    return Repository(name=_safe(text), codebase=text) if re.fullmatch(r"[\w.-]*\w[\w.-]*", text) else None


def _resolve(text: str) -> Repository:
    """What a person means by a name of the registry, a git URL, or a local folder.

    A URL of a registered repository is that entry. The name of any other is made from host,
    owner and name ('owner__name' on GitHub); a folder's from its own name and a hash of its
    absolute path. User names and passwords of http URLs are dropped: git's credential
    helpers know them, tables must not.

    Raises:
        UnknownRepository: none of these; lists names that are near.
    """
    text = text.strip()
    if text.lower() in names():
        return load(text)
    if url := _git_url(text):
        return _of_url(url)
    folder = Path(text).expanduser()
    if text and folder.is_dir():
        path = folder.resolve()
        return Repository(name=f"{_safe(path.name)}-{content_id(str(path))[:6]}", codebase=path.name, url=str(path))
    return load(text)


def registered_at(url: str) -> Repository | None:
    """The registry's entry of an address, in whatever way it is written; None without one."""
    key = _location(url)
    return next((entry for entry in map(load, names()) if entry.url and _location(entry.url) == key), None)


def _of_url(url: str) -> Repository:
    if entry := registered_at(url):
        return entry
    key = _location(url)
    host, _, path = key.partition("/")
    owner_and_name = path.split("/")[-2:]
    parts = owner_and_name if host == "github.com" else [host, *path.split("/")]
    return Repository(name=_safe("__".join(filter(None, parts))), codebase="/".join(owner_and_name), url=url)


def _git_url(text: str) -> str | None:
    """The text as a URL git can clone, without secrets, or None. Other transports (`ext::`) run commands: refused."""
    scheme = text.partition("://")[0].lower() if "://" in text else ""
    if scheme in _SCHEMES:
        parts = urlsplit(plain_address(text))
        return urlunsplit((scheme, parts.netloc, parts.path.rstrip("/"), "", "")) if parts.path.strip("/") else None
    if not scheme and _SCP_LIKE.fullmatch(text) and not Path(text).exists():
        return text.rstrip("/")
    return None


def plain_address(url: str) -> str:
    """A URL without secrets: of http without its user, who may be a token, of others without a password."""
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    user = "" if parts.scheme in ("http", "https") else user.partition(":")[0]
    return urlunsplit(parts._replace(netloc=f"{user}@{host}" if user else host))


def _location(url: str) -> str:
    """'host/owner/name' in lower case: equal for all ways to write the address of one repository."""
    if match := _SCP_LIKE.fullmatch(url):
        host, path = match["host"], match["path"]
    else:
        parts = urlsplit(url)
        host, path = parts.hostname or "", parts.path
    return f"{host}/{unquote(path).strip('/').removesuffix('.git').strip('/')}".lower()


def _safe(text: str) -> str:
    """A name for folders and tables: lower case letters, digits, '.', '_', '-', at most 100."""
    name = re.sub(r"[^a-z0-9._-]+", "-", text.lower()).lstrip("._-")[:100]
    return name or "repository"
