"""What a script uses that would make its timings or its results worthless."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from perfquarry.data.records import Reason
from perfquarry.testgen.changed_lines import Function

# Names that stand for themselves and for all that lies below them.
_NETWORK = """
socket ssl socketserver http.client http.server urllib.request urllib3 requests httpx aiohttp ftplib smtplib poplib
imaplib nntplib telnetlib xmlrpc websocket websockets paramiko asyncio.open_connection asyncio.start_server
"""
_CLOCKS = """
time.time time.time_ns time.sleep asyncio.sleep
datetime.datetime.now datetime.datetime.utcnow datetime.datetime.today datetime.date.today
time.perf_counter time.perf_counter_ns time.monotonic time.monotonic_ns time.process_time timeit
"""
_ENTROPY = "os.urandom os.getrandom secrets random.SystemRandom uuid.uuid1 uuid.uuid4"
_PICKLES = """
pickle cPickle marshal shelve dill cloudpickle joblib.dump joblib.load pandas.read_pickle torch.load torch.save
"""
_NOW_BY_DEFAULT = {"time.localtime": 0, "time.gmtime": 0, "time.ctime": 0, "time.asctime": 0, "time.strftime": 1}
"""Functions that take the present time where they get no more than so many arguments."""
_GENERATORS = {
    "random": ("Random", "seed", "getstate", "setstate"),
    "numpy.random": (
        *("default_rng", "RandomState", "seed", "get_state", "set_state"),
        *("Generator", "BitGenerator", "SeedSequence", "PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"),
    ),
}
"""Modules with a generator of their own, and their names that draw nothing from it."""
_SEEDED = ("random.Random", "numpy.random.default_rng", "numpy.random.RandomState")
_SEEDS = ("random.seed", "numpy.random.seed")
_PUBLIC_UNDERSCORES = {"_asdict", "_fields", "_field_defaults", "_make", "_replace", "_"}
"""Of named tuples, and the name for what is not used."""
_TIMED = ("setup", "experiment")
_KEPT = ("store_result", "load_result", "check_equivalence")


@dataclass(frozen=True)
class Fault:
    """Why a script is not even run."""

    reason: Reason
    detail: str


class Uses:
    """The names of other modules that a script uses, by the functions that use them."""

    def __init__(self, tree: ast.Module, packages: Collection[str]) -> None:
        self._tree = tree
        self._packages = frozenset(packages)
        self._bound = dict(_imported(tree))
        self._top = {node.name: node for node in tree.body if isinstance(node, Function | ast.ClassDef)}

    def fault(self, *, private_allowed: bool) -> Fault | None:
        """The first thing found that a script must not use."""
        timed = self._reached(_TIMED)
        kept = self._reached(_KEPT, with_body=False)
        return (
            self._first([self._tree], _NETWORK, Reason.USES_NETWORK, imports=True)
            or self._time(timed)
            or self._randomness(timed)
            or self._pickle(kept)
            or (None if private_allowed else self._private())
        )

    def _time(self, timed: list[ast.AST]) -> Fault | None:
        for call, name in self._calls(timed):
            if len(call.args) + len(call.keywords) <= _NOW_BY_DEFAULT.get(name, -1):
                return Fault(Reason.USES_TIME, f"line {call.lineno}: {name} takes the present time")
        return self._first(timed, _CLOCKS, Reason.USES_TIME)

    def _randomness(self, timed: list[ast.AST]) -> Fault | None:
        seeded = set()
        for call, name in self._calls(timed):
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            fixed = bool(given) and not (isinstance(given[0], ast.Constant) and given[0].value is None)
            if name in _SEEDED + _SEEDS and not fixed:
                return Fault(Reason.USES_RANDOMNESS, f"line {call.lineno}: {name} without a seed")
            if name in _SEEDS:
                seeded.add(name.rpartition(".")[0])
        for node, name in self._names(timed):
            module, _, function = name.rpartition(".")
            if module in _GENERATORS and function not in _GENERATORS[module] and module not in seeded:
                return Fault(Reason.USES_RANDOMNESS, f"line {node.lineno}: {name} without {module}.seed(...)")
        return self._first(timed, _ENTROPY, Reason.USES_RANDOMNESS)

    def _pickle(self, kept: list[ast.AST]) -> Fault | None:
        for node in (part for root in kept for part in ast.walk(root)):
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle" and _constant(node.value):
                return Fault(Reason.USES_PICKLE, f"line {node.value.lineno}: allow_pickle")
            if isinstance(node, ast.Attribute) and node.attr == "to_pickle":
                return Fault(Reason.USES_PICKLE, f"line {node.lineno}: to_pickle")
        return self._first(kept, _PICKLES, Reason.USES_PICKLE)

    def _private(self) -> Fault | None:
        own = {node.attr for node in ast.walk(self._tree) if isinstance(node, ast.Attribute) and _is_stored(node)}
        own |= {node.name for node in ast.walk(self._tree) if isinstance(node, Function)}
        own |= {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}
        for node in ast.walk(self._tree):
            for name in self._private_names(node):
                if name.rpartition(".")[2] not in own or name.partition(".")[0] in self._packages:
                    line = getattr(node, "lineno", 0)
                    return Fault(Reason.USES_PRIVATE_API, f"line {line}: {name} is private")
        return None

    def _private_names(self, node: ast.AST) -> Iterator[str]:
        """Names with a leading underscore that a node uses: of the package, or of what may be an object of it."""
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in _modules(node):
                if name.partition(".")[0] in self._packages and any(map(_is_private, name.split("."))):
                    yield name
        elif isinstance(node, ast.Attribute) and _is_private(node.attr):
            dotted = self._dotted(node)
            if dotted is None or dotted.partition(".")[0] in self._packages:
                yield dotted or f"….{node.attr}"
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
            texts = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            yield from (f"….{text}" for text in texts if _is_private(text))

    def _first(
        self, nodes: Iterable[ast.AST], forbidden: str, reason: Reason, *, imports: bool = False
    ) -> Fault | None:
        """The first use of any of the names, or of what lies below them."""
        prefixes = tuple(f"{one}." for one in forbidden.split())
        for node, name in self._names(nodes, imports=imports):
            if name.partition(".")[0] not in self._packages and f"{name}.".startswith(prefixes):
                return Fault(reason, f"line {node.lineno}: {name}")
        return None

    def _names(self, nodes: Iterable[ast.AST], *, imports: bool = False) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
        """Dotted names of other modules in nodes, those of imports where asked for."""
        for node in (part for root in nodes for part in ast.walk(root)):
            if isinstance(node, ast.Attribute | ast.Name):
                name = self._dotted(node)
                if name:
                    yield node, name
            elif imports and isinstance(node, ast.Import | ast.ImportFrom):
                yield from ((node, name) for name in _modules(node))

    def _calls(self, nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.Call, str]]:
        for node in (part for root in nodes for part in ast.walk(root)):
            if isinstance(node, ast.Call):
                name = self._dotted(node.func)
                if name:
                    yield node, name

    def _dotted(self, node: ast.AST) -> str | None:
        """'numpy.random.rand' for np.random.rand; None for what does not begin with an imported name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._bound:
            return None
        return ".".join([self._bound[node.id], *reversed(parts)])

    def _reached(self, names: Iterable[str], *, with_body: bool = True) -> list[ast.AST]:
        """Functions and classes of the script that these use, they among them, and the module's body."""
        body = [
            node for node in self._tree.body if not isinstance(node, Function | ast.ClassDef) and not _is_main(node)
        ]
        reached: list[ast.AST] = [*body] if with_body else []
        waiting = [*names, *(name for node in reached for name in _loaded(node))]
        seen: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name in self._top and name not in seen:
                seen.add(name)
                reached.append(self._top[name])
                waiting += _loaded(self._top[name])
        return reached


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Names bound by imports anywhere in the script, each with what it stands for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    return [prefix + alias.name for alias in node.names]


def _loaded(node: ast.AST) -> list[str]:
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]


def _is_main(node: ast.stmt) -> bool:
    """Whether it is `if __name__ == "__main__": ...`."""
    return isinstance(node, ast.If) and "__name__" in _loaded(node.test)


def _is_private(name: str) -> bool:
    dunder = name.startswith("__") and name.endswith("__")
    return name.startswith("_") and not dunder and name not in _PUBLIC_UNDERSCORES


def _is_stored(node: ast.Attribute) -> bool:
    """Whether the script sets it on an object of its own."""
    return isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def _constant(node: ast.expr) -> bool:
    """Whether it is anything but a literal that counts as false."""
    return not isinstance(node, ast.Constant) or bool(node.value)
