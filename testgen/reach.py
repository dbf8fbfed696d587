"""Which test files can reach the changed modules, by the static graph of imports.

Those whose text names what changed come first, the rarer the name the earlier; what no import
shows (plugins, names made at run time) is found by such names alone, last by that of the changed
package: `tests/test_s3/test_s3.py` for `moto/s3/responses.py`.

A step is one import. `from package import name` leads to the package's `__init__` and, through
its re-exports, straight to the file that defines `name`, so that a test which names what
changed is nearer than one that merely imports the package.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import ClassVar

from perfquarry.harness.metadata.installed_files import ELSEWHERE
from perfquarry.harness.metadata.package import read_text
from perfquarry.testgen.files import files_below
from perfquarry.testgen.imports import Import, defined_in, imports_of, is_parsable
from perfquarry.testgen.pytest_config import Naming, may_hold_tests, python_files

MODULE_ENDINGS = (".py", ".pyx", ".c", ".cpp", ".cc", ".cxx", ".so")
"""In the order in which they stand for a module that has several files."""
_SLOW_WORDS = ("stress", "slow", "fuzz")
_MADE_TO_BE_TIMED = "bench"
_BUILT = ("build", "dist")
FEW = 6
"""Test files that are tried where none imports what changed, but the package that it belongs to."""
FAR = 1000
"""Imports to a test file that no import leads to."""
_SHORTEST = 3
"""Characters; shorter names are in every file."""


@dataclass(frozen=True)
class TestFile:
    """A test file and the number of imports from it to the nearest changed file."""

    __test__: ClassVar[bool] = False  # its name would make pytest collect it
    path: str
    distance: int


def reachable_tests(
    tree: Path,
    source_roots: Sequence[str],
    changed: Iterable[str],
    limit: int | None = None,
    names: Iterable[str] = (),
    test_paths: Sequence[str] = (),
    callers: Iterable[str] = (),
) -> list[TestFile]:
    """Test files that may reach a changed file: named after it, then naming what changed, then the nearest.

    Args:
        tree: root of the checked-out tree.
        source_roots: folders of the tree on sys.path, relative to it ('' or '.' for the tree).
        changed: paths relative to the tree; those not in it are passed over.
        limit: most files returned; None for all.
        names: changed functions and classes, 'Class.method'.
        test_paths: folders and globs of files that are tests whatever their names.
        callers: functions that lead to the changed ones; a test that names them comes half as early.

    Files that this Python cannot parse, and files without a test, are left out.
    """
    files = {path: tree / path for path in module_files(tree)}
    goals = [path for path in changed if path in files or not path.endswith(".py")]
    graph = ImportGraph(files, source_roots, _elsewhere(tree))
    distances = _distances(graph, goals)
    patterns = python_files(tree)
    tests = [TestFile(path, distances.get(path, FAR)) for path in files if may_hold_tests(path, patterns, test_paths)]
    words = _words(names, goals)
    texts = {test.path: files[test.path].read_bytes() for test in tests} if words or callers else {}
    said, led = _said(texts, words), _said(texts, {name for name in callers if len(name) >= _SHORTEST} - words)
    packages = _inner_packages(goals, source_roots)
    likely = [
        test
        for test in tests
        if test.distance < FAR or said.get(test.path) or not packages.isdisjoint(_subjects(test.path))
    ]
    if not likely:  # a plugin, say, which the package finds by its entry point or its name
        around = _distances(graph, _beside(goals, files))
        likely = [test for test in tests if test.path in around]
        limit = min(limit or FEW, FEW)
    found: list[TestFile] = []
    naming = Naming.of(tree)
    speaks = {path: said.get(path, 0.0) + led.get(path, 0.0) / 2 for path in texts}
    for test in sorted(likely, key=lambda test: _rank(test, goals, speaks.get(test.path, 0.0))):
        if limit is not None and len(found) >= limit:
            break
        content = files[test.path].read_bytes()
        if naming.are_in(content) and is_parsable(content):
            found.append(test)
    return found


def unparsable_tests(tree: Path, test_paths: Sequence[str] = ()) -> list[str]:
    """Test files that this Python cannot parse, as those of Python 2."""
    patterns = python_files(tree)
    paths = [path for path in module_files(tree) if may_hold_tests(path, patterns, test_paths)]
    contents, naming = ((path, (tree / path).read_bytes()) for path in paths), Naming.of(tree)
    return [path for path, content in contents if naming.are_in(content) and not is_parsable(content)]


def module_files(tree: Path) -> Iterator[str]:
    """Relative paths of files that can be modules (Python, Cython, C), without hidden, virtual or built folders."""
    built = {name for name in _BUILT if not (tree / name / "__init__.py").exists()}
    return (path for path in files_below(tree, built) if path.endswith(MODULE_ENDINGS))


def _elsewhere(tree: Path) -> dict[str, str]:
    """Packages at the top of a tree whose code lies in a folder of another name, with that folder."""
    found = {init.parent.name: read_text(init).partition("\n")[0] for init in tree.glob("*/__init__.py")}
    return {name: line.removeprefix(ELSEWHERE) for name, line in found.items() if line.startswith(ELSEWHERE)}


class ImportGraph:
    """The files of a tree and which of them each imports."""

    def __init__(
        self, files: dict[str, Path], source_roots: Sequence[str], elsewhere: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """`elsewhere`: packages whose code lies in folders of another name, with these."""
        self._files = files
        self._modules: dict[str, str] = {}
        for ending in reversed(MODULE_ENDINGS):
            self._modules.update((_module(path), path) for path in files if path.endswith(ending))
        for package, to in elsewhere.items():
            below = {name: path for name, path in self._modules.items() if name.startswith(f"{to}/")}
            self._modules.update((package + name.removeprefix(to), path) for name, path in below.items())
        self._folders = {folder for path in (*files, *self._modules) for folder in _folders_above(path)}
        self._roots = list(dict.fromkeys([*(_join(root.strip("/")) for root in source_roots), ""]))
        self._bases: dict[str, list[str]] = {}
        self._imports: dict[str, tuple[Import, ...]] = {}
        self._bound: dict[str, dict[str, tuple[Import, str]]] = {}
        self._origins: dict[tuple[str, str], str | None] = {}

    def files(self) -> Iterable[str]:
        """All paths of the graph."""
        return self._files

    def compiled(self) -> set[str]:
        """Files that stand for the modules that the build compiled within the tree."""
        return {self._modules[_module(path)] for path in self._files if path.endswith(".so")}

    def imported_by(self, path: str) -> set[str]:
        """Files executed when `path` is imported or collected, one step away."""
        if not path.endswith((".py", ".pyx")):
            return set()
        reached = {file for found in self._imports_of(path) for file in self._targets(found, path)}
        conftests = {_join(folder, "conftest.py") for folder in _folders_above(path)}
        return (reached | (conftests & self._files.keys())) - {path}

    def _imports_of(self, path: str) -> tuple[Import, ...]:
        if path not in self._imports:
            self._imports[path] = imports_of(self._files[path].read_bytes())
        return self._imports[path]

    def _targets(self, found: Import, importer: str) -> set[str]:
        for base in self._bases_of(found, importer):
            reached = set(self._executed(base, found.module))
            if found.names:
                module = _join(base, found.module.replace(".", "/"))
                reached.update(path for name, _ in found.names if (path := self._origin(module, name)))
            if reached:
                return reached
        return set()

    def _bases_of(self, found: Import, importer: str) -> list[str]:
        """Folders in which the imported module may lie."""
        folder = importer.rpartition("/")[0]
        if found.level:
            parts = folder.split("/") if folder else []
            return ["/".join(parts[: max(0, len(parts) - found.level + 1)])]
        if folder not in self._bases:
            top = folder
            while f"{top}/__init__" in self._modules:
                top = top.rpartition("/")[0]
            self._bases[folder] = [*self._roots, top]  # pytest puts the folder above the package on sys.path
        return self._bases[folder]

    def _executed(self, base: str, module: str) -> list[str]:
        """Files executed by importing a dotted name from a folder; parts after a module are attributes."""
        if not module:
            return self._present(base)
        executed: list[str] = []
        path = base
        for part in module.split("."):
            path = f"{path}/{part}" if path else part
            found = self._present(path)
            executed += found
            if path not in self._folders:  # a module, or nothing at all
                break
        return executed

    def _present(self, module: str) -> list[str]:
        """The file of a module given as a path without its ending: the package's `__init__` first."""
        path = self._modules.get(_join(module, "__init__")) or self._modules.get(module)
        return [path] if path else []

    def _origin(self, module: str, name: str) -> str | None:
        """The file behind a name imported from a module: a submodule, or where a re-exported name is defined."""
        key = (module, name)
        if key not in self._origins:
            holder = self._present(module)
            self._origins[key] = holder[0] if holder else None  # what a circle of imports ends with
            submodule = self._present(_join(module, name))
            found = submodule[0] if submodule else self._follow(holder[0], name) if holder else None
            self._origins[key] = found
        return self._origins[key]

    def _follow(self, path: str, name: str) -> str | None:
        """The file that defines a name which `path` binds by an import; `path` where it does so itself."""
        if path not in self._bound:
            pairs = [(found, pair) for found in self._imports_of(path) for pair in found.names or ()]
            self._bound[path] = {bound: (found, original) for found, (original, bound) in pairs if bound != "*"}
        explicit = self._bound[path].get(name)
        if explicit is not None:
            return next(self._behind(explicit[0], path, explicit[1]), path)
        stars = [found for found in self._imports_of(path) if found.names == (("*", "*"),)]
        if not stars or name in defined_in(self._files[path].read_bytes()):
            return path
        return next((file for found in stars for file in self._behind(found, path, name, defining=True)), path)

    def _behind(self, found: Import, importer: str, name: str, defining: bool = False) -> Iterator[str]:
        """Files behind `from found import name`; `defining`: only those that do define it (for stars)."""
        for base in self._bases_of(found, importer):
            path = self._origin(_join(base, found.module.replace(".", "/")), name)
            if path and not (defining and name not in defined_in(self._files[path].read_bytes())):
                yield path


