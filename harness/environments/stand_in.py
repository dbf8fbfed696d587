"""An interpreter for uv that hands its calls to the sandbox: build backends never run beside us.

uv resolves, downloads and installs, none of which runs what it fetches. What it starts is the interpreter: to ask an
environment what it is, and for each step of a build (PEP 517's hooks). That interpreter is a small program of ours,
which sends the call through a socket to this process; here it becomes one ordinary sandboxed command. A build works
on copies: uv's own cache, the environment it installs into and its build environments are read-only to it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socketserver
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from perfquarry.data.errors import SandboxUnavailable
from perfquarry.data.files import remove
from perfquarry.harness.building.checks import describe, environment_variables, interpreter_folder
from perfquarry.harness.contracts import Command, Completed, Limits, Sandbox

FOLDER = ".stand-in"
"""Beside what is installed, as long as that lasts."""
_PROCESSES = 1024
_TAKEN_BYTES = 4 * 1024**3
"""Largest sum of sizes that is taken over from one step."""

# Only in a sandbox is its folder read-only: there it is the interpreter, under the name it was called by.
_PROGRAM = """\
#!{real} -IS
import json, os, socket, sys
if not os.access({folder!r}, os.W_OK):
    os.execv({real!r}, sys.argv)
line = socket.socket(socket.AF_UNIX)
line.connect({socket!r})
with line, line.makefile("rw", encoding="utf-8") as pipe:
    pipe.write(json.dumps([sys.argv, os.getcwd()]) + "\\n")
    pipe.flush()
    code, out, err = json.loads(pipe.readline())
sys.stderr.buffer.write(err.encode("utf-8", "replace"))
sys.stdout.buffer.write(out.encode("utf-8", "replace"))
sys.exit(code)
"""


@dataclass
class StandIn:
    """Takes uv's calls of an interpreter.

    Args:
        sandbox: where they run.
        real: the interpreter.
        place: what uv installs into; the program lies in it.
        cache: uv's cache.
        left: wall seconds that a call may take.
    """

    sandbox: Sandbox
    real: Path
    place: Path
    cache: Path
    left: Callable[[], float]
    fault: SandboxUnavailable | KeyboardInterrupt | None = None
    """Why a call could not be run: then what uv says is not the requirements' fault."""
    _ending: threading.Event = field(default_factory=threading.Event)

    @property
    def program(self) -> Path:
        """What uv is given as the interpreter."""
        return self.place / FOLDER / "python" / "bin" / self.real.name

    def install(self, socket: Path) -> None:
        """Writes the program, with the rest of the interpreter's installation beside it."""
        root = self.program.parent.parent
        self.program.parent.mkdir(parents=True)
        for entry in self.real.parent.parent.iterdir():
            if entry.name != "bin":
                (root / entry.name).symlink_to(entry)
        facts = {"real": str(self.real), "folder": str(self.program.parent), "socket": str(socket)}
        self.program.write_text(_PROGRAM.format(**facts), encoding="utf-8")
        self.program.chmod(0o755)

    def answer(self, argv: Sequence[str], cwd: Path) -> tuple[int, str, str]:
        """Runs one call: exit code and both streams, as uv's child would have had them."""
        environment = Path(argv[0]).parent.parent
        known = environment in (self.place, self.program.parent.parent) or _within(environment, self.cache)
        if not known or not (cwd == Path("/") or _within(cwd, self.cache)):
            return 1, "", f"refused: {cwd} is no source distribution that was downloaded"
        step = _Step(self.cache, self.place / FOLDER / "work" / environment.name, environment, cwd)
        try:
            results = step.prepare(argv)
            done = self.sandbox.run(self._command(step, results, argv))
            step.take(results, argv)
        except (SandboxUnavailable, KeyboardInterrupt) as error:
            self.fault = error
            return 1, "", str(error) or "interrupted"
        except (OSError, RecursionError) as error:
            return 1, "", f"what the build left cannot be taken over: {error}"
        return _result(done)

    def end(self) -> None:
        """Ends what still runs."""
        self._ending.set()

    def _command(self, step: _Step, results: Path, argv: Sequence[str]) -> Command:
        return Command(
            argv=(argv[0], *(step.rewritten(word, results) for word in argv[1:])),
            cwd=step.folder if step.builds else Path("/"),
            env=step.variables(Path(argv[0])),
            writable=(results, step.bytecode, *([step.folder] if step.builds else [])),
            readable=(self.place, interpreter_folder(self.real), step.environment, *step.programs(argv)),
            limits=Limits(self.left(), psutil.virtual_memory().total, _PROCESSES),
            ending=self._ending,
        )


