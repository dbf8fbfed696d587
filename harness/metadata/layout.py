"""Where the packages of a tree lie: what its metadata says, else its names, else its folders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath

from packaging.utils import canonicalize_name

from perfquarry.harness.metadata.package import Metadata

DEPTH = 4
"""Folders below the top that are looked at."""
_ROOTS = (".", "src", "lib", "python")
MODULES = (".py", ".pyx")
"""Endings of modules."""
_NOT_PACKAGES = """
    asv_bench bench benchmark benchmarks bin bootstrap build build_tools ci conda conf conftest contrib demo demos
    dev dist distribute_setup do doc doc-src docs documentation dodo example examples ez_setup fabfile hubconf
    maint make manage news notebooks noxfile packaging pavement profiling release requirements runtests samples
    scripts setup site src tasks test testing tests testsuite tools toxfile tutorials unittests util utils
    versioneer website
"""
TOOLS = frozenset(_NOT_PACKAGES.split())
"""Names at the top of a tree, or of a folder of packages, that are tools unless the metadata says otherwise."""
_SUBPACKAGES = ("doc", "docs", "documentation")


@dataclass(frozen=True)
class Layout:
    """The packages of one tree."""

    roots: tuple[str, ...] = (".",)
    """Folders for sys.path; '.' is the tree."""
    packages: tuple[str, ...] = ()
    """Import names of packages and modules, dotted below namespaces."""
    guessed: bool = False
    """Whether only folders speak for them: any of them may be something else."""
    places: tuple[str, ...] = ()
    """Paths of the packages' folders and modules, and of packages within that have a name of documentation."""
    elsewhere: tuple[tuple[str, str], ...] = ()
    """Paths at which packages are to be found whose folder has another name, each with that folder."""

    def below(self, folder: str) -> Layout:
        """The same of a tree in which this one is a folder."""
        roots, places = ((_clean(f"{folder}/{one}") for one in of) for of in (self.roots, self.places))
        elsewhere = ((_clean(f"{folder}/{name}"), _clean(f"{folder}/{to}")) for name, to in self.elsewhere)
        return replace(self, roots=tuple(roots), places=tuple(places), elsewhere=tuple(elsewhere))


def layout_of(
    paths: Iterable[str], metadata: Metadata, packages: Sequence[str] = (), roots: Sequence[str] = ()
) -> Layout:
    """The layout of a tree with these files.

    Args:
        paths: relative to the tree; those of Python and Cython count.
        metadata: what the tree says of its package.
        packages: import names, where they are known otherwise; empty: found.
        roots: folders of packages, where they are known otherwise; those that are there count.
    """
    shelf = _Shelf(paths)
    known = [root for root in roots if shelf.has_folder(root)]
    folders = list(dict.fromkeys(map(_clean, known or [*_above(shelf, metadata), *_ROOTS])))
    beside: list[tuple[str, str]] = []
    elsewhere = {} if packages else _elsewhere(shelf, metadata)
    if elsewhere:
        found = [(".", name) for name in elsewhere]
        found += [one for one in _declared(shelf, folders, metadata) if one[1] not in elsewhere]
    elif packages:
        found = _by_names(shelf, folders, packages)
    else:
        found = _declared(shelf, folders, metadata) or _called_like(shelf, folders, metadata.name)
        beside = _without_tools(_by_names(shelf, folders, metadata.py_modules), metadata)
    is_whole = found or packages or (beside and not metadata.finds_packages)
    guessed = [] if is_whole else _of_folders(shelf, folders)
    found = list(dict.fromkeys([*(found or guessed), *beside]))
    names = tuple(dict.fromkeys([*packages, *(name for _, name in found)]))
    above = [root for root, _ in found] or known[:1] or ["."]
    places = (*elsewhere.values(), *shelf.places(found))
    return Layout(tuple(dict.fromkeys(known or above)), names, bool(guessed), places, tuple(elsewhere.items()))