def _module(path: str) -> str:
    """A file's path without its ending: 'a/b.cpython-311-x86_64-linux-gnu.so' gives 'a/b'."""
    folder, _, name = path.rpartition("/")
    return _join(folder, name.partition(".")[0] if name.endswith(".so") else name.rpartition(".")[0])


def _join(*parts: str) -> str:
    return "/".join(part for part in parts if part and part != ".")


def _folders_above(path: str) -> list[str]:
    """'a/b/c.py' gives 'a/b', 'a' and ''."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:end]) for end in range(len(parts), -1, -1)]


def _distances(graph: ImportGraph, goals: Sequence[str]) -> dict[str, int]:
    importers: dict[str, set[str]] = {}
    for path in graph.files():
        for target in graph.imported_by(path):
            importers.setdefault(target, set()).add(path)
    distances = dict.fromkeys((goal for goal in goals if goal in graph.files()), 0)
    for goal in goals:
        if not goal.endswith(".py") and not importers.get(goal):
            around = dict.fromkeys(graph.compiled(), 1) or _neighbours(goal, graph.files())
            distances.update((path, steps) for path, steps in around.items() if path not in distances)
    queue = deque(sorted(distances, key=lambda path: distances[path]))
    while queue:
        path = queue.popleft()
        for importer in importers.get(path, ()):
            if importer not in distances:
                distances[importer] = distances[path] + 1
                queue.append(importer)
    return distances


def _beside(goals: Iterable[str], files: Collection[str]) -> list[str]:
    """All modules of the packages that hold the changed files."""
    tops: set[str] = set()
    for goal in goals:
        inside = [folder for folder in _folders_above(goal) if folder and f"{folder}/__init__.py" in files]
        tops.update(folder + "/" for folder in inside[-1:])
    return [path for path in files if path.startswith(tuple(tops))]


def _neighbours(path: str, files: Iterable[str]) -> dict[str, int]:
    """Python files of the folders above a native file, but for the root, which are likely to wrap it: the nearest 1."""
    holders = {file: file.rpartition("/")[0] for file in files if file.endswith(".py")}
    folders = [folder for folder in _folders_above(path) if folder and folder in holders.values()]
    return {file: folders.index(folder) + 1 for file, folder in holders.items() if folder in folders}


def _words(names: Iterable[str], goals: Sequence[str]) -> set[str]:
    """Names by which a test's text would speak of the change; empty where none of them says anything."""
    parts = {part for name in names for part in name.split(".") if not part.startswith("__")}
    parts |= {_bare(goal) for goal in goals} if parts else set()
    return {part for part in parts if len(part) >= _SHORTEST}


