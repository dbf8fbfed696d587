"""The one place that starts git: one environment, one set of options, and no configuration but ours.

git runs what a repository's configuration names (filters, hooks, monitors, helpers), so a stranger's is never its
git directory. A clone of ours has the configuration that is written here. Any other repository is read through a
view: an empty git directory of ours with the stranger's refs as plain data, over the stranger's objects.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, NamedTuple, cast

from perfquarry.data.children import Need, environment
from perfquarry.data.errors import GitFailed, InputError
from perfquarry.data.files import appearing

if TYPE_CHECKING:
    from git.cmd import Git as Command

ATTRIBUTES = Path(__file__).with_name("gitattributes.txt")
LARGEST_COMPARED = 32 * 1024 * 1024
"""Bytes; git takes larger files for binary. To compare them as text it needs ten times their size in memory."""

_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.attributesFile": str(ATTRIBUTES),
    "core.autocrlf": "false",
    "core.symlinks": "true",
    "core.sparseCheckout": "false",
    "core.quotePath": "true",
    "core.bigFileThreshold": str(LARGEST_COMPARED),
    # Memory of git's own, each process: cheap to lower, no slower on numpy's history (256 MB to 139 MB).
    "core.packedGitWindowSize": "8m",
    "core.packedGitLimit": "64m",
    "core.deltaBaseCacheLimit": "64m",
    "protocol.ext.allow": "never",
    "submodule.recurse": "false",
    "init.defaultBranch": "main",
    "attr.tree": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",  # the empty tree: attributes in commits do not count
    "diff.algorithm": "default",
    "diff.context": "3",
    "diff.interHunkContext": "0",
    "diff.indentHeuristic": "true",
    "diff.mnemonicPrefix": "false",
    "diff.noprefix": "false",
    "diff.orderFile": "/dev/null",
    "diff.renameLimit": "1000",
    "diff.suppressBlankEmpty": "false",
    "diff.submodule": "short",
    "diff.ignoreSubmodules": "none",
    "diff.relative": "false",
    # A plain pattern: git's own for Python costs three times as much.
    "diff.python-plain.xfuncname": r"^( *(class|c?p?def|async) .*)$",
    "log.showRoot": "true",
    "log.showSignature": "false",
    "i18n.logOutputEncoding": "UTF-8",
}
_ALWAYS = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_DIFF_OPTS": "",
    "GIT_FLUSH": "0",  # or git writes each commit on its own, and both sides wait for each other
    "GIT_PAGER": "cat",
    "LANGUAGE": "C",
    "LC_ALL": "C",
    "GIT_CONFIG_COUNT": str(len(_SETTINGS)),  # these win over every file, and are inherited
    **{f"GIT_CONFIG_KEY_{number}": key for number, key in enumerate(_SETTINGS)},
    **{f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(_SETTINGS.values())},
}
_ISOLATED = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ALLOW_PROTOCOL": ""}
_CONFIG = "[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = {bare}\n{more}"
_CONFIGS = {
    (digits, bare): _CONFIG.format(version=version, bare=str(bare).lower(), more=more)
    for digits, version, more in ((40, 0, ""), (64, 1, "[extensions]\n\tobjectFormat = sha256\n"))
    for bare in (True, False)
}
"""The whole configuration of a repository of ours, by the digits of its ids and by whether it is bare."""

_LARGEST_LISTING = 256 * 1024 * 1024
_LARGEST_REF = 4096
_MOST_REFS = 1_000_000
_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF = re.compile(r"refs/(?!.*(?:\.\.|@\{|//|/\.|\.lock(?:/|$)|[./]$))[^\x00-\x20\x7f~^:?*\[\\]+")
_HEAD = re.compile(r"ref: (refs/heads/\S+)")


@functools.cache
def _command() -> type[Command]:
    """GitPython's, whose import starts git with whatever this process has in its environment."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(environment())
    try:
        return cast("type[Command]", importlib.import_module("git.cmd").Git)
    finally:
        os.environ.clear()
        os.environ.update(before)


class Done(NamedTuple):
    """A git command that ended."""

    code: int
    out: bytes
    said: str
    """Its messages, in one line."""