def _elsewhere(shelf: _Shelf, metadata: Metadata) -> dict[str, str]:
    """The folders of packages that have another name in the tree."""
    renamed = {name: _clean(folder) for name, folder in metadata.renamed.items() if shelf.is_package(_clean(folder))}
    own = {name for name in renamed if name in metadata.packages or _is_own(name, metadata.name)}
    return {
        name: renamed[name] for name in renamed if name in own and not (shelf.has_folder(name) or shelf.is_module(name))
    }


def _above(shelf: _Shelf, metadata: Metadata) -> Iterator[str]:
    """The folders of packages that are declared; `find_packages('name')` may look for packages of the package."""
    for folder in map(_clean, metadata.package_folders):
        if not (shelf.is_package(folder) and _is_own(PurePosixPath(folder).name, metadata.name)):
            yield folder


class _Shelf:
    """Which packages and modules the files of a tree make."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.files = {path for path in paths if path.endswith(MODULES) and path.count("/") <= DEPTH}

    @cached_property
    def _folders(self) -> frozenset[str]:
        parents = (str(parent) for path in self.files for parent in PurePosixPath(path).parents)
        return frozenset(dict.fromkeys(parents))

    @cached_property
    def _inside(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for one in self._folders - {"."}:
            found.setdefault(_parent(one), []).append(PurePosixPath(one).name)
        return found

    def has_folder(self, folder: str) -> bool:
        """Whether there is Python below a folder."""
        return _clean(folder) in self._folders

    def inside(self, root: str) -> Iterator[str]:
        """Names of the folders of a folder."""
        return iter(self._inside.get(root, ()))

    def is_package(self, path: str) -> bool:
        """Whether a folder has an `__init__`."""
        return any(f"{path}/__init__{ending}" in self.files for ending in MODULES)

    def is_namespace(self, path: str) -> bool:
        """Whether a folder has modules, but no `__init__`."""
        return not self.is_package(path) and any(_parent(file) == path for file in self.files)

    def is_module(self, path: str) -> bool:
        """Whether a path without its ending is a module."""
        return any(path + ending in self.files for ending in MODULES)

    def modules(self, root: str) -> Iterator[str]:
        """Names of the modules of a folder."""
        return (PurePosixPath(file).stem for file in self.files if _parent(file) == root)

    def places(self, found: Iterable[tuple[str, str]]) -> Iterator[str]:
        """Paths of packages and modules, and those where they may have been before."""
        for root, name in found:
            path = _join(root, name)
            if self.is_package(path) or self.is_namespace(path):
                yield path
                within = (one for one in self._folders if one.startswith(f"{path}/") and self.is_package(one))
                yield from sorted(one for one in within if PurePosixPath(one).name in _SUBPACKAGES)
            else:
                yield from (path + ending for ending in MODULES if path + ending in self.files)
            elsewhere = (_join(other, name) for other in _ROOTS if other != root)
            yield from (one for one in elsewhere if not self.has_folder(one))


def _declared(shelf: _Shelf, folders: Sequence[str], metadata: Metadata) -> list[tuple[str, str]]:
    """What the settings of the build backend name, or the lists of setuptools."""
    found = []
    for path in metadata.modules:
        whole = PurePosixPath(path)
        root = next((folder for folder in folders if PurePosixPath(folder) in whole.parents[:-1]), "")
        root = root or (str(whole.parents[-2]) if len(whole.parts) > 1 and _is_bare(shelf, whole) else ".")
        name = str(whole.relative_to(root)).replace("/", ".")
        if shelf.is_package(path) or shelf.is_module(path) or shelf.is_namespace(path):
            found.append((root, name))
        else:
            found += [(root, one) for one in sorted(_below_namespace(shelf, root, name))]
    return _without_tools(found or _by_names(shelf, folders, metadata.packages), metadata)


def _without_tools(found: Sequence[tuple[str, str]], metadata: Metadata) -> list[tuple[str, str]]:
    """Lists that say nothing of names, such as those of find_packages, hold tests and tools, too."""
    own = [one for one in found if _is_own(one[1], metadata.name)]
    return [one for one in found if one in own or one[1].partition(".")[0] not in TOOLS]


def _is_bare(shelf: _Shelf, path: PurePosixPath) -> bool:
    """Whether the first folder of a path is no package, so that it holds some."""
    first = path.parts[0]
    return not shelf.is_package(first) and first not in (".", "") and not shelf.is_namespace(first)


def _is_own(name: str, distribution: str | None) -> bool:
    return bool(distribution) and canonicalize_name(name) == canonicalize_name(distribution or "")


def _by_names(shelf: _Shelf, folders: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    """Each name in the first folder that has it."""
    found = []
    for name in names:
        has = (root for root in folders if shelf.is_package(_join(root, name)) or shelf.is_module(_join(root, name)))
        loose = (root for root in folders if shelf.is_namespace(_join(root, name)))
        root = next(has, None) or next(loose, None)
        if root is not None:
            found.append((root, name))
    return found


def _called_like(shelf: _Shelf, folders: Sequence[str], distribution: str | None) -> list[tuple[str, str]]:
    """The package or module that is called like the distribution, as such names are usually made of each other."""
    if not distribution:
        return []
    wanted = canonicalize_name(distribution)
    bare = wanted.removeprefix("python-").removeprefix("py-").removesuffix("-python").removesuffix("-py")
    deeper = sorted(one for one in shelf.inside(".") if one not in TOOLS and not one.startswith("."))
    for name in dict.fromkeys([wanted, bare, wanted.removeprefix("py")]):
        # at the top, a folder with the name of a tool may be that tool
        for root in sorted([*folders, *deeper], key=lambda root: root == "." and name in TOOLS):
            if (module := _in_folder(shelf, root, name)) is not None:
                return [(root, module)]
    for separator in (".", "-"):
        dotted = distribution.lower().replace(separator, ".").replace("-", "_")
        if "." in dotted and (found := _by_names(shelf, folders, [dotted])):
            return found
    return []


def _in_folder(shelf: _Shelf, root: str, name: str) -> str | None:
    """The package of a canonical name in a folder, else the module, else the folder without an `__init__`."""
    folders = sorted(one for one in shelf.inside(root) if canonicalize_name(one) == name and one.isidentifier())
    modules = sorted(one for one in shelf.modules(root) if canonicalize_name(one) == name and one.isidentifier())
    packages = [one for one in folders if shelf.is_package(_join(root, one))]
    loose = [one for one in folders if shelf.is_namespace(_join(root, one)) and root != "."]
    return next(iter([*packages, *modules, *loose]), None)


def _of_folders(shelf: _Shelf, folders: Sequence[str]) -> list[tuple[str, str]]:
    """All packages of the first folder that has any; else its modules; else packages below namespaces."""
    for find in (_packages_in, _modules_in, _below_namespaces):
        for root in folders:
            if found := sorted(find(shelf, root)):
                return [(root, name) for name in found]
    return []


def _packages_in(shelf: _Shelf, root: str) -> Iterator[str]:
    return (name for name in shelf.inside(root) if shelf.is_package(_join(root, name)) and _may_be(name))


def _modules_in(shelf: _Shelf, root: str) -> Iterator[str]:
    return (name for name in shelf.modules(root) if _may_be(name) and not name.startswith("_"))


def _below_namespaces(shelf: _Shelf, root: str) -> Iterator[str]:
    for name in filter(_may_be, shelf.inside(root)):
        yield from _below_namespace(shelf, root, name)


def _below_namespace(shelf: _Shelf, root: str, name: str) -> Iterator[str]:
    """The outermost folders with modules below one without: of `opentelemetry`, `opentelemetry.sdk.trace`."""
    for one in filter(str.isidentifier, shelf.inside(_join(root, name))):
        inner = f"{name}.{one}"
        if shelf.is_package(_join(root, inner)) or shelf.is_namespace(_join(root, inner)):
            yield inner
        else:
            yield from _below_namespace(shelf, root, inner)


def _may_be(name: str) -> bool:
    """Whether a name may be that of a package and is not a tool's or a test's."""
    return name.isidentifier() and name not in TOOLS and not name.startswith("test_") and not name.endswith("_test")


def _join(root: str, name: str) -> str:
    path = name.replace(".", "/")
    return path if root == "." else f"{root}/{path}"


def _clean(folder: str) -> str:
    return str(PurePosixPath(folder.strip() or ".")).removeprefix("/").rstrip("/") or "."


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "."