def _said(texts: Mapping[str, bytes], words: set[str]) -> dict[str, float]:
    """How much each text speaks of the words: one that few texts have counts most."""
    if not words:
        return {}
    pattern = re.compile(rb"\b(?:%s)\b" % b"|".join(re.escape(word.encode()) for word in sorted(words)))
    found = {path: frozenset(pattern.findall(text)) for path, text in texts.items()}
    common = Counter(word for some in found.values() for word in some)
    return {path: sum(1 / common[word] for word in some) for path, some in found.items()}


def _rank(test: TestFile, goals: Sequence[str], said: float) -> tuple[bool, float, int, bool, bool, int, float, str]:
    """Sort key: named after a changed file, speaking of the change, nearest, a benchmark, not slow, near, like it."""
    name = _bare(test.path)
    others = [_bare(goal) for goal in goals]
    apart = min((_apart(test.path, goal) for goal in goals), default=0)
    likeness = max((_likeness(name, other) for other in others), default=0.0)
    slow = any(word in name for word in _SLOW_WORDS)
    named = name in others or not {*others}.isdisjoint(part.strip("_") for part in test.path.split("/")[:-1])
    timed = _MADE_TO_BE_TIMED in name
    return (not named, -said, test.distance, not timed, slow, apart, -likeness, test.path)


