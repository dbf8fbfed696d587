"""Virtual environments as of a date, each made once and shared."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

from perfquarry.data.errors import EnvironmentFailed
from perfquarry.data.home import Home
from perfquarry.data.records import Reason, Record, content_id
from perfquarry.harness.contracts import Sandbox
from perfquarry.harness.environments.installer import Installed, cache_folder, compile_folder, run_uv
from perfquarry.harness.environments.interpreters import Interpreter
from perfquarry.harness.environments.stand_in import stand_in, standing_in
from perfquarry.harness.leases.shared_folders import disk_bytes, make_shared
from perfquarry.harness.metadata.legacy_bounds import readable
from perfquarry.harness.rejections import Rejection, tail

LATER = (timedelta(0), timedelta(days=183), timedelta(days=730))
"""How much later than asked each try looks at the index, before the one that looks at it as it is today."""

TOOLS = ("coverage", "yappi")

MOST_UNREADABLE = 8
"""Distributions of one environment whose metadata is read in uv's place."""
_RULES = 4
"""Raised when equal requirements are to give other environments than before."""

# Building these takes minutes and system libraries: a later wheel is the better guess.
_WHEELS_ONLY = frozenset(
    {"cffi", "cryptography", "grpcio", "h5py", "lxml", "matplotlib", "numba", "numpy", "pandas"}
    | {"pillow", "pyarrow", "pyqt5", "scikit-learn", "scipy", "tensorflow", "torch"}
)
# all its files were deleted and uploaded again in July 2022; pytest 3.6 to 5.2 need it
_UPLOADED_AGAIN = frozenset({"atomicwrites"})
# uv builds by `setuptools.build_meta`, which came with setuptools 40.8
_BUILD_TOOLS_FROM = datetime(2019, 6, 1, tzinfo=UTC)
# The newest pytest 3: the oldest the probe works with (`--rootdir`), and the last that runs
# tests as they were written before 2018. It and what it needs are never taken older.
_PYTEST_FROM = datetime(2018, 11, 12, tzinfo=UTC)
_PYTEST_NEEDS = ("attrs", "more-itertools", "pluggy", "py", "six")
_OLDEST_PYTEST = Version("3.6")
# bounds of these hold where source distributions are built, too
_BUILDERS = re.compile(r"(?:setuptools|cython|numpy|wheel)\s*[<~=]")
_NO_SUCH_NAME = re.compile(r"was not found in the package registry|was not found in the provided package locations")
_UNREADABLE = re.compile(r"Metadata for `([^`\s]+)` \(v([^)\s]+)\) could not be parsed")
_UNDATED = re.compile(r"`([^`\s]+)` is missing an upload date")


class Environment(Record):
    """A virtual environment that is there and complete."""

    environment_id: str
    python: Path
    version: str
    """Of the interpreter, 'X.Y.Z'."""
    requirements: list[str]
    """What is installed, 'name==version', sorted."""
    commands: list[str]
    """Those that made it, without this machine's paths."""
    seconds: float
    """Wall time of making it, when it was made."""
    bytes: int
    log: str

    def modules(self) -> dict[str, str]:
        """By top-level module, the distribution that has it: 'name==version'."""
        places = map(str, (self.python.parent.parent / "lib").glob("python*/site-packages"))
        return {
            file.parts[0].partition(".")[0]: f"{canonicalize_name(one.name)}=={one.version}"
            for one in metadata.distributions(path=list(places))
            for file in one.files or ()
            if file.suffix in (".py", ".so")
        }


class _Tools(Record):
    path: Path


@dataclass
class _Attempts:
    """Log and commands of the tries at one environment, and how much time is left for them."""

    deadline: float
    log: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    undated: set[str] = field(default_factory=lambda: set(_UPLOADED_AGAIN))
    metadata: dict[tuple[str, str], list[str] | None] = field(default_factory=dict)
    """By name and version: what distributions need whose metadata uv refuses; None where it could not be read."""
    timed_out: bool = False

    def left(self) -> float:
        """Seconds."""
        return max(self.deadline - time.monotonic(), 1.0)

    def run(self, arguments: Sequence[str]) -> Installed:
        """One call of uv within what is left of the time, with the metadata that is known."""
        done = run_uv(arguments, timeout=self.left(), settings="\n".join(_static_metadata(self.metadata)))
        said = [line for line in done.output.splitlines() if not _UNDATED.search(line)]
        self.log.append("\n".join([f"$ {done.command}", *said]))
        self.timed_out = done.timed_out
        return done


