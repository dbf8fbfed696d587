"""uv as a process: runs it, and distinguishes the commit's faults from the machine's."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random_exponential
from uv import find_uv_bin

from perfquarry.data.errors import EnvironmentFailed
from perfquarry.harness.environments.indexes import NO_INDEX, installer_environment
from perfquarry.harness.interrupts import interrupts_held
from perfquarry.harness.rejections import tail

# What uv prints when the network, an index, the disk or uv itself is at fault.
_OUR_FAULT = re.compile(
    "|".join(
        (
            r"error sending request|Failed to fetch|Failed to download distribution|Request failed after|dns error",
            r"HTTP status (?:client|server) error|[Cc]onnection (?:refused|reset|closed|error)|tcp connect error",
            r"operation timed out|network was disabled|invalid peer certificate|error decoding response body",
            r"No space left on device|os error (?:13|23|24|28|30|122)\b|Read-only file system|Permission denied",
            r"Failed to read `--find-links`|Failed to initialize cache|Failed to spawn|Could not acquire lock",
        )
    )
)
# uv quotes what a source distribution's build printed; what that says of networks is no fault of ours
_BUILD_OUTPUT = re.compile(r"^ *\[std(?:out|err)\]\n(?:(?: {2,}.*)?\n)*", re.MULTILINE)
# a stranger's pyproject.toml may name folders and git repositories as sources
_SETTINGS = {
    "NO_COLOR": "1", "UV_NO_PROGRESS": "1", "UV_NO_SOURCES": "1", "UV_PYTHON_DOWNLOADS": "never",
    "PATH": "/nonexistent",
}  # fmt: skip


@dataclass(frozen=True)
class Installed:
    """How one call of uv ended."""

    ok: bool
    timed_out: bool
    output: str
    command: str
    """As a person would type it, without index addresses."""


@retry(
    retry=retry_if_exception_type(EnvironmentFailed),
    stop=stop_after_attempt(3),
    wait=wait_random_exponential(multiplier=1, max=20),
    reraise=True,
)
def run_uv(arguments: Sequence[str], *, timeout: float, settings: str = "") -> Installed:
    """Runs uv to its end; faults of network, index or disk are tried three times.

    It starts an interpreter, which for what has builds has to be a stand-in
    (`harness.environments.stand_in`), and nothing else: it finds no git.

    Args:
        timeout: wall seconds; then uv and what it started are killed.
        settings: a `uv.toml` of this call, beside the user's and the system's. It lies where nothing that is installed
            can put another one.

    Raises:
        EnvironmentFailed: uv failed for a reason that is not the requirements'.
    """
    environment = {**installer_environment(), **_SETTINGS, "UV_CACHE_DIR": str(cache_folder())}
    if environment.pop(NO_INDEX, "") and arguments[:2] == ["pip", "install"]:
        arguments = [*arguments[:2], "--no-index", *arguments[2:]]
    command = " ".join(["uv", *arguments])
    try:
        with tempfile.TemporaryDirectory() if settings else contextlib.nullcontext("/") as folder:
            if settings:
                Path(folder, "uv.toml").write_text(settings, encoding="utf-8")
            exit_code, output = _run([find_uv_bin(), *arguments], environment, timeout, Path(folder))
    except OSError as error:
        raise EnvironmentFailed(f"could not run `{command}`: {error}; check that uv is installed") from error
    if exit_code is None:
        return Installed(False, True, output, command)
    if exit_code and _is_our_fault(exit_code, output):
        raise EnvironmentFailed(
            f"`{command}` failed for a reason that is not the requirements': check the network, the package "
            f"index and the disk, then run again\n{tail(output, 4096)}"
        )
    return Installed(exit_code == 0, False, output, command)


def cache_folder() -> Path:
    """Uv's cache."""
    given = installer_environment()
    home = given.get("HOME", "/")
    return Path(given.get("UV_CACHE_DIR") or Path(given.get("XDG_CACHE_HOME") or f"{home}/.cache") / "uv").resolve()


def compile_folder(python: Path, folder: Path, *, timeout: float) -> None:
    """Compiles the bytecode below a folder; what does not parse, as files for another Python, is passed over.

    uv's own `--compile-bytecode` fails with Python 3.6. Without `-S`, what is installed could have its own
    code run (.pth files).
    """
    argv = [str(python), "-I", "-S", "-m", "compileall", "-q", "-j", "0", str(folder)]
    _run(argv, installer_environment(), timeout, Path("/"))


def _is_our_fault(exit_code: int, output: str) -> bool:
    if exit_code < 0 or exit_code > 2:  # killed, or a panic of uv
        return True
    return _OUR_FAULT.search(_BUILD_OUTPUT.sub("", output)) is not None


def _run(argv: Sequence[str], env: Mapping[str, str], timeout: float, folder: Path) -> tuple[int | None, str]:
    """Exit code (None: timed out) and both streams; the whole process group dies at the limit.

    The working directory is the root folder, or has settings: uv would else read those of a project around it.
    """
    process: subprocess.Popen[bytes] | None = None
    try:
        with interrupts_held():
            process = subprocess.Popen(
                argv,
                env=dict(env),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        output, _ = process.communicate(timeout=timeout)
        exit_code: int | None = process.returncode
    except BaseException as error:
        if process is None:
            raise
        _kill(process.pid)
        if not isinstance(error, subprocess.TimeoutExpired):
            process.wait()
            raise
        output, _ = process.communicate()
        exit_code = None
    return exit_code, output.decode("utf-8", "replace")


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