def _bare(path: str) -> str:
    """'tests/test_heap.py', 'heap_test.py', '_heap.py' and 'heap/__init__.py' all give 'heap'."""
    pure = PurePosixPath(path)
    return _subject(pure.parent.name if pure.stem == "__init__" else pure.stem)


def _inner_packages(goals: Sequence[str], source_roots: Sequence[str]) -> set[str]:
    """Names of the folders of changed files, but for those at the top: these would name all tests."""
    tops = {_join(root.strip("/")) for root in (*source_roots, "")}
    parents = {goal.rpartition("/")[0] for goal in goals}
    return {parent.rpartition("/")[2] for parent in parents if parent.rpartition("/")[0] not in tops} - {""}


def _subject(name: str) -> str:
    return name.removeprefix("test_").removesuffix("_test").removesuffix("_tests").strip("_")


def _subjects(path: str) -> set[str]:
    """What a test file and its folders are named after; of one inside a package, the folder `tests` and below."""
    folders = path.split("/")[:-1]
    first = next((at for at, folder in enumerate(folders) if folder in ("test", "tests", "testing")), 0)
    return {_bare(path), *map(_subject, folders[first:])}


def _likeness(one: str, other: str) -> float:
    """Share of the longer name that is the shorter one; 0 where neither holds the other."""
    short, long = sorted((one, other), key=len)
    return len(short) / len(long) if short and short in long else 0.0


def _apart(one: str, other: str) -> int:
    """Folders between two files, through their nearest common one."""
    first, second = one.split("/")[:-1], other.split("/")[:-1]
    common = next(
        (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    return len(first) + len(second) - 2 * common
