"""Containers of a Docker engine: no network, a read-only image, only the command's own paths of the host."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import requests
from docker.types import LogConfig

from perfquarry.data.errors import SandboxUnavailable
from perfquarry.harness.alternation.waiting import WaitingLimit
from perfquarry.harness.contracts import Command, Completed, Exceeded
from perfquarry.harness.sandbox.attached import Attached, attached
from perfquarry.harness.sandbox.disk import DiskMeter
from perfquarry.harness.sandbox.engine import connected, kill, known_image, owner_labels, remove, sweep
from perfquarry.harness.sandbox.hidden import PRIVATE, within
from perfquarry.harness.sandbox.isolating import Isolating, limit_words, of_shell
from perfquarry.harness.sandbox.mounts import SandboxView
from perfquarry.harness.sandbox.report import ReportFolder
from perfquarry.harness.sandbox.seccomp import docker_profile
from perfquarry.harness.sandbox.supervise import DRAIN_SECONDS, TICK
from perfquarry.harness.sandbox.tree import descendants

# Runs inside, beside the command. It removes what image and engine put into the environment and
# sets limits. What the container's control group has counted it reports for every line we send, and
# at the end; when our end of standard input is closed (we crashed), it ends everything. The
# command gets none of its descriptors.
INSIDE = """
exec 3<>"$1" 4>&2 5<&0 </dev/null 2>/dev/null
unset $2
ulimit -c 0; ulimit -f "$3"; ulimit -v "$4"; shift 4
report() {
    for file in cpuacct/cpuacct.usage pids/pids.events memory/memory.oom_control cpu.stat pids.events memory.events; do
        [ -r "/sys/fs/cgroup/$file" ] || continue
        while read -r line; do echo "${file##*/} $line"; done <"/sys/fs/cgroup/$file"
    done >&3
}
(while read -r _; do report; done; kill -s KILL -- -1) <&5 >/dev/null 4>&- &
exec 5<&-
(exec "$@" 2>&4 3>&- 4>&-)
code=$?
report
exit $code
"""
REPORT = "/dev/perfquarry-report"
OURS = 3
"""Processes in a container that are not the command's: the engine's init, the shell, and its watch."""
LOOK = 0.25
"""Seconds between two questions to the shell inside: was a process refused, or one killed for its memory."""
PROVIDED = frozenset({"HOME", "HOSTNAME", "PATH", "TERM"})
"""Variables that engines set by themselves."""


def own_image() -> str:
    """Name of the base image made for this machine's own suite (`python -m perfquarry.harness.images.base`)."""
    with contextlib.suppress(OSError, ValueError):
        lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
        facts = dict(line.split("=", 1) for line in lines if "=" in line)
        if suite := facts.get("VERSION_CODENAME", "").strip('"'):
            return f"perfquarry/base:{suite}"
    return "perfquarry/base:bookworm"


@dataclass
class DockerSandbox(Isolating):
    """Runs every command in a container of its own, in an engine on this machine.

    An exit code of 128 + n, n a signal's number, is reported as that signal. A command that
    was refused a process or lost one for its memory has exceeded that limit, however it ended.
    """

    image: str = ""
    """A local image with a shell; empty: our own base image."""
    holds: tuple[Path, ...] = ()
    """Paths that are in the image: they are not mounted from the host."""
    cpus: float | None = None
    """Share of processors, None for all: a quota stops and starts what it holds back, which shows in timings."""
    name = "docker"

    def run(self, command: Command) -> Completed:
        """Runs it; its container is gone, and every process in it dead, when this returns.

        Raises:
            SandboxUnavailable: no engine, no such image, or the engine could not start the container.
        """
        for folder in (command.cwd, *command.writable):
            if not folder.exists() and not within(folder, self.holds):
                raise SandboxUnavailable(f"a folder to run in or to write to does not exist: {folder}")
        container = f"perfquarry-{uuid.uuid4().hex}"
        with connected(f"run a command in {self.image or own_image()}") as api, ReportFolder() as own:
            _ = self._swept
            try:
                self._create(api, container, command, own)
                with attached(api, container, command.limits.output_bytes) as output:
                    return _supervise(api, container, output, command, own)
            finally:
                remove(api, container)

    @functools.cached_property
    def _swept(self) -> list[str]:
        """Containers of crashed owners, removed once."""
        with connected("remove containers of crashed runs") as api:
            return sweep(api)

    @functools.cached_property
    def _config(self) -> dict[str, Any]:
        """What the image asks of an engine."""
        config: dict[str, Any] = known_image(self.image or own_image())["Config"]
        return config

    @property
    def _variables(self) -> frozenset[str]:
        """Environment variables that image and engine set."""
        return PROVIDED | {str(line).partition("=")[0] for line in self._config.get("Env") or ()}

    @functools.cached_property
    def _rootless(self) -> bool:
        """Whether root inside a container is an ordinary user outside: the engine's."""
        with connected("ask the engine what it is") as api:
            return any("rootless" in option for option in api.info().get("SecurityOptions") or ())

    def _create(self, api: docker.APIClient, container: str, command: Command, folder: ReportFolder) -> None:
        limits, view = command.limits, SandboxView.of(command, self.holds)
        uid, gid = (0, 0) if self._rootless else view.user()
        private = f"rw,exec,nosuid,nodev,mode=1777,size={limits.file_bytes}"
        # without that, an image's volume is a folder on the engine's disk, without any limit
        volumes = [path for path in self._config.get("Volumes") or () if not within(Path(path), view.shown)]
        report = docker.types.Mount(REPORT, str(folder.report), type="bind")
        settings = api.create_host_config(
            mounts=[*view.mounts(folder.closed), report],
            tmpfs={**dict.fromkeys([*volumes, *map(str, PRIVATE)], private), **view.empty_folders(self.holds)},
            shm_size=limits.file_bytes,
            network_mode="none",
            ipc_mode="private",
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges", f"seccomp={docker_profile()}"],
            init=True,
            pids_limit=limits.processes + OURS,
            mem_limit=limits.memory_bytes,
            memswap_limit=limits.memory_bytes,
            cpuset_cpus=None if command.core is None else str(command.core),
            nano_cpus=None if self.cpus is None else int(self.cpus * 1e9),
            log_config=LogConfig(type=LogConfig.types.NONE),
        )
        unset = " ".join(sorted(name for name in self._variables - set(command.env) if name.isidentifier()))
        api.create_container(
            self.image or own_image(),
            entrypoint=["/bin/sh", "-c", INSIDE, "sh", REPORT, unset, *limit_words(limits)],
            command=list(command.argv),
            name=container,
            hostname="sandbox",
            user=f"{uid}:{gid}",
            working_dir=str(command.cwd),
            environment=dict(command.env),
            stdin_open=True,
            labels=owner_labels(),
            host_config=settings,
            use_config_proxy=False,  # a proxy of the user's settings may hold a password
        )


