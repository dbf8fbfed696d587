"""What of the host a sandboxed program must not see: keys, and sockets through which it could get out.

The root is mounted read-only, but reading is enough for a key, and a socket can be
connected to on a read-only mount. Home folders are hidden as a whole; what the command
needs of them (an interpreter, a tree, a cache of ours) is mounted again on top.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Iterable
from pathlib import Path

from perfquarry.harness.contracts import Command

PRIVATE = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108  # these are covered, not used
"""Folders of which a sandbox has its own."""

SYSTEM = (
    "/run", "/var/run", "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssh", "/etc/docker",
    "/etc/kubernetes", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private", "/etc/NetworkManager",
    "/etc/krb5.keytab", "/var/lib/docker", "/var/lib/containerd", "/var/lib/kubelet", "/var/lib/postgresql",
    "/var/spool", "/var/mail", "/var/log", "/var/backups", "/lost+found",
    # the addresses of package indexes may hold passwords
    "/etc/pip.conf", "/etc/xdg/pip", "/etc/uv", "/etc/environment",
)  # fmt: skip

NAMED = (
    "PIP_CONFIG_FILE", "UV_CONFIG_FILE", "NETRC", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "GNUPGHOME", "SSH_AUTH_SOCK",
    "GIT_CONFIG_GLOBAL", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "GOOGLE_APPLICATION_CREDENTIALS",
    "AZURE_CONFIG_DIR", "KUBECONFIG", "DOCKER_CONFIG", "HF_TOKEN_PATH",
)  # fmt: skip
"""Variables of the caller that name files or folders with keys, wherever these lie."""

OWN = tuple(map(Path, ("/bin", "/sbin", "/lib", "/lib64", "/usr/bin", "/usr/sbin", "/usr/lib")))
"""Folders of the system's own programs."""
LINKS = 16
"""Links followed from a program to its real file."""
NOBODYS = frozenset({Path("/home/linuxbrew")})
"""Beside homes, but a package manager's: an interpreter there is linked to its neighbours."""

ACCEPTS = 0x10000
"""Flag of a listening socket in /proc/net/unix."""


def hidden_paths() -> list[Path]:
    """Existing files and folders of this machine that no sandbox may show; one may lie in another."""
    found = [Path(path) for path in SYSTEM]
    for home in homes():
        whole = home != Path("/")
        found += [home] if whole else [entry for entry in _entries(home) if entry.name.startswith(".")]
    found += listening_sockets()
    found += [Path.cwd() / ".env", *(Path(prefix) / "pip.conf" for prefix in (sys.prefix, sys.base_prefix))]
    named = [Path(os.environ[name]) for name in NAMED if os.environ.get(name)]
    found += [path for path in named if Path("/dev") not in path.parents]
    # a link would be followed by the mount: its target is what has to be hidden
    return sorted({path.resolve() for path in found if path.exists() and os.access(path, os.R_OK)} - {Path("/")})


def needed_paths(command: Command) -> set[Path]:
    """What a command has to see of what is hidden, links on the way to its interpreters included."""
    programs = [command.argv[0], *(str(folder / "bin" / "python") for folder in command.readable)]
    found = {command.cwd, *command.readable, *command.writable}
    return found.union(*map(program_folders, programs))


def program_folders(program: str) -> list[Path]:
    """Folders of the host in which a program, and what its links lead to, are installed; none for the system's own."""
    found: list[Path] = []
    path = Path(program)
    for _ in range(LINKS):
        if not path.is_absolute() or within(path, OWN) or not os.path.lexists(path):
            break
        found.append(path.parent.parent if path.parent.name == "bin" else path.parent)
        if not path.is_symlink():
            break
        path = Path(os.path.normpath(path.parent / path.readlink()))
    return found


def within(path: Path, folders: Iterable[Path]) -> bool:
    """Whether a path is one of the folders or lies in one."""
    return any(path == folder or folder in path.parents for folder in folders)


def closed_to_namespaces(path: Path) -> bool:
    """Whether a folder above it keeps out whoever has only this user's own rights.

    In a user namespace, root has no power over files of users that are not in the namespace: neither can what is there
    be reached, nor can it be covered. The same is true of what is gone: sockets of others come and go.
    """
    mine, groups = os.geteuid(), {os.getegid(), *os.getgroups()}
    for folder in path.parents:
        try:
            facts = folder.stat()
        except FileNotFoundError:
            return True
        shift = 6 if facts.st_uid == mine else 3 if facts.st_gid in groups else 0
        if not facts.st_mode >> shift & 1:
            return True
    return False


def listening_sockets() -> list[Path]:
    """Socket files that somebody serves here: neither a namespace nor a read-only mount keeps one from connecting."""
    try:
        lines = os.fsdecode(Path("/proc/net/unix").read_bytes()).splitlines()[1:]
    except OSError:  # not Linux
        return []
    rows = [line.split(maxsplit=7) for line in lines]
    return [Path(row[7]) for row in rows if len(row) == 8 and row[7].startswith("/") and int(row[3], 16) & ACCEPTS]


def homes() -> list[Path]:
    """Home folders in which this user could read files."""
    mine = {Path.home(), Path(pwd.getpwuid(os.getuid()).pw_dir)}
    others = {*_entries(Path("/home")), *_entries(Path("/Users")), Path("/root")}
    found = {home.resolve() for home in mine | others if home.is_dir() and os.access(home, os.X_OK)}
    return sorted(found - NOBODYS)


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def inside(paths: Iterable[Path], covers: Iterable[Path]) -> list[Path]:
    """The existing paths that lie inside one of `covers` (not a cover itself), outermost first."""
    covers = set(covers)
    begins = tuple(f"{cover}/" for cover in covers)  # text: this is done for every process
    found = {path for path in paths if path not in covers and str(path).startswith(begins)}
    return sorted(path for path in found if path.exists() and not found.intersection(path.parents))
