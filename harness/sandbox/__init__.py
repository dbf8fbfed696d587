"""Sandboxes: where strangers' code runs. `choose_sandbox` is the door; all backends pass one conformance suite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from perfquarry.data.errors import InputError, SandboxUnavailable
from perfquarry.harness.contracts import Sandbox
from perfquarry.harness.sandbox.bubblewrap import BubblewrapSandbox
from perfquarry.harness.sandbox.process import ProcessSandbox
from perfquarry.harness.sandbox.supervise import ending_together

__all__ = ["BubblewrapSandbox", "ProcessSandbox", "choose_sandbox", "ending_together"]


def choose_sandbox(name: str | None = None, image: str = "", private: tuple[Path, ...] = ()) -> Sandbox:
    """The sandbox of that name, or the strongest that works here: bubblewrap, else docker, else plain processes.

    Args:
        name: 'bubblewrap', 'docker' or 'process'; None chooses.
        image: local image for containers; empty: our own base image.
        private: folders it keeps, where it can, from all commands but those that may write there.

    Raises:
        InputError: no sandbox has that name.
        SandboxUnavailable: the one asked for by name does not work on this machine.
    """
    isolating: dict[str, Callable[[], Sandbox]] = {
        BubblewrapSandbox.name: lambda: BubblewrapSandbox(private=private).verify(),
        "docker": lambda: _docker(image),
    }
    if name == ProcessSandbox.name:
        return ProcessSandbox(why="it was asked for")
    if name is not None:
        if name not in isolating:
            raise InputError(f"no sandbox is called {name!r}; choose {', '.join(isolating)} or {ProcessSandbox.name}")
        return isolating[name]()
    faults = []
    for open_sandbox in isolating.values():
        try:
            return open_sandbox()
        except SandboxUnavailable as error:
            faults.append(str(error))
    return ProcessSandbox(why="; ".join(faults))


def _docker(image: str) -> Sandbox:
    from perfquarry.harness.sandbox.docker import DockerSandbox  # the SDK takes a quarter of a second to import

    return DockerSandbox(image).verify()
