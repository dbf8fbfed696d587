"""Small checks of a checked-out tree with an environment's interpreter, each one sandboxed command."""

from __future__ import annotations

import contextlib
import filecmp
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfquarry.data.files import write_whole
from perfquarry.data.records import Reason
from perfquarry.harness.building.python2 import does_not_parse_since, fails_at_import_since
from perfquarry.harness.contracts import Command, Completed, Limits, Sandbox
from perfquarry.harness.rejections import Rejection, tail

# These run on every Python from 3.6 on.
_PARSE = """\
import sys
bad = 0
for name in sys.argv[1:]:
    try:
        with open(name, "rb") as file:
            compile(file.read(), name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        print("%s: %s: %s" % (name, type(error).__name__, error))
        print((getattr(error, "text", None) or "").rstrip())
        bad = 1
sys.exit(bad)
"""
_ROOTS = Path(__file__).resolve().parents[1] / "probe" / "perfquarry_roots.py"
_IMPORT = f"""{_ROOTS.read_text(encoding="utf-8")}
import importlib, traceback
tree, roots, enough, names = os.getcwd() + os.sep, sys.argv[1].split(os.pathsep), int(sys.argv[2]), sys.argv[3:]
put_first(roots)
done = 0
for name in names:
    try:
        place = getattr(importlib.import_module(name), "__file__", None)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        done += type(error).__module__ == "django.core.exceptions"  # it asks for settings, which its tests have
        single = any(os.path.isfile(os.path.join(root, name + ".py")) for root in roots)
        if single and type(error) is ImportError and error.name is None:  # raised by itself: a name of the past
            enough = max(1, enough - 1)
    else:
        if place and not os.path.abspath(place).startswith(tree):
            print("%s was imported from %s, not from the tree" % (name, place))
        else:
            done += 1
sys.exit(0 if done >= enough else 1)
"""
# The path in the bytecode is the same for every tree (Python corrects it at import), so that trees can share it.
_COMPILE = "import compileall, sys; compileall.compile_dir(sys.argv[1], maxlevels=50, ddir='/tree', quiet=2)"


@dataclass(frozen=True)
class Checker:
    """Runs the checks of one tree; memory and time (wall seconds) are limits of each."""

    sandbox: Sandbox
    python: Path
    memory_bytes: int
    timeout: float

    def parse(self, tree: Path, files: Sequence[str], reason: Reason) -> Rejection | None:
        """Whether the interpreter compiles the files, relative to the tree; absent ones are passed over."""
        there = [name for name in files if (tree / name).is_file()]
        if not there:
            return None
        done = self._run(tree, ["-I", "-S", "-c", _PARSE, *there])
        if done.ok:
            return None
        log = _log("parsing the changed files", done)
        return Rejection(_late(done) or (Reason.NEEDS_PYTHON_2 if does_not_parse_since(log) else reason), log)

    def imports(
        self, tree: Path, roots: Sequence[Path], packages: Sequence[str], *, guessed: bool = False
    ) -> Rejection | None:
        """Whether the packages can be imported, and are the tree's own; of guessed ones, whether any can."""
        if not packages:
            return None
        enough = "1" if guessed else str(len(packages))
        done = self._run(tree, ["-B", "-c", _IMPORT, ":".join(map(str, roots)), enough, *packages])
        if done.ok:
            return None
        log = _log(f"import {', '.join(packages)}", done)
        old = fails_at_import_since(log, tree)
        return Rejection(_late(done) or (Reason.NEEDS_PYTHON_2 if old else Reason.IMPORT_FAILED), log)

    def compile_bytecode(self, tree: Path, tag: str) -> None:
        """Compiles the tree's .py files, once an interpreter version; files that do not parse are passed over.

        The bytecode names its source's time and size: it is valid as long as the source is as checked
        out (`harness.trees.checkouts.MTIME`), also in a read-only tree, and a patched file is compiled anew.
        """
        done = tree / "__pycache__" / f"perfquarry.{tag}.compiled"
        if done.exists():
            return
        latest = tree.with_name(f".{tag}.latest")
        with contextlib.suppress(OSError):  # none yet, or it is being removed
            share_bytecode(tree.with_name(latest.read_text(encoding="utf-8")), tree, tag)
        self._run(tree, ["-I", "-S", "-c", _COMPILE, str(tree)], writable=(tree,))
        done.parent.mkdir(exist_ok=True)
        done.touch()
        write_whole(latest, tree.name)

    def _run(self, tree: Path, arguments: Sequence[str], writable: tuple[Path, ...] = ()) -> Completed:
        return self.sandbox.run(
            Command(
                argv=(str(self.python), *arguments),
                cwd=tree,
                env=environment_variables(self.python),
                writable=writable,
                readable=(tree, interpreter_folder(self.python)),
                limits=Limits(wall_seconds=self.timeout, memory_bytes=self.memory_bytes),
            )
        )


def share_bytecode(like: Path, tree: Path, tag: str) -> None:
    """Links the bytecode of files that are equal in another tree, which has been compiled: most are.

    Raises:
        OSError: the other tree is not there.
    """
    for cache in sorted(like.rglob("__pycache__")):
        folder = tree / cache.relative_to(like).parent
        for compiled in cache.glob(f"*.{tag}.pyc"):
            name = compiled.name.removesuffix(f".{tag}.pyc") + ".py"
            target = folder / "__pycache__" / compiled.name
            if not target.exists() and _equal(cache.parent / name, folder / name):
                target.parent.mkdir(exist_ok=True)
                target.hardlink_to(compiled)


def _equal(one: Path, other: Path) -> bool:
    return other.is_file() and not other.is_symlink() and filecmp.cmp(one, other, shallow=False)


def interpreter_folder(python: Path) -> Path:
    """The installation behind an environment's interpreter."""
    return python.resolve().parent.parent


def environment_variables(python: Path) -> dict[str, str]:
    """What a program run with an environment's interpreter gets of an environment; none of it is the host's."""
    return {
        "PATH": f"{python.parent}:/usr/local/bin:/usr/bin:/bin",
        "VIRTUAL_ENV": str(python.parent.parent),
        "HOME": "/tmp",  # noqa: S108  # the sandbox's own
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
    }


def describe(done: Completed) -> str:
    """How a command ended, in words, after what it printed."""
    output = (done.stdout + done.stderr).decode("utf-8", "replace")
    if done.timed_out:
        how = f"killed after {done.wall_seconds:.0f} s"
    elif done.signal:
        how = f"ended by signal {done.signal}"
    else:
        how = f"exit code {done.exit_code}"
    return f"{output}\n({how}{f', limit: {done.exceeded}' if done.exceeded else ''})"


def _late(done: Completed) -> Reason | None:
    """Its own reason for what a time limit ended: that says nothing of the files, and is tried again."""
    return Reason.BUILD_TIMEOUT if done.timed_out else None


def _log(what: str, done: Completed) -> str:
    return tail(f"{what}:\n{describe(done)}")