class Environments:
    """The environments of a home; source distributions are built in the sandbox."""

    def __init__(self, home: Home, sandbox: Sandbox) -> None:
        self._home = home
        self._sandbox = sandbox
        self._rejected: dict[str, Rejection] = {}

    def ensure(
        self, python: Interpreter, requirements: Sequence[str], as_of: datetime, *, timeout: float
    ) -> Environment | Rejection:
        """The environment of an interpreter with requirements as the index was at a date.

        Args:
            requirements: PEP 508, in any order.
            as_of: aware; `cutoff` rounds it so that neighbours share one environment.
            timeout: wall seconds for all tries together.

        Returns:
            The environment, complete and with its bytecode compiled; or a rejection
            (RESOLUTION_FAILED, BUILD_TIMEOUT) with uv's words. Where the interpreter cannot
            have what the index offered at the date, later dates are tried (`LATER`), wheels
            before source distributions; the log says which one did it. Dates are those an
            index gives: a host's own folders of distributions (find-links) have none.

        Raises:
            EnvironmentFailed: network, index or disk failed, three times.
        """
        wanted = sorted(set(requirements))
        date = cutoff(as_of, python)
        environment_id = content_id("environment", _RULES, str(python.version), wanted, date.isoformat())
        bounds = [line for line in wanted if _BUILDERS.match(line)]
        return self._once(_Wanted(environment_id, python, wanted, date, timeout, bounds))

    def restore(
        self,
        environment_id: str,
        python: Interpreter,
        installed: Sequence[str],
        *,
        timeout: float,
        commands: Sequence[str] = (),
    ) -> Environment | Rejection:
        """The environment of that id, made again from what was installed in it ('name==version') when it is gone.

        Args:
            environment_id: its id.
            python: its interpreter.
            installed: what was in it.
            timeout: wall seconds for all tries together.
            commands: those that made it: source distributions are built with what the index had at their date.

        Raises:
            EnvironmentFailed: as `ensure`.
        """
        date, bounds = _limits_of(commands)
        return self._once(_Wanted(environment_id, python, installed, date, timeout, bounds))

    def forget_rejections(self) -> None:
        """What could not be made is tried again when it is next asked for: the machine has other packages now."""
        self._rejected.clear()

    def _once(self, wanted: _Wanted) -> Environment | Rejection:
        environment_id = wanted.environment_id
        if environment_id in self._rejected:
            return self._rejected[environment_id]
        made, _ = make_shared(
            self._home.environments / environment_id,
            self._home.locks / f"environment-{environment_id}.lock",
            Environment,
            lambda place: _make(self._sandbox, place, wanted),
            lambda environment: environment.python.exists() and not _has_old_pytest(environment.requirements),
        )
        if isinstance(made, Rejection):
            self._rejected[environment_id] = made
        return made

    def tool_overlay(self, python: Interpreter) -> Path:
        """A folder for PYTHONPATH with the newest coverage and yappi that the interpreter can have.

        Raises:
            EnvironmentFailed: they cannot be installed.
        """
        name = content_id("tools", str(python.version), TOOLS)
        tools, _ = make_shared(
            self._home.cache / "tools" / name,
            self._home.locks / f"tools-{name}.lock",
            _Tools,
            lambda place: _make_tools(self._sandbox, place, python),
            lambda made: made.path.is_dir(),
        )
        if isinstance(tools, Rejection):
            raise EnvironmentFailed(
                f"could not install {' and '.join(TOOLS)} for Python {python.version}:\n{tools.log}"
            )
        return tools.path


