"""What of this machine native builds use beside the environment: compilers, their caches, Rust, processor cores."""

from __future__ import annotations

import functools
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from perfquarry.data.children import Need, answer_of, environment
from perfquarry.data.files import appearing
from perfquarry.data.home import Home
from perfquarry.data.records import content_id

CACHE_SIZE = "4G"
"""Disk one repository's compiler cache may fill; the least recently used goes first."""

_COMPILERS = ("cc", "gcc", "c++", "g++", "clang", "clang++")
_JOBS = re.compile(r"(?<=\s)(-j|--jobs[ =]|--parallel[ =])\s*\d+\b")


@dataclass(frozen=True)
class Toolchain:
    """What a build command gets for it."""

    env: dict[str, str]
    path: tuple[Path, ...]
    """Folders of programs, before those of the system."""
    readable: tuple[Path, ...]
    """Where these programs and their libraries are installed."""
    writable: tuple[Path, ...]

    @classmethod
    def find(cls, home: Home, repo: str, work: Path, jobs: int, *, read_only: bool = False) -> Toolchain:
        """The toolchain for builds of a repository in the folder `work`, with at most `jobs` processes each.

        A repository has caches of its own: what a hostile build puts there reaches no other's. Read only, a build puts
        nothing there; of Rust there is then no cache.
        """
        env = {
            "JOBS": str(jobs),
            "MAKEFLAGS": f"-j{jobs}",
            "MAX_JOBS": str(jobs),
            "CMAKE_BUILD_PARALLEL_LEVEL": str(jobs),
            "NPY_NUM_BUILD_JOBS": str(jobs),
            "SKLEARN_BUILD_PARALLEL": str(jobs),
            "CARGO_BUILD_JOBS": str(jobs),
            "CARGO_NET_OFFLINE": "true",
            "CARGO_TARGET_DIR": str(work / "build" / "cargo"),
        }
        cache = home.compiled / repo
        path, readable, writable = [], [], []
        ccache, sccache, rust = shutil.which("ccache"), shutil.which("sccache"), _rust()
        if ccache:
            path.append(_masquerade(home, Path(ccache)))
            readable += [path[-1], Path(ccache)]
            writable.append(cache / "ccache")
            env |= {
                "CCACHE_DIR": str(cache / "ccache"),
                "CCACHE_BASEDIR": str(work.parent),  # the link to the environment lies there, too
                "CCACHE_NOHASHDIR": "true",
                "CCACHE_COMPILERCHECK": "content",
                "CCACHE_MAXSIZE": CACHE_SIZE,
            }
        if rust:
            path.append(rust)
            readable.append(rust.parent)
            if sccache and not read_only:
                readable.append(Path(sccache))
                writable.append(cache / "sccache")
                env |= {
                    "RUSTC_WRAPPER": sccache,
                    "SCCACHE_DIR": str(cache / "sccache"),
                    "SCCACHE_CACHE_SIZE": CACHE_SIZE,
                }
        for folder in writable:
            folder.mkdir(parents=True, exist_ok=True)
        if read_only:
            own = str(work / "build" / "ccache")
            env |= {"CCACHE_READONLY": "true", "CCACHE_NOSTATS": "true", "CCACHE_TEMPDIR": own}
            readable, writable = [*readable, *writable], []
        return cls(env, tuple(path), tuple(readable), tuple(writable))


def with_jobs(command: str, jobs: int) -> str:
    """The command with every number of parallel jobs it names (`-j 2`) replaced."""
    return _JOBS.sub(rf"\g<1>{jobs}", command)


@functools.cache
def compilers_id() -> str:
    """Changes when a compiler of this machine does."""
    rust = _rust()
    programs = [*map(shutil.which, _COMPILERS), rust and str(rust / "rustc")]
    return content_id("compilers", [answer_of([program, "--version"]) for program in programs if program])


def _rust() -> Path | None:
    """The folder of the default toolchain's own programs: rustup's stand-ins would install what a tree pins."""
    rustc = shutil.which("rustc")
    try:
        programs = _programs_of(rustc) if rustc else None
    except (OSError, subprocess.SubprocessError):
        return None
    return programs if programs and (programs / "cargo").exists() else None


@functools.cache
def _programs_of(rustc: str) -> Path:
    """Kept only where it answered: on a busy machine it may not, in time."""
    asked = subprocess.run(
        [rustc, "--print", "sysroot"],
        env=environment(Need.TOOLCHAINS),
        capture_output=True,
        text=True,
        timeout=60.0,
        cwd="/",
        check=True,
    )
    return Path(asked.stdout.strip(), "bin")


def _masquerade(home: Home, ccache: Path) -> Path:
    """A folder in which the compilers' names are ccache's: build systems need not know of it."""
    folder = home.cache / "compilers"
    triplet = f"{platform.machine()}-linux-gnu"
    for name in [*_COMPILERS, f"{triplet}-gcc", f"{triplet}-g++"]:
        link = folder / name
        if shutil.which(name) and not (link.is_symlink() and link.readlink() == ccache):
            with appearing(link) as partial:
                partial.symlink_to(ccache)
    return folder