def _supervise(
    api: docker.APIClient, container: str, output: Attached, command: Command, folder: ReportFolder
) -> Completed:
    """Starts the container and reads its output until it has ended or exceeded a limit."""
    begin = time.monotonic()
    disk = DiskMeter(command.writable, command.limits.disk_bytes)
    api.start(container)
    limit = WaitingLimit(command.limits.wall_seconds, time.monotonic())
    if command.started:
        command.started(_own_process(api, container))
    exceeded = _watch(api, container, output, limit, folder, disk, command.ending)
    wall = time.monotonic() - begin
    if exceeded:
        kill(api, container)
        until = time.monotonic() + DRAIN_SECONDS
        while time.monotonic() < until and output.read(until - time.monotonic()):
            pass
    status = int(api.wait(container)["StatusCode"])
    exceeded = exceeded or folder.figures().exceeded
    if not exceeded and api.inspect_container(container)["State"]["OOMKilled"]:
        exceeded = "memory"
    ended = Completed(status, None, output.stdout, output.stderr, output.truncated, wall, 0.0, exceeded)
    return of_shell(ended, folder.figures().cpu_seconds)


def _watch(
    api: docker.APIClient,
    container: str,
    output: Attached,
    limit: WaitingLimit,
    folder: ReportFolder,
    disk: DiskMeter,
    ending: threading.Event | None,
) -> Exceeded:
    """Reads until the container has ended, which closes its output, or a limit is exceeded."""
    next_look = next_tick = time.monotonic()
    own = functools.cache(lambda: _own_process(api, container))
    while True:
        now = time.monotonic()
        if ending is not None and ending.is_set():
            return "asked"
        if now >= next_look:
            if found := folder.figures().exceeded:
                return found
            output.ask()
            next_look = now + LOOK
        if now >= next_tick:
            if limit.is_over(now, lambda: _with_descendants(own())):
                return "time"
            # their ids in the engine's own namespace, which is ours on the machines this runs on
            if disk.exceeded(lambda: _with_descendants(int(api.inspect_container(container)["State"]["Pid"]))):
                return "disk"
            next_tick = limit.next_look(now, TICK)
        if not output.read(min(next_look, next_tick) - now):
            return _ended(api, container, limit, lambda: _with_descendants(own()))


def _own_process(api: docker.APIClient, container: str) -> int:
    """Its first process, if its id names the same process here; else 0: figures of another one would mislead."""
    facts = api.inspect_container(container)
    first = int(facts["State"]["Pid"])
    with contextlib.suppress(OSError):
        return first if str(facts["Id"]) in Path(f"/proc/{first}/cgroup").read_text(encoding="utf-8") else 0
    return 0


def _with_descendants(first: int) -> list[int]:
    return [first, *descendants(first)] if first else []


def _ended(
    api: docker.APIClient, container: str, limit: WaitingLimit, processes: Callable[[], Sequence[int]]
) -> Exceeded:
    """Waits for the end of a container whose output has been closed."""
    while True:
        asked = time.monotonic()
        try:
            api.wait(container, timeout=max(1.0, limit.end - asked))
        except (requests.exceptions.ReadTimeout, requests.exceptions.ConnectionError):
            now = time.monotonic()
            if limit.is_over(now, processes) or now < asked + 1.0:  # an engine that does not answer at all
                return "time"
        else:
            return ""