def cutoff(as_of: datetime, python: Interpreter) -> datetime:
    """The date after which uploads are left out: the end of the month of `as_of`.

    So changes of one month share an environment, and all that a commit could have needed is
    older than the cutoff, which is at most 31 days after the commit. What an index offered before an
    interpreter had matured rarely works on it (pytest of 2014 rewrites assertions in ways
    Python 3.6 refuses): for such dates it is the end of the month in which it had.
    """
    moment = max(as_of.astimezone(UTC), python.matured or as_of.astimezone(UTC))
    year, month = divmod(moment.year * 12 + moment.month, 12)
    return datetime(year, month + 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class _Wanted:
    """What an environment is to be like."""

    environment_id: str
    python: Interpreter
    requirements: Sequence[str]
    date: datetime | None
    """What was uploaded later is left out; None: as the index is today."""
    timeout: float
    """Wall seconds for all tries together."""
    bounds: Sequence[str]
    """Limits on what builds source distributions."""


def _make(sandbox: Sandbox, place: Path, wanted: _Wanted) -> Environment | Rejection:
    start, python = time.monotonic(), wanted.python
    tries = _Attempts(deadline=start + wanted.timeout)
    made = tries.run(["venv", "--no-project", "--python", str(python.path), str(place)])
    executable = place / "bin" / "python"
    if not made.ok:
        raise EnvironmentFailed(f"could not make an environment with {python.path}:\n{made.output}")
    into = ["--python", str(executable)]
    if wanted.bounds:
        (place / "bounds.txt").write_text("\n".join(wanted.bounds), encoding="utf-8")
        into += ["--build-constraint", str(place / "bounds.txt")]
    with _building(sandbox, python.path, place, tries) as program, standing_in(place, program):
        installed = not wanted.requirements or _install(tries, place, into, wanted.requirements, wanted.date)
        if installed and _has_old_pytest(_installed(place)):
            installed = _install_newer_pytest(tries, into, place, wanted)
    if not installed:
        reason = Reason.BUILD_TIMEOUT if tries.timed_out else Reason.RESOLUTION_FAILED
        return Rejection(reason, tail("\n".join(tries.log)))
    compile_folder(python.path, place / "lib", timeout=tries.left())
    return Environment(
        environment_id=wanted.environment_id,
        python=executable,
        version=str(python.version),
        requirements=_installed(place),
        commands=[f"uv venv --python {python.version}", *tries.commands],
        seconds=time.monotonic() - start,
        bytes=disk_bytes(place),
        log=tail("\n".join(tries.log)),
    )


def _limits_of(commands: Sequence[str]) -> tuple[datetime | None, list[str]]:
    """The date that limited the installation by these commands, and the bounds on what built distributions.

    Rows of earlier versions have requirements without quotes: of one with a marker, nothing is known there.
    """
    last = next((command for command in reversed(commands) if command.startswith("uv pip install ")), "")
    date = re.search(r" --exclude-newer (\S+)", last)
    words = shlex.split(last.partition(" -- ")[2])
    bounds = [word for word in words if _BUILDERS.match(word) and not word.endswith(";")]
    return (datetime.fromisoformat(date.group(1)) if date else None), bounds


def _install(tries: _Attempts, place: Path, into: Sequence[str], wanted: Sequence[str], date: datetime | None) -> bool:
    """Tries date after date, wheels before builds, until one installs all; False when none does.

    What the index has no upload times of is taken whatever its age where a date gives nothing without.
    """
    for moment in _moments(date):
        undated: set[str] | None = None
        while undated is None or undated:
            tries.undated |= undated or set()
            undated = set()
            for builds in (False, True):
                options = [*_date_options(moment, builds, tries.undated), *_binary_options(builds)]
                done = _try(tries, place, ["pip", "install", *into, *options, "--", *wanted])
                if done.ok:
                    tries.commands.append(shlex.join(["uv", "pip", "install", *options, "--", *wanted]))
                    return True
                if done.timed_out or _NO_SUCH_NAME.search(done.output):
                    return False
                undated |= _undated(done.output) - tries.undated if moment else set()
                tries.log.append("(not possible so: trying with source distributions, or the next date)")
            if undated:
                tries.log.append(f"(the index has no upload times of {', '.join(sorted(undated))}: whatever their age)")
    return False


def _try(tries: _Attempts, place: Path, arguments: Sequence[str]) -> Installed:
    """One installation, again while uv cannot read a distribution's metadata that can be read after repair."""
    while True:
        done = tries.run(arguments)
        unreadable = set(_UNREADABLE.findall(done.output)) - tries.metadata.keys()
        if done.ok or not unreadable or len(tries.metadata) >= MOST_UNREADABLE:
            return done
        for name, version in sorted(unreadable):
            tries.metadata[name, version] = _needs(tries, place, name, version)
            tries.log.append(f"(what {name} {version} needs, read without what is no version)")


def _needs(tries: _Attempts, place: Path, name: str, version: str) -> list[str] | None:
    """Requirements of a distribution whose metadata uv refuses, from its wheel; None where there is none."""
    target = place / "unreadable" / f"{name}-{version}"
    options = ["--python", str(place / "bin" / "python"), "--target", str(target), "--only-binary", ":all:"]
    if not tries.run(["pip", "install", *options, "--no-deps", "--", f"{name}=={version}"]).ok:
        return None
    found = [one.requires or [] for one in metadata.distributions(path=[str(target)])]
    shutil.rmtree(target.parent, ignore_errors=True)
    return [line for needs in found for one in needs if (line := readable(one))]


def _static_metadata(known: Mapping[tuple[str, str], list[str] | None]) -> Iterator[str]:
    """Lines of uv's settings that say what distributions need whose own metadata is not to be read."""
    for (name, version), needs in known.items():
        if needs is not None:
            yield "[[dependency-metadata]]"
            for key, value in (("name", name), ("version", version), ("requires-dist", needs)):
                yield f"{key} = {json.dumps(value)}"


def _has_old_pytest(requirements: Sequence[str]) -> bool:
    """Whether the probe cannot work with the pytest among what is installed ('name==version')."""
    versions = [line.partition("==")[2] for line in requirements if line.startswith("pytest==")]
    return any(Version(version) < _OLDEST_PYTEST for version in versions)


def _install_newer_pytest(tries: _Attempts, into: Sequence[str], place: Path, wanted: _Wanted) -> bool:
    """Installs again, whatever is asked for of what pytest needs: a package's `six==1.5.2` keeps pytest 3.2."""
    tries.log.append(f"(pytest is older than {_OLDEST_PYTEST}: bounds of {', '.join(_PYTEST_NEEDS)} are dropped)")
    (place / "overrides.txt").write_text("\n".join(_PYTEST_NEEDS), encoding="utf-8")
    lines = [*wanted.requirements, f"pytest>={_OLDEST_PYTEST}"]
    return _install(tries, place, [*into, "--override", str(place / "overrides.txt")], lines, wanted.date)


def _moments(date: datetime | None) -> list[datetime | None]:
    """Dates at which the index is looked at, in the order of trying; None: as it is today."""
    now = datetime.now(UTC)
    # a later date that is still to come is the same as no limit
    return [*([date + later for later in LATER if not later or date + later <= now] if date else []), None]


def _date_options(moment: datetime | None, builds: bool, undated: Collection[str]) -> list[str]:
    if moment is None:
        return []
    options = ["--exclude-newer", _iso(moment)]
    floors = dict.fromkeys(("pytest", *_PYTEST_NEEDS), _PYTEST_FROM)
    floors |= {"setuptools": _BUILD_TOOLS_FROM} if builds else {}
    for name, floor in floors.items():
        if moment < floor:
            options += ["--exclude-newer-package", f"{name}={_iso(floor)}"]
    for name in sorted(undated):
        options += ["--exclude-newer-package", f"{name}=false"]
    return options


def _binary_options(builds: bool) -> list[str]:
    names = sorted(_WHEELS_ONLY) if builds else [":all:"]
    return [option for name in names for option in ("--only-binary", name)]


def _undated(output: str) -> set[str]:
    """Names without an upload time in the index that the error at the end of the output speaks of."""
    warnings, _, error = output.partition("error:")
    files = (re.split(r"-(?=\d)", Path(name).name, maxsplit=1)[0] for name in _UNDATED.findall(warnings))
    words = {str(canonicalize_name(word)) for word in re.findall(r"[A-Za-z0-9][\w.-]*", error)}
    return {str(canonicalize_name(name)) for name in files} & words


def _installed(place: Path) -> list[str]:
    """From the names of the folders that describe distributions: none of what is installed is run."""
    found = [path.name.removesuffix(".dist-info") for path in place.glob("lib*/python*/site-packages/*.dist-info")]
    pairs = {name.partition("-")[::2] for name in found}
    return sorted(f"{canonicalize_name(name)}=={Version(version)}" for name, version in pairs)


def _make_tools(sandbox: Sandbox, place: Path, python: Interpreter) -> _Tools | Rejection:
    tries = _Attempts(deadline=time.monotonic() + 600.0)
    with _building(sandbox, python.path, place, tries) as program:
        into = ["--target", str(place), "--python", str(program)]
        made = any(
            tries.run(["pip", "install", *into, *options, "--", *TOOLS]).ok
            for options in (["--only-binary", ":all:"], [])
        )
    if not made:
        return Rejection(Reason.RESOLUTION_FAILED, tail("\n".join(tries.log)))
    compile_folder(python.path, place, timeout=tries.left())
    return _Tools(path=place)


@contextlib.contextmanager
def _building(sandbox: Sandbox, python: Path, place: Path, tries: _Attempts) -> Iterator[Path]:
    """The interpreter that uv gets: one that builds in the sandbox, where there is one that keeps what it promises."""
    if not sandbox.isolation.files:
        yield python
        return
    with stand_in(sandbox, python, place, cache_folder(), tries.left) as taken:
        yield taken.program


def _iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