@dataclass(frozen=True)
class _Step:
    """One call of an interpreter: what it sees in the place of uv's folders.

    A step writes into three folders, of which each is a mount of its own that it cannot replace. What lies in them is
    a stranger's: the host reads results only, and follows no link there.
    """

    cache: Path
    work: Path
    """Of one build; its steps share the source and the bytecode of what they import."""
    environment: Path
    source: Path
    """Folder of the source distribution in uv's cache; the root folder where nothing is built."""

    @property
    def builds(self) -> bool:
        return self.source != Path("/")

    @property
    def folder(self) -> Path:
        return self.work / "src"

    @property
    def bytecode(self) -> Path:
        return self.work / "bytecode"

    def prepare(self, argv: Sequence[str]) -> Path:
        """Makes the three folders; that for results is new, and holds what uv has put into its own."""
        self.bytecode.mkdir(parents=True, exist_ok=True)
        if self.builds and not self.folder.exists():
            shutil.copytree(self.source, self.folder, symlinks=True)
        results = Path(tempfile.mkdtemp(prefix="results-", dir=self.work))
        for path, own in self._results(argv, results):
            if path.is_dir():
                shutil.copytree(path, own, dirs_exist_ok=True)
            own.parent.mkdir(parents=True, exist_ok=True)
        return results

    def take(self, results: Path, argv: Sequence[str]) -> None:
        """Copies regular files to where uv looks for them: it would follow links.

        Raises:
            OSError: they cannot be copied, are too large, or a link leads to them.
        """
        for path, own in self._results(argv, results):
            if own.resolve() != own:
                raise OSError(f"{own.name} is a link")
            for source in _regular_files(own):
                target = path / source.relative_to(own)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target, follow_symlinks=False)

    def rewritten(self, word: str, results: Path) -> str:
        """The text of a call with the step's own folders in the place of uv's."""
        word = self._pattern.sub(lambda found: str(results / found[1]), word)
        return word.replace(str(self.source), str(self.folder)) if self.builds else word

    def programs(self, argv: Sequence[str]) -> list[Path]:
        """Folders of uv's own programs that the call names."""
        pattern = re.escape(str(self.cache)) + r"/\.tmp\w+"
        return [Path(found) for word in argv[1:] for found in re.findall(pattern, word)]

    def variables(self, python: Path) -> Mapping[str, str]:
        own = {"PYTHONPYCACHEPREFIX": str(self.bytecode), "PYTHONIOENCODING": "utf-8:backslashreplace"}
        return {**environment_variables(python), **own, "GIT_CEILING_DIRECTORIES": str(self.work)}

    @property
    def _pattern(self) -> re.Pattern[str]:
        """Temporary folders of builds, and paths in them."""
        return re.compile(re.escape(str(self.cache)) + r"/builds-v\d+/(\.tmp\w+(?:/[^/\"'\\]+)*)")

    def _results(self, argv: Sequence[str], results: Path) -> Iterator[tuple[Path, Path]]:
        """(Where uv looks for results, where the step writes them)."""
        for word in argv[1:]:
            for found in self._pattern.finditer(word):
                yield Path(found[0]), results / found[1]


@contextlib.contextmanager
def stand_in(sandbox: Sandbox, real: Path, place: Path, cache: Path, left: Callable[[], float]) -> Iterator[StandIn]:
    """A stand-in that answers until the block's end; what still runs then is ended.

    Raises:
        SandboxUnavailable: a call could not be run.
        KeyboardInterrupt: the command was to end while one ran.
    """
    with tempfile.TemporaryDirectory(prefix="pq-") as folder:
        taken = StandIn(sandbox, real, place.resolve(), cache.resolve(), left)
        taken.install(Path(folder, "s"))
        with _Server(taken, Path(folder, "s")) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.05,))
            thread.start()
            try:
                yield taken
            finally:
                taken.end()
                server.shutdown()
                thread.join()
        remove(place / FOLDER)
    if taken.fault:
        raise taken.fault


@contextlib.contextmanager
def standing_in(environment: Path, program: Path) -> Iterator[None]:
    """Inside the block an environment's interpreter is the stand-in; then its own again, whatever was installed."""
    link, settings = environment / "bin" / "python", environment / "pyvenv.cfg"
    real, text = link.readlink(), settings.read_text(encoding="utf-8")
    home = re.sub(r"^home = .*$", lambda _: f"home = {program.parent}", text, flags=re.MULTILINE)
    _point(link, program)
    settings.write_text(home, encoding="utf-8")
    try:
        yield
    finally:
        _point(link, real)
        settings.write_text(text, encoding="utf-8")


class _Server(socketserver.ThreadingUnixStreamServer):
    """Uv builds several distributions at once."""

    def __init__(self, taken: StandIn, socket: Path) -> None:
        self.taken = taken
        super().__init__(str(socket), _Handler)


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # uv was killed meanwhile
            argv, cwd = json.loads(self.rfile.readline())
            answer = self.server.taken.answer(argv, Path(cwd))
            self.wfile.write(json.dumps(answer).encode() + b"\n")


def _point(link: Path, target: Path) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def _result(done: Completed) -> tuple[int, str, str]:
    out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    return (0, out, err) if done.ok else (done.exit_code or 1, "", describe(done))


def _regular_files(path: Path) -> list[Path]:
    """A file, or those below a folder.

    Raises:
        OSError: they are too large.
    """
    found = [path, *(Path(place, name) for place, _, names in os.walk(path) for name in names)]
    facts = {one: one.lstat() for one in found if os.path.lexists(one)}
    regular = [one for one, fact in facts.items() if stat.S_ISREG(fact.st_mode)]
    if (total := sum(facts[one].st_size for one in regular)) > _TAKEN_BYTES:
        raise OSError(f"{total} bytes; at most {_TAKEN_BYTES} are taken over")
    return regular


def _within(path: Path, folder: Path) -> bool:
    return folder in path.parents
