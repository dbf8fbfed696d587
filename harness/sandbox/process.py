"""Plain processes with limits, for machines without bubblewrap (macOS, containers without user namespaces)."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import tempfile
import time
import uuid
from dataclasses import dataclass, replace

import psutil

from perfquarry.data.errors import SandboxUnavailable
from perfquarry.harness.contracts import Command, Completed, Isolation
from perfquarry.harness.sandbox.isolating import limit_words
from perfquarry.harness.sandbox.supervise import supervise
from perfquarry.harness.sandbox.tree import descendants, marked

LIMITED = """
exec 3<&0 </dev/null
( (read -r word <&3; kill -s KILL -- "-$$") >/dev/null 2>&1 & )
ulimit -c 0 2>/dev/null; ulimit -f "$1" 2>/dev/null; ulimit -v "$2" 2>/dev/null
shift 2; exec "$@" 3<&-
"""
"""The watch kills the process group when the other end of standard input is closed: when we are dead."""
MARK = "PERFQUARRY_SANDBOX"
ROUNDS = 50
"""Times the descendants are looked for again until none is left."""

_log = logging.getLogger("perfquarry.sandbox")
_warned = False


@dataclass
class ProcessSandbox:
    """Bounds time, memory, processes and output, and cleans up; it does NOT keep hostile code from the host.

    Descendants are found as members of the session, as children, and by a mark in their
    environment. A program that tries can escape all three.
    """

    why: str = ""
    """Why nothing stronger is used; shown in the warning."""
    name = "process"
    isolation = Isolation(network=False, files=False, processes=False, crash=False)
    """None: hostile code must not run here."""

    def __post_init__(self) -> None:
        global _warned
        if not _warned:
            _warned = True
            _log.warning(
                "NOT ISOLATED: the code under test runs as plain processes (%s). It can use the network, read and "
                "write every file of this user, keys among them, and see other processes. Use it only for "
                "repositories you trust%s.",
                self.why or "no sandbox works here",
                "" if self.why else ", or install bubblewrap",  # else the reason says what to do
            )

    def run(self, command: Command) -> Completed:
        """Runs it; `writable` and `readable` cannot be enforced, a private TMPDIR is given unless `env` names one.

        Raises:
            SandboxUnavailable: no process could be started in that folder.
        """
        if not command.cwd.is_dir():
            raise SandboxUnavailable(f"the folder to run in does not exist: {command.cwd}")
        mark, known = uuid.uuid4().hex, set(psutil.pids())
        private = tempfile.mkdtemp(prefix="pq-")
        lifeline, ours = os.pipe()
        try:
            shell = ("/bin/sh", "-c", LIMITED, "sh", *limit_words(command.limits), *command.argv)
            return supervise(
                replace(command, argv=shell, env={"TMPDIR": private, **command.env, MARK: mark}),
                stdin=lifeline,
                kill=lambda pid: _kill_all(pid, f"{MARK}={mark}", known),
            )
        finally:
            os.close(lifeline)
            os.close(ours)
            shutil.rmtree(private, ignore_errors=True)


def _kill_all(pid: int, marker: str, known: set[int]) -> None:
    """Kills a process, its session and its descendants, until a look finds none of them."""
    children = descendants(pid)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    for _ in range(ROUNDS):
        left = {*children, *marked(marker, known | {pid})}
        if not left:
            return
        for one in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
        children = [child for one in left for child in descendants(one)]
        time.sleep(0.002)
