"""What runs programs of repositories in a home: the sandbox, the probe in it, and what this machine is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from perfquarry.data.home import Home
from perfquarry.data.records import Machine
from perfquarry.harness.contracts import Sandbox
from perfquarry.harness.measuring.machine import machine_facts
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.sandbox import choose_sandbox
from perfquarry.harness.settings import SandboxSettings


@dataclass(frozen=True)
class Runtime:
    """Each part is opened when it is first used, and once."""

    home: Home
    settings: SandboxSettings

    @cached_property
    def sandbox(self) -> Sandbox:
        """The one the settings name, else the best of this machine.

        Raises:
            SandboxUnavailable: the one that is named cannot work here.
        """
        return choose_sandbox(self.settings.name, self.settings.image, private=(self.home.compiled,))

    @cached_property
    def prober(self) -> Prober:
        """Runs the probe in the sandbox."""
        return Prober(self.sandbox, self.home.scratch)

    @cached_property
    def machine(self) -> Machine:
        """Facts of this machine."""
        return machine_facts(self.sandbox.name)
