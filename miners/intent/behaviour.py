"""What callers may notice of a change, read from both sides of its files. No code runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from perfquarry.data.records import Change, Effect
from perfquarry.miners.blobs import sides
from perfquarry.miners.intent.surface import Parameter, Surface, surface_of
from perfquarry.miners.vocabulary import content_at

_ASIDE = re.compile(r"(?:^|/)(?:bench\w*|examples?|maint|docs?|tools?|scripts?)/|(?:^|/)(?:setup|conftest)\.py$")
"""Python files that users of the package do not import."""
_TEXTS = ("__str__", "__repr__", "__unicode__")
_SPECIAL = (
    ("__eq__", "__ne__"),
    ("__hash__",),
    ("__bool__", "__nonzero__"),
    ("__contains__", "__len__", "__lt__", "__le__", "__gt__", "__ge__", "__reduce__", "__iter__", "__getitem__"),
)
"""Methods that syntax and built-ins call, by what they answer: users depend on them without naming them."""
STRONG, WEAK = 1.0, 0.5


def effects_of(clone: Path, change: Change) -> list[Effect]:
    """What differs for callers, by the syntax of both sides of its Python files, the strongest first.

    Raises:
        GitFailed: base or head cannot be read.
    """
    paths = [
        f.path for f in change.files if f.role == "source" and f.path.endswith(".py") and not _ASIDE.search(f.path)
    ]
    files = sides(clone, change, paths) if paths else []
    read = {file.path: (surface_of(file.base or b""), surface_of(file.head or b"")) for file in files}
    pairs = {path: (old, new) for path, (old, new) in read.items() if old is not None and new is not None}
    shown = _reexported(clone, change, pairs)
    found: list[Effect] = []
    for path, (old, new) in pairs.items():
        found += _of_module(path, old, new, shown.get(path), [pair[1] for pair in pairs.values()])
    found += _of_package([old for old, _ in pairs.values()], [new for _, new in pairs.values()])
    return sorted([*found, *_of_tests(clone, change)], key=lambda one: -one.weight)


def _reexported(clone: Path, change: Change, paths: Iterable[str]) -> dict[str, set[str]]:
    """Of modules that are private by their path, the names that a package above imports; others are not in it."""
    private = [path for path in paths if any(re.match(r"_(?!_init__\.py$)", part) for part in path.split("/"))]
    above = {path: [f"{parent}/__init__.py" for parent in Path(path).parents if str(parent) != "."] for path in private}
    contents = content_at(clone, change.base_sha, {one for some in above.values() for one in some}) if private else {}
    found: dict[str, set[str]] = {}
    for path in private:
        surfaces = [surface_of(contents[one]) for one in above[path] if one in contents]
        found[path] = set().union(*(one.imported for one in surfaces if one is not None))
    return found


def _of_module(
    path: str, old: Surface, new: Surface, shown: set[str] | None, heads: Iterable[Surface]
) -> Iterator[Effect]:
    public = {name for name in old.defined if _is_public(name, old, shown)}
    elsewhere = set().union(new.bound, *(one.bound for one in heads))
    for name in sorted(public - new.defined):
        owner, _, last = name.rpartition(".")
        # a name that is bound to something else, moved, or inherited is still there; of a class one row is enough
        if name in elsewhere if not owner else (owner not in new.bases or last in new.members(owner)):
            continue
        foreign = owner and set(new.lineage(owner)) - set(new.bases) - {"object"}
        yield Effect(kind="removed", text=f"{path}: {name} is gone", weight=WEAK if foreign else STRONG)
    for name in sorted(old.functions.keys() & new.functions.keys()):
        if name in public or (name.endswith(".__init__") and name.rpartition(".")[0] in public):
            for what in _broken(old.functions[name], new.functions[name]):
                yield Effect(kind="signature", text=f"{path}: {name}: {what}", weight=STRONG)
        if name in public and name in new.returning - old.returning:
            yield Effect(kind="returns", text=f"{path}: {name} returned nothing, and now a value", weight=WEAK)
    for owner in sorted(public & old.bases.keys() & new.bases.keys()):
        yield from _of_class(path, owner, old, new)
    for name in sorted(old.patterns.keys() & new.patterns.keys()):
        if old.patterns[name] != new.patterns[name]:
            yield Effect(kind="pattern", text=f"{path}: the regular expression {name} is another one", weight=WEAK)


def _is_public(name: str, surface: Surface, shown: set[str] | None) -> bool:
    first = name.partition(".")[0]
    offered = surface.exports if shown is None else shown
    return not any(one.startswith("_") for one in name.split(".")) and (offered is None or first in offered)


def _broken(old: tuple[Parameter, ...], new: tuple[Parameter, ...]) -> Iterator[str]:
    """What calls that fitted the old parameters may no longer do."""
    before, after = {one.name: one for one in old}, {one.name: one for one in new}
    for name in before.keys() - after.keys():
        if not name.startswith("_"):
            yield f"the parameter {name} is gone"
    for name in after.keys() - before.keys():
        if after[name].default is None:
            yield f"the parameter {name} must be given"
    kept = [one.name for one in old if one.positional and one.name in after]
    if kept != [one.name for one in new if one.positional and one.name in before][: len(kept)]:
        yield "parameters stand in another order"
    for name in before.keys() & after.keys():
        one, other = before[name], after[name]
        if one.default is not None and other.default is None:
            yield f"the parameter {name} must be given"
        elif one.constant and other.constant and one.default != other.default and other.default != "None":
            yield f"the default of {name} is {other.default}, no longer {one.default}"


def _of_class(path: str, owner: str, old: Surface, new: Surface) -> Iterator[Effect]:
    if bases := set(old.lineage(owner)) - set(new.lineage(owner)) - {"object"}:
        yield Effect(
            kind="bases", text=f"{path}: {owner} no longer inherits from {', '.join(sorted(bases))}", weight=STRONG
        )
    for group in (_TEXTS, *_SPECIAL):
        yield from _of_special({f"{owner}.{one}": one for one in group}, path, owner, old, new)
    stored, now = old.attributes.get(owner, set()), new.attributes.get(owner, set())
    for name in sorted(stored - now):
        if not name.startswith("_") and f"{owner}.{name}" not in new.defined:
            yield Effect(kind="attribute", text=f"{path}: {owner} objects have no attribute {name}", weight=WEAK)


def _of_special(names: Mapping[str, str], path: str, owner: str, old: Surface, new: Surface) -> Iterator[Effect]:
    """Of methods that answer the same: a class rarely changes one of them alone."""
    inherited, left = old.members(owner), new.members(owner)
    text = bool(set(names.values()) & set(_TEXTS))
    gone = [one for one in names if one in old.bodies and one not in new.bodies and names[one] not in left]
    fresh = [one for one in names if one in new.bodies and one not in old.bodies and names[one] not in inherited]
    other = [one for one in names if one in old.bodies and old.bodies[one] != new.bodies.get(one, old.bodies[one])]
    for some, what, weight in (
        (gone, "gone", STRONG),
        (other, "changed", STRONG if text else WEAK),
        (fresh, "new", 0.0 if text else WEAK),
    ):
        if some and weight:
            yield Effect(kind="special", text=f"{path}: {', '.join(some)} {what}", weight=weight)


def _of_package(old: list[Surface], new: list[Surface]) -> Iterator[Effect]:
    before, after = set().union(*(one.raises for one in old)), set().union(*(one.raises for one in new))
    for name in sorted(after - before):
        yield Effect(kind="raises", text=f"the changed files raise {name}, which they did not", weight=STRONG)
    for name in sorted(before - after):
        yield Effect(kind="raises", text=f"the changed files no longer raise {name}", weight=WEAK)
    more = sum(one.prints for one in new) - sum(one.prints for one in old)
    if more > 0:
        yield Effect(kind="output", text=f"{more} more calls of print", weight=STRONG)


def _of_tests(clone: Path, change: Change) -> Iterator[Effect]:
    """Tests that were taken away without others in their place, and edited files with expected results."""
    tests = [file for file in change.files if file.role == "test"]
    for file in tests:
        if not file.path.endswith(".py") and file.deleted and file.status in ("modified", "deleted"):
            yield Effect(kind="tests", text=f"{file.path}: expected results of tests are edited", weight=STRONG)
    paths = [file.path for file in tests if file.path.endswith(".py")]
    counts: Mapping[str, tuple[set[str], set[str]]] = {
        file.path: (_tests_in(file.base), _tests_in(file.head))
        for file in (sides(clone, change, paths) if paths else [])
    }
    gone = sorted(name for old, new in counts.values() for name in old - new)
    added = [name for old, new in counts.values() for name in new - old]
    if len(gone) > len(added):
        yield Effect(kind="tests", text=f"tests are removed: {', '.join(gone[:3])}", weight=STRONG)


def _tests_in(content: bytes | None) -> set[str]:
    surface = surface_of(content or b"")
    return {name for name in (surface.functions if surface else ()) if name.rpartition(".")[2].startswith("test")}