class Git:
    """git on one folder. Its processes get the variables that are given and no others.

    Args:
        folder: the repository, for messages.
        variables: the whole environment.
        view: what has to stay while this is used.
        inside: the working directory.
    """

    def __init__(
        self, folder: Path, variables: Mapping[str, str], view: _View | None = None, inside: Path = Path("/")
    ) -> None:
        self.folder, self._variables, self._view, self._inside = folder, dict(variables), view, inside

    def having(self, **variables: str) -> Git:
        """The same with more variables."""
        return Git(self.folder, self._variables | variables, self._view, self._inside)

    def start(self, *arguments: str, istream: IO[bytes] | int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        """A git process with pipes.

        Raises:
            GitFailed: it could not be started.
        """
        if shutil.which("git", path=self._variables.get("PATH")) is None:
            raise GitFailed("git is not installed: install it and run again")
        # GitPython adds to the environment of this process, and never takes away from it: `env` does
        alone = ["env", "-i", *(f"{name}={value}" for name, value in self._variables.items())]
        try:
            started = _command()(self._inside).execute(
                [*alone, "git", *arguments], istream=cast(BinaryIO, istream), as_process=True
            )
        except (OSError, ValueError) as error:
            raise GitFailed(f"git cannot be started on {self.folder}: {error}") from error
        process, started.proc = started.proc, None  # whoever asked ends it
        return cast("subprocess.Popen[bytes]", process)

    def run(self, *arguments: str, istream: IO[bytes] | int = subprocess.DEVNULL) -> Done:
        """A git command that is waited for.

        Raises:
            GitFailed: it could not be started.
        """
        with self.start(*arguments, istream=istream) as process:
            out, error = process.communicate()
        return Done(process.returncode, out, " ".join(error.decode(errors="replace").split())[-600:])

    def output(self, *arguments: str, doing: str, lines: Iterable[str] | None = None) -> bytes:
        """Standard output of a command; `lines` go to its standard input.

        Raises:
            GitFailed: it ended with an error; the text begins with `doing`.
        """
        if lines is None:
            done = self.run(*arguments)
        else:
            with given(lines) as istream:
                done = self.run(*arguments, istream=istream)
        if done.code:
            raise GitFailed(f"{doing}: {done.said or f'exit code {done.code}'}")
        return done.out


@contextmanager
def given(lines: Iterable[str]) -> Iterator[BinaryIO]:
    """A file with these lines, to be the standard input of a command: a pipe could fill while git fills its own."""
    with tempfile.TemporaryFile() as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
        file.seek(0)
        yield cast(BinaryIO, file)


def git_of(repository: Path) -> Git:
    """git that reads one repository, bare or not: our own as it is, any other through a view.

    Raises:
        GitFailed: there is no such repository, or it borrows its objects from another one.
    """
    inside = repository / ".git" if (repository / ".git").exists() else repository
    inside = inside.absolute()
    isolated = environment() | _ALWAYS | _ISOLATED
    if is_ours(inside):
        return Git(repository, isolated | {"GIT_DIR": str(inside)})
    try:
        source = git_folder(repository)
    except InputError as error:
        raise GitFailed(str(error)) from error
    view = _View(source)
    place = {"GIT_DIR": str(view.folder), "GIT_OBJECT_DIRECTORY": str(source.common / "objects")}
    return Git(repository, isolated | place, view)


def git_for_remotes(folder: Path | None = None, *, protocols: str, anonymous: bool = False) -> Git:
    """git that asks other machines, on a repository of ours or on none.

    Args:
        folder: the repository.
        protocols: those that may be used, with colons between them.
        anonymous: without the user's configuration and credentials.
    """
    variables = environment(Need.NETWORK) if anonymous else environment(Need.NETWORK, Need.SESSION)
    variables |= _ALWAYS | (_ISOLATED | {"HOME": os.devnull} if anonymous else {})
    where = {"GIT_DIR": str(folder)} if folder else {"GIT_CEILING_DIRECTORIES": "/"}
    return Git(folder or Path("/"), variables | where | {"GIT_ALLOW_PROTOCOL": protocols})


def git_in_tree(tree: Path, variables: Mapping[str, str] | None = None, folder: Path | None = None) -> Git:
    """git on a new repository of ours whose files are those of a folder; the folder must have no `.git`.

    Args:
        tree: the files.
        variables: more of git's environment.
        folder: where the repository is made; None: `.git` in the tree.
    """
    folder = folder or tree / ".git"
    make_ours(folder, bare=False)
    own = {"GIT_DIR": str(folder), "GIT_WORK_TREE": str(tree)}
    return Git(tree, environment() | _ALWAYS | _ISOLATED | own | dict(variables or {}), inside=tree)


def commit_of(repository: Path, name: str) -> str:
    """The id of the commit that a name stands for.

    Raises:
        GitFailed: there is none.
    """
    wanted = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return git_of(repository).output(*wanted, doing=f"looking for {name} in {repository}").decode().split()[-1]


def origin_of(repository: Path) -> str:
    """The address that a repository on this machine was cloned from, as its configuration says; empty without one.

    Raises:
        InputError: it is no repository.
    """
    asked = ("config", "--no-includes", "--file", str(git_folder(repository).common / "config"), "remote.origin.url")
    return Git(repository, environment() | _ALWAYS | _ISOLATED).run(*asked).out.decode(errors="replace").strip()


def version() -> str:
    """What git says of itself; empty without git."""
    try:
        return Git(Path("/"), environment() | _ALWAYS | _ISOLATED).run("version").out.decode().strip()
    except GitFailed:
        return ""


def is_ours(folder: Path) -> bool:
    """Whether all that git would read as configuration of a git directory was written here."""
    try:
        if (folder / "commondir").exists() or (folder / "config.worktree").exists():
            return False
        return (folder / "config").read_text(encoding="utf-8") in _CONFIGS.values()
    except (OSError, ValueError):
        return False


def make_ours(folder: Path, digits: int = 40, *, bare: bool = True) -> None:
    """Makes a git directory, or gives the one that is there our configuration; refs and objects stay."""
    for name in ("objects/info", "objects/pack", "refs/heads", "info"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in ("commondir", "config.worktree", "objects/info/alternates", "info/attributes", "info/grafts"):
        (folder / name).unlink(missing_ok=True)
    _replace(folder / "config", _CONFIGS[digits, bare])
    if not (folder / "HEAD").exists():
        _replace(folder / "HEAD", "ref: refs/heads/main\n")


class GitFolders(NamedTuple):
    """The git folders of a repository that is not ours."""

    own: Path
    """Holds HEAD."""
    common: Path
    """Holds objects and refs; another one for a further work tree."""


class Refs(NamedTuple):
    """What a repository's refs name, as plain data."""

    head: str
    """What HEAD names: a branch, or an id."""
    refs: dict[str, str]
    shallow: str
    """Text of the file `shallow`; empty without one."""

    @property
    def digits(self) -> int:
        """Digits of an id."""
        return len(next(iter(self.refs.values()), "0" * 40))


def git_folder(path: Path, *, above: bool = False) -> GitFolders:
    """The git folders of a repository on this machine, found without git: itself, `.git` in it, or `above`.

    Raises:
        InputError: there is none; it is named by a file or link that its own side does not confirm.
    """
    for folder in (top := path.resolve(), *(top.parents if above else ())):
        inside = folder / ".git"
        if inside.is_symlink():
            raise InputError(f"{inside} is a symbolic link: give the repository that it leads to")
        if inside.is_file():
            return _linked(inside)
        for one in (inside, folder):
            if (one / "HEAD").is_file() and (one / "objects").is_dir() and (one / "refs").is_dir():
                return _sound(GitFolders(one, one))
    raise InputError(f"{path} is no git repository: give the folder of a clone")


def refs_of(source: GitFolders) -> Refs:
    """Branches, tags and other refs; what is no ref to an object is passed over.

    Raises:
        GitFailed: they cannot be read.
    """
    try:
        found: dict[str, str] = {}
        for line in plain_text(source.common / "packed-refs", _LARGEST_LISTING).splitlines():
            value, _, name = line.partition(" ")
            _add(found, name, value)
        for file in _plain_files(source.common / "refs"):
            _add(found, file.relative_to(source.common).as_posix(), plain_text(file, _LARGEST_REF).strip())
        head = plain_text(source.own / "HEAD", _LARGEST_REF).strip()
        shallow = plain_text(source.common / "shallow", _LARGEST_LISTING).split()
    except (OSError, ValueError) as error:
        raise GitFailed(f"reading the refs of {source.own}: {error}") from error
    branch = _HEAD.fullmatch(head)
    head = branch.group(1) if branch and _REF.fullmatch(branch.group(1)) else head if _ID.fullmatch(head) else ""
    grafts = "".join(f"{line}\n" for line in shallow if _ID.fullmatch(line))
    width = len(next(iter(found.values()), ""))
    return Refs(head, {name: value for name, value in found.items() if len(value) == width}, grafts)


def write_refs(folder: Path, found: Refs) -> None:
    """Gives a repository of ours these refs and no others."""
    if found.shallow:
        _replace(folder / "shallow", found.shallow)
    else:
        (folder / "shallow").unlink(missing_ok=True)
    _replace(folder / "packed-refs", "".join(f"{found.refs[name]} {name}\n" for name in sorted(found.refs)))
    for loose in [file for file in _plain_files(folder / "refs") if not file.name.endswith(".lock")]:
        with suppress(FileNotFoundError):
            loose.unlink()
    if found.head:
        _replace(folder / "HEAD", f"{found.head if _ID.fullmatch(found.head) else f'ref: {found.head}'}\n")


def plain_text(file: Path, limit: int) -> str:
    """Text of a regular file, no link followed; empty where there is none.

    Raises:
        ValueError: it is longer than `limit` bytes, or no plain file.
    """
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    with os.fdopen(handle, "rb") as opened:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > limit:
            raise ValueError(f"{file} is no plain file of at most {limit} bytes")
        return opened.read(limit).decode("utf-8", "surrogateescape")


def without_password(address: str) -> str:
    """An address as people and logs may see it."""
    return re.sub(r"(?<=://)[^/\s]*@", "*****@", address)


class _View:
    """A git directory of ours with the refs of a repository that is not; removed with the last `Git` that uses it."""

    def __init__(self, source: GitFolders) -> None:
        found = refs_of(source)
        self.folder = Path(tempfile.mkdtemp(prefix="perfquarry-git-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        make_ours(self.folder, found.digits)
        write_refs(self.folder, found)


def _replace(file: Path, text: str) -> None:
    with appearing(file) as partial:
        partial.write_text(text, encoding="utf-8", errors="surrogateescape")


def _linked(file: Path) -> GitFolders:
    """The folders of a work tree or submodule whose `.git` is a file; both sides must name each other."""
    text = plain_text(file, _LARGEST_REF)
    own = (file.parent / text.removeprefix("gitdir:").strip()).resolve()
    back = plain_text(own / "gitdir", _LARGEST_REF).strip()
    shared = plain_text(own / "commondir", _LARGEST_REF).strip()
    if text.startswith("gitdir:") and shared and (own / back).resolve() == file.resolve():
        common = (own / shared).resolve()
        if own.parent == common / "worktrees":
            return _sound(GitFolders(own, common))
    raise InputError(f"{file} names {own}, which does not name it: give the folder of the repository itself")


def _sound(source: GitFolders) -> GitFolders:
    """Refuses what would lead out of the repository."""
    for path in (source.common / "objects", source.common / "refs", source.common / "objects" / "pack"):
        if path.is_symlink():
            raise InputError(f"{path} is a symbolic link: clone the repository, and give the clone")
    if plain_text(source.common / "objects" / "info" / "alternates", _LARGEST_LISTING).strip():
        raise InputError(
            f"{source.common} borrows objects of another repository: run `git repack -a -d` in it and delete its "
            "objects/info/alternates, or clone it with --dissociate"
        )
    return source


def _add(found: dict[str, str], name: str, value: str) -> None:
    if _REF.fullmatch(name) and _ID.fullmatch(value):
        found[name] = value
        if len(found) > _MOST_REFS:
            raise ValueError(f"more than {_MOST_REFS} refs")


def _plain_files(folder: Path) -> Iterator[Path]:
    """Regular files below a folder; links are neither followed nor named."""
    for place, _, names in os.walk(folder):
        yield from (path for path in (Path(place, name) for name in sorted(names)) if not path.is_symlink())
