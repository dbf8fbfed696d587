"""Python code in a sandbox, and the processes that it leaves."""

from __future__ import annotations

import functools
import sys
import textwrap
import time
from pathlib import Path

import psutil

from perfquarry.data.errors import SandboxUnavailable
from perfquarry.harness.contracts import Command, Completed, Sandbox
from perfquarry.harness.sandbox import choose_sandbox

PREFIXES = (Path(sys.prefix), Path(sys.base_prefix))


@functools.cache
def backend(name: str) -> Sandbox | str:
    """The sandbox, or why it does not work here."""
    try:
        return choose_sandbox(name)
    except SandboxUnavailable as error:
        return f"{name} does not work here: {error}"


def python(sandbox: Sandbox, code: str, folder: Path, *arguments: str, **options: object) -> Completed:
    """Runs Python code in the sandbox, in a folder it may write to unless the caller says otherwise."""
    settings: dict[str, object] = {"writable": (folder,), "readable": PREFIXES, "cwd": folder, **options}
    return sandbox.run(Command((sys.executable, "-c", textwrap.dedent(code), *arguments), **settings))  # type: ignore[arg-type]


def alive(mark: str) -> list[int]:
    """Processes of this machine that have the mark among their arguments."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline", "status"]):
        if mark in (process.info["cmdline"] or []) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.info["pid"])
    return found


def gone(mark: str, seconds: float = 20.0) -> bool:
    until = time.monotonic() + seconds
    while alive(mark) and time.monotonic() < until:
        time.sleep(0.05)
    return not alive(mark)
