"""uv as a process: runs it, and tells the commit's faults from the machine's."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random_exponential
from uv import find_uv_bin

from data.errors import EnvironmentFailed, SandboxUnavailable
from harness.contracts import Command, Limits
from harness.indexes import NO_INDEX, installer_environment
from harness.interrupts import interrupts_held
from harness.rejections import tail
from harness.sandbox.bubblewrap import BubblewrapSandbox

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
def run_uv(arguments: Sequence[str], *, timeout: float) -> Installed:
    """Runs uv to its end; faults of network, index or disk are tried three times.

    Where it may run strangers' code (a source distribution's build, start-up files of what is installed), it runs
    without a view of our processes and of keys, if bubblewrap works here. That code still has the network, this user's
    files, and the passwords of package indexes, which uv needs.

    Args:
        arguments: what follows `uv` on the command line.
        timeout: wall seconds; then uv and what it started are killed.

    Raises:
        EnvironmentFailed: uv failed for a reason that is not the requirements'.
    """
    environment = {**installer_environment(), "NO_COLOR": "1", "UV_NO_PROGRESS": "1", "UV_PYTHON_DOWNLOADS": "never"}
    if environment.pop(NO_INDEX, "") and arguments[:2] == ["pip", "install"]:
        arguments = [*arguments[:2], "--no-index", *arguments[2:]]
    command = " ".join(["uv", *arguments])
    try:
        run = _run_caged if _runs_code(arguments) else _run
        exit_code, output = run([find_uv_bin(), *arguments], environment, timeout)
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


def compile_folder(python: Path, folder: Path, *, timeout: float) -> None:
    """Compiles the bytecode below a folder; what does not parse, as files for another Python, is passed over.

    uv's own `--compile-bytecode` fails with Python 3.6. Without `-S`, what is installed could have its own
    code run (.pth files).
    """
    _run([str(python), "-I", "-S", "-m", "compileall", "-q", "-j", "0", str(folder)], installer_environment(), timeout)


def _is_our_fault(exit_code: int, output: str) -> bool:
    if exit_code < 0 or exit_code > 2:  # killed, or a panic of uv
        return True
    return _OUR_FAULT.search(_BUILD_OUTPUT.sub("", output)) is not None


def _runs_code(arguments: Sequence[str]) -> bool:
    """Whether uv may start code of what it installs: it builds, or asks an interpreter with packages."""
    return arguments[:2] == ["pip", "list"] or (arguments[:2] == ["pip", "install"] and ":all:" not in arguments)


def _run_caged(argv: Sequence[str], env: Mapping[str, str], timeout: float) -> tuple[int | None, str]:
    """As `_run`; what exceeds another limit than time has failed with code 1."""
    cage = _cage()
    if cage is None:
        return _run(argv, env, timeout)
    limits = Limits(timeout, psutil.virtual_memory().total, processes=4096, file_bytes=2**36, output_bytes=2**23)
    done = cage.run(Command(tuple(argv), Path("/"), env, readable=tuple(_needed(argv, env)), limits=limits))
    output = (done.stdout + done.stderr).decode("utf-8", "replace")
    if done.exceeded and not done.timed_out:
        return 1, f"{output}\n(killed, limit: {done.exceeded})"
    return None if done.timed_out else -done.signal if done.signal else done.exit_code, output


@functools.cache
def _cage() -> BubblewrapSandbox | None:
    sandbox = BubblewrapSandbox(for_installers=True)
    try:
        sandbox.verify()
    except SandboxUnavailable:
        return None
    return sandbox


def _needed(argv: Sequence[str], env: Mapping[str, str]) -> Iterator[Path]:
    """What uv needs of what sandboxes hide: environments, cache, settings, distributions, the resolver's file."""
    for path in (Path(word) for word in argv[1:] if word.startswith("/")):
        yield path if path.is_dir() else path.parent.parent
    home = env.get("HOME", "/")
    yield Path(env.get("UV_CACHE_DIR") or Path(env.get("XDG_CACHE_HOME") or f"{home}/.cache") / "uv").resolve()
    yield Path(env.get("XDG_CONFIG_HOME") or f"{home}/.config") / "uv"
    yield from (Path("/etc/uv"), Path("/etc/resolv.conf").resolve())
    yield from (Path(env[name]) for name in ("UV_CONFIG_FILE", "SSL_CERT_FILE", "SSL_CERT_DIR") if name in env)
    yield from (Path(place) for place in env.get("UV_FIND_LINKS", "").split(",") if place.startswith("/"))


def _run(argv: Sequence[str], env: Mapping[str, str], timeout: float) -> tuple[int | None, str]:
    """Exit code (None: timed out) and both streams; the whole process group dies at the limit.

    The working directory is the root folder: uv would else read the settings of a project around it.
    """
    process: subprocess.Popen[bytes] | None = None
    try:
        with interrupts_held():
            process = subprocess.Popen(
                argv,
                env=dict(env),
                cwd="/",
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
