"""The registry: every entry loads, and names, URLs and folders become the right record."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfquarry.data.errors import InputError, UnknownRepository
from perfquarry.data.registry import Repository, load, names, parse, resolve

GSO = "numpy pandas pillow pillow-simd pydantic tornado tokenizers transformers datasets llama-cpp-python"
SWE_PERF = "astropy django matplotlib seaborn flask requests xarray pylint pytest scikit-learn sphinx sympy"


def test_the_registry_holds_the_repositories_of_both_benchmarks_and_ours() -> None:
    assert set(names()) == {*GSO.split(), *SWE_PERF.split(), "tornado", "sortedcontainers", "sympy", "demo"}


@pytest.mark.parametrize("name", names())
def test_every_entry_is_whole(name: str) -> None:
    entry = load(name)
    assert entry.name == name
    assert entry.licence
    assert entry.notes
    if name != "demo":
        assert entry.url == f"https://github.com/{entry.codebase}.git"
        assert entry.test_paths
        assert bool(entry.packages) == bool(entry.source_dirs)
        assert entry.packages or not entry.build  # a recipe names what it builds
        assert resolve(entry.url) == entry


def test_every_field_is_described() -> None:
    assert all(field.description for field in Repository.model_fields.values())


@pytest.mark.parametrize(
    "text",
    [
        "tornado",
        "Tornado ",
        "https://github.com/tornadoweb/tornado",
        "https://github.com/TornadoWeb/tornado.git/",
        "https://someone:token@github.com/tornadoweb/tornado?x=1#y",
        "git@github.com:tornadoweb/tornado.git",
        "ssh://git@github.com:22/tornadoweb/tornado.git",
    ],
)
def test_a_registered_repository_is_known_however_it_is_written(text: str) -> None:
    assert resolve(text) == load("tornado")


@pytest.mark.parametrize(
    ("text", "name", "codebase", "url"),
    [
        ("https://github.com/Foo/Bar.git", "foo__bar", "foo/bar", "https://github.com/Foo/Bar.git"),
        ("https://u:secret@git.example.org/a/b/c/", "git.example.org__a__b__c", "b/c", "https://git.example.org/a/b/c"),
        ("ssh://git:pw@example.org/x/y", "example.org__x__y", "x/y", "ssh://git@example.org/x/y"),
        ("git@example.org:x/y.git", "example.org__x__y", "x/y", "git@example.org:x/y.git"),
        ("file:///srv/git/thing.git", "srv__git__thing", "git/thing", "file:///srv/git/thing.git"),
    ],
)
def test_a_url_gives_a_safe_name_and_keeps_no_secret(text: str, name: str, codebase: str, url: str) -> None:
    entry = resolve(text)
    assert (entry.name, entry.codebase, entry.url) == (name, codebase, url)


@pytest.mark.parametrize("path", ["..%2f..%2fetc/passwd", "../../..", "a b/c\nd", "é/ü", "-rf/-x", "x" * 300])
def test_no_url_gives_a_name_that_leaves_its_folder(path: str) -> None:
    name = resolve(f"https://example.org/{path}").name
    assert len(name) <= 100
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    assert name[0].isalnum()


def test_a_folder_is_taken_by_its_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for parent in ("one", "two"):
        (tmp_path / parent / "My Project").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "one")
    first, second = resolve("./My Project"), resolve(str(tmp_path / "two" / "My Project"))
    assert first.url == str(tmp_path / "one" / "My Project")
    assert first.codebase == "My Project"
    assert first.name.startswith("my-project-")
    assert first.name != second.name
    assert resolve(str(tmp_path / "one" / "My Project" / "")) == first


@pytest.mark.parametrize("text", ["tornadoo", "", "ext::sh -c id", "foo://host/x", "https://", "-u", "no/such/folder"])
def test_anything_else_is_refused_with_names_that_are_near(text: str) -> None:
    with pytest.raises(UnknownRepository, match="tornado"):
        resolve(text)
    with pytest.raises(
        UnknownRepository, match="Near names: .*tornado" if text == "tornadoo" else "The registry has .*tornado"
    ):
        load(text)


@pytest.mark.parametrize(
    ("toml", "complaint"),
    [
        ('codebase = "a/b"\nbuilds = []', r"x\.toml: builds: Extra inputs"),
        ('codebase = "a/b"\npython = "3.6 or so"', r"x\.toml: python: .*version range"),
        ('codebase = "a/b"\nbuild = "make"', r"x\.toml: build: .*list"),
        ("", r"x\.toml: codebase: Field required"),
        ("codebase = a/b", r"x\.toml is no TOML"),
    ],
)
def test_a_wrong_entry_names_its_file_and_key(toml: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        parse("x", toml, "x.toml")


def test_the_recipe_hash_follows_the_recipe_only() -> None:
    entry = load("numpy")
    assert entry.model_copy(update={"notes": "other", "url": "elsewhere"}).recipe_hash() == entry.recipe_hash()
    assert entry.model_copy(update={"build": ["make"]}).recipe_hash() != entry.recipe_hash()
