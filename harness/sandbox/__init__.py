"""Sandboxes: where strangers' code runs. `choose_sandbox` is the door; all backends pass one conformance suite."""

from __future__ import annotations

from collections.abc import Callable

from data.errors import InputError, SandboxUnavailable
from harness.contracts import Sandbox
from harness.sandbox.bubblewrap import BubblewrapSandbox
from harness.sandbox.process import ProcessSandbox

__all__ = ["BubblewrapSandbox", "ProcessSandbox", "choose_sandbox"]


def choose_sandbox(name: str | None = None, image: str = "") -> Sandbox:
    """The sandbox of that name, or the strongest that works here: bubblewrap, else docker, else plain processes.

    Args:
        name: 'bubblewrap', 'docker' or 'process'; None chooses.
        image: local image for containers; empty: our own base image.

    Raises:
        InputError: no sandbox has that name.
        SandboxUnavailable: the one asked for by name does not work on this machine.
    """
    isolating: dict[str, Callable[[str], Sandbox]] = {BubblewrapSandbox.NAME: _bubblewrap, "docker": _docker}
    if name == ProcessSandbox.NAME:
        return ProcessSandbox(why="it was asked for")
    if name is not None:
        if name not in isolating:
            raise InputError(f"no sandbox is called {name!r}; choose {', '.join(isolating)} or {ProcessSandbox.NAME}")
        return isolating[name](image)
    faults = []
    for open_sandbox in isolating.values():
        try:
            return open_sandbox(image)
        except SandboxUnavailable as error:
            faults.append(str(error))
    return ProcessSandbox(why="; ".join(faults))


def _bubblewrap(image: str) -> Sandbox:
    sandbox = BubblewrapSandbox()
    sandbox.verify()
    return sandbox


def _docker(image: str) -> Sandbox:
    from harness.sandbox.docker import DockerSandbox  # the SDK takes a quarter of a second to import

    sandbox = DockerSandbox(image)
    sandbox.verify()
    return sandbox
