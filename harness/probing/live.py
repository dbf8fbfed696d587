"""A sandboxed probe that stays loaded: asked call by call, stopped while others are on turn."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import secrets
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from perfquarry.data.errors import SandboxUnavailable
from perfquarry.harness.alternation.channel import Channel, ChannelFailed, make_pipes
from perfquarry.harness.alternation.turns import MOST_OF_TURN, Call
from perfquarry.harness.contracts import Command, Completed, PartnerFailed, ProbeReport, Sandbox
from perfquarry.harness.sandbox.priority import prefer_process
from perfquarry.harness.sandbox.tree import children, descendants

DEFAULT_LIMIT = 60.0
"""Seconds of one call where the request names none."""
SLACK_SECONDS = 30.0
"""How much longer than its limit a call may take to be given up inside."""
MESSAGE_CHARACTERS = 2048
"""End of a failure's text that is kept."""
CYCLES = 5
"""Looks for processes that were started while the others were stopped."""
_OURS = frozenset({"bwrap", "sh", "dash", "docker-init", "tini", "bash"})
"""Programs of sandboxes that stand above the probe; they only wait."""
_OUTCOMES = frozenset({"failed", "timeout", "crashed"})


class LiveProcess:
    """A process that has the workloads of one side loaded and calls them on request (`harness.alternation`).

    It is started when entered, and ended when left at the latest.

    Args:
        channel: paths of the pipes: for requests, for answers.
        call_seconds: limit of one call, as given to the probe; 0: none.
        report: what the process left, once it has ended.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        command: Command,
        channel: tuple[Path, Path],
        call_seconds: float,
        report: Callable[[Completed], ProbeReport],
    ) -> None:
        self._sandbox = sandbox
        self._paths = channel
        self._ending = threading.Event()
        self._command = dataclasses.replace(command, started=self._started, ending=self._ending)
        self._seconds = (call_seconds or DEFAULT_LIMIT) + SLACK_SECONDS
        self._read = report
        self._root = 0
        self._notified = threading.Event()
        self._spared: frozenset[int] = frozenset()
        self._stopped: list[int] = []
        self._done: Completed | None = None
        self._fault: BaseException | None = None
        self._reported: ProbeReport | None = None
        self.kinds: Mapping[str, str] = {}
        """What it has loaded: 'test' or 'script' by node."""

    def __enter__(self) -> LiveProcess:
        make_pipes(str(self._paths[0]), str(self._paths[1]))
        self._channel = Channel(str(self._paths[0]), str(self._paths[1]), lambda: self._thread.is_alive())
        self._thread = threading.Thread(target=self._run, name="live-probe", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if self._reported is None:
                self._finish()
        finally:
            self._channel.close()

    def ready(self) -> None:
        """Waits until its workloads are loaded. Several processes load at once: ask the first after all have started.

        Raises:
            PartnerFailed: it ended before, or took longer than its limit.
            SandboxUnavailable: the sandbox could not start.
        """
        answer = self._received(lambda: self._channel.receive(self._command.limits.wall_seconds))
        loaded = answer.get("ready")
        if not isinstance(loaded, dict):
            raise PartnerFailed("crashed", "it did not say what it has loaded", gone=True)
        self.kinds = {str(node): str(kind) for node, kind in loaded.items()}
        self._notified.wait(SLACK_SECONDS)  # an engine may say later than the probe what it has started
        if self._root:
            self._spared = frozenset(_above(self._root))
            self._prefer()

    @property
    def stoppable(self) -> bool:
        """Whether this machine sees its processes."""
        return self._root != 0

    def warm(self, node: str, calls: int) -> tuple[float, float, float]:
        """So many whole calls; seconds of the first, of the last, and of the last with its fixtures.

        Raises:
            PartnerFailed: a call did not pass, or no answer came.
        """
        answer, outside = self._ask("warm", node, calls)
        first, last, busy = (_seconds(answer, name, outside) for name in ("first", "seconds", "busy"))
        return first, last, busy

    def turn(self, node: str, untimed: int, drawn: Sequence[float]) -> list[Call]:
        """Calls that are not timed, then one for each phase: of these the seconds inside, a share of those outside.

        Raises:
            PartnerFailed: as `warm`.
        """
        answer, outside = self._ask("turn", node, untimed, list(drawn))
        samples = answer.get("samples")
        if not isinstance(samples, list) or len(samples) != len(drawn):
            raise PartnerFailed("crashed", "it does not report a time of each call")
        inside = [_seconds({"each": one}, "each", outside) for one in samples]
        if sum(inside) > outside:
            raise PartnerFailed("crashed", "it reports times that cannot be")
        share = outside / (untimed + len(drawn))
        return [(one, share, share) for one in inside]

    def stop(self) -> None:
        """Stops all of its processes; again for those that were started meanwhile."""
        if not self._root:
            return
        stopped: set[int] = set()
        for _ in range(CYCLES):
            left = {pid for pid in [self._root, *descendants(self._root)] if pid not in self._spared} - stopped
            if not left:
                break
            for pid in left:
                _signal(pid, signal.SIGSTOP)
            stopped |= left
        self._stopped = list(stopped)

    def go(self) -> None:
        """Lets them go on."""
        for pid in self._stopped:
            _signal(pid, signal.SIGCONT)
        self._stopped = []

    def end(self) -> ProbeReport:
        """Ends it, and reads what it left.

        Raises:
            SandboxUnavailable: the sandbox failed.
        """
        if self._reported is None:
            with contextlib.suppress(ChannelFailed):
                self.go()
                self._channel.send("end")
                self._thread.join(SLACK_SECONDS)
            self._finish()
        assert self._reported is not None
        return self._reported

    def _finish(self) -> None:
        self._ending.set()
        self.go()
        self._thread.join()
        if self._fault is not None:
            raise self._fault
        assert self._done is not None
        self._reported = self._read(self._done)

    def _run(self) -> None:
        try:
            self._done = self._sandbox.run(self._command)
        except BaseException as error:  # noqa: BLE001  # the thread that waits raises it
            self._fault = error

    def _started(self, pid: int) -> None:
        self._root = pid
        self._prefer()  # what it loads would else wait for the builds and searches beside it
        self._notified.set()

    def _prefer(self) -> None:
        for pid in [self._root, *descendants(self._root)] if self._root else ():
            prefer_process(pid)

    def _ask(self, *words: object) -> tuple[dict[str, Any], float]:
        outside, token = 0.0, secrets.token_hex(8)

        def asked() -> dict[str, Any]:
            nonlocal outside
            answer, outside = self._channel.ask(self._seconds * (1 + MOST_OF_TURN), *words, {"token": token})
            return dict(answer)

        answer = self._received(asked)
        if answer.get("token") != token:
            raise PartnerFailed("crashed", "an answer to another question", gone=True)
        if answer.get("outcome") != "passed":
            outcome = str(answer.get("outcome"))
            message = str(answer.get("message", ""))[-MESSAGE_CHARACTERS:].encode(errors="replace").decode()
            raise PartnerFailed(outcome if outcome in _OUTCOMES else "failed", message)
        return answer, outside

    def _received(self, receive: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        try:
            return receive()
        except ChannelFailed as error:
            self._ending.set()
            self._thread.join()
            if isinstance(self._fault, SandboxUnavailable):
                raise self._fault from error
            raise PartnerFailed("timeout" if error.late else "crashed", str(error), gone=True) from error


def _seconds(answer: Mapping[str, Any], name: str, outside: float) -> float:
    """A time that the process reports; nothing that is no positive number, or more than passed outside, is one."""
    value = answer.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= outside:
        raise PartnerFailed("crashed", "it reports a time that cannot be")
    return float(value)


def _above(root: int) -> list[int]:
    """The sandbox's own processes above the probe: what the probe's start such programs for is not spared."""
    if _name(root) not in _OURS:
        return []
    return [root, *(pid for child in children(root) for pid in _above(child))]


def _name(pid: int) -> str:
    """Name of its program's file, which it cannot choose; the name it gives itself where the file is not shown."""
    try:
        return Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        pass
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return ""


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
