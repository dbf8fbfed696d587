"""Sandboxes: where strangers' code runs. `choose_sandbox` is the door; both backends pass one conformance suite."""

from __future__ import annotations

from pathlib import Path

from data.errors import InputError, SandboxUnavailable
from harness.contracts import Sandbox
from harness.sandbox.bubblewrap import BubblewrapSandbox
from harness.sandbox.process import ProcessSandbox
from harness.sandbox.supervise import ending_together

__all__ = ["BubblewrapSandbox", "ProcessSandbox", "choose_sandbox", "ending_together"]


def choose_sandbox(name: str | None = None, private: tuple[Path, ...] = ()) -> Sandbox:
    """The sandbox of that name, or the strongest that works here: bubblewrap, else plain processes.

    `private`: folders it keeps, where it can, from all commands but those that may write there.

    Raises:
        InputError: no sandbox has that name.
        SandboxUnavailable: the one asked for by name does not work on this machine.
    """
    if name not in (None, BubblewrapSandbox.NAME, ProcessSandbox.NAME):
        raise InputError(f"no sandbox is called {name!r}; choose bubblewrap or process")
    if name == ProcessSandbox.NAME:
        return ProcessSandbox(why="it was asked for")
    try:
        sandbox = BubblewrapSandbox(private=private)
        sandbox.verify()
    except SandboxUnavailable as error:
        if name == BubblewrapSandbox.NAME:
            raise
        return ProcessSandbox(why=str(error))
    return sandbox
