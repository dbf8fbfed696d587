"""What a hostile program must leave as it was, and what it must not reach."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from perfquarry.data.files import remove
from perfquarry.harness.sandbox.hidden import PRIVATE
from perfquarry.harness.sandbox.mounts import within

PLACES = (
    "/",
    "/etc",
    "/root",
    "/home",
    "/tmp",
    "/var/tmp",
    "/var/lib",
    "/dev",
    "/dev/shm",
    "/run",
    "/run/lock",
    "/usr/lib",
)
KEYS = (".ssh/id_ed25519", ".aws/credentials", ".netrc", ".config/gh/hosts.yml", ".cache/huggingface/token")
"""Files of the home; our own tools (uv, rustup) keep others there."""
MEBI = 1024**2
ROOT = Path(__file__).parents[3]

FORGERY = """
import json, os

RESULT = os.path.join(os.environ["HOME"], "result.jsonl")
NODE = "test_hostile.py::test_it"
PASSED = {"item": {"node": NODE, "outcome": "passed", "seconds": 1e-5, "samples": [1e-5, 1e-5], "calls": 2}}
END = {"end": {"status": 0, "python": "3.11.0"}}

def put(*entries):
    with open(RESULT, "a") as file:
        for entry in entries:
            file.write((entry if isinstance(entry, str) else json.dumps(entry)) + "\\n")
"""
"""What programs use that write the result of their own run."""


@contextlib.contextmanager
def visible_folder() -> Iterator[Path]:
    """A folder that is not in /tmp, which sandboxes hide as a whole, wherever this checkout lies."""
    hidden = within(ROOT, PRIVATE)  # so are folders of a home whose names begin with a dot
    place, prefix = (Path.home(), "pq-hostile-") if hidden else (ROOT, ".hostile-")
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
    try:
        yield folder
    finally:
        remove(folder)


@dataclass
class Host:
    """This machine as programs may try to change it, with bait: keys, a folder to write to, services to talk to."""

    folder: Path
    mark: str = field(default_factory=lambda: f"pq-hostile-{secrets.token_hex(4)}")
    prefix: str = field(default_factory=lambda: f"pq-canary-{secrets.token_hex(4)}")
    """What every key begins with."""
    heard: list[str] = field(default_factory=list)
    """What was said to the services."""
    segment: int = 2**24 + 4096 * secrets.randbelow(1024)
    """Size of the System V segments that programs make, in bytes: they bear no name."""
    port: int = 0

    @property
    def range(self) -> Path:
        """Where the stages work."""
        return self.folder / "range"

    @property
    def temporary(self) -> Path:
        """Where this process makes its temporary files."""
        return self.folder / "temporary"

    @property
    def victim(self) -> Path:
        """A folder that this user could write to."""
        return self.folder / "victim"

    @property
    def home(self) -> Path:
        """A home folder with keys."""
        return self.folder / "home"

    @property
    def targets(self) -> str:
        """The module from which programs learn what to go for."""
        facts = {
            "MARK": self.mark,
            "PREFIX": self.prefix,
            "VICTIM": str(self.victim),
            "HOMES": [str(self.home), str(Path.home())],
            "PORT": self.port,
            "SOCKET": str(self.folder / "s"),
            "ABSTRACT": self.mark,
            "SEGMENT": self.segment,
        }
        return "".join(f"{name} = {value!r}\n" for name, value in facts.items()) + FORGERY

    @contextlib.contextmanager
    def baited(self) -> Iterator[Host]:
        """Lays the bait."""
        self.victim.mkdir(parents=True)
        self.temporary.mkdir()
        (self.victim / "file").write_text("intact")
        (self.victim / "result.jsonl").write_text('{"end": {"status": 0, "python": "3"}}\n')
        for name in KEYS:
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text(f"{self.prefix}-{name}")
        before = {name: os.environ.get(name) for name in ("HOME", "OPENAI_API_KEY")}
        os.environ |= {"HOME": str(self.home), "OPENAI_API_KEY": f"{self.prefix}-openai"}
        place, tempfile.tempdir = tempfile.tempdir, str(self.temporary)
        try:
            with self._services():
                yield self
        finally:
            tempfile.tempdir = place
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    @contextlib.contextmanager
    def _services(self) -> Iterator[None]:
        tcp = socket.create_server(("127.0.0.1", 0))
        self.port = tcp.getsockname()[1]
        udp = socket.socket(type=socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", self.port))
        paths = [socket.socket(socket.AF_UNIX) for _ in range(2)]
        paths[0].bind(str(self.folder / "s"))
        paths[1].bind("\0" + self.mark)
        for one in paths:
            one.listen()
        everything = [tcp, udp, *paths]
        threads = [threading.Thread(target=self._listen, args=(one,), daemon=True) for one in everything]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            for one in everything:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()

    def _listen(self, service: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                if service.type == socket.SOCK_DGRAM:
                    self.heard.append(str(service.recvfrom(100)))
                else:
                    service.accept()[0].close()
                    self.heard.append(str(service.getsockname()))

    def facts(self) -> dict[str, object]:
        """What must be the same before and after, of what programs can change; what others do here does not count."""
        return {
            "files": {str(path): _content(path) for path in (*self.victim.rglob("*"), *map(self.home.joinpath, KEYS))},
            "strangers' files": [str(p) for place in (*PLACES, self.home) for p in Path(place).glob(f"*{self.mark}*")],
            "mounts": _mounts(self.folder),
            "segments": self._segments(),
            "abstract sockets": Path("/proc/net/unix").read_text().count(self.mark),
            "core": os.sched_getaffinity(0),
            "priority": os.getpriority(os.PRIO_PROCESS, 0),
            "control groups": [str(one) for one in Path("/sys/fs/cgroup").glob(f"*/perfquarry-{os.getpid()}-*")],
            "processes": self.processes(),
            "our descriptors": psutil.Process().num_fds(),
            "temporary files": sorted(map(str, self.temporary.iterdir())),
            "heard": list(self.heard),
        }

    def processes(self) -> list[str]:
        """Living processes that a program can have left: our children, and all that have to do with `range`.

        A process cannot leave the mount namespace of its sandbox, in which parts of `range` are mounted.
        """
        mine = {child.pid for child in psutil.Process().children(recursive=True)}
        found = []
        for process in psutil.process_iter(["pid", "cmdline", "cwd", "status"]):
            words = " ".join([*(process.info["cmdline"] or []), process.info["cwd"] or "", _secrets_of(process.pid)])
            ours = process.pid in mine or str(self.range) in words or self.mark in words
            if ours and process.pid != os.getpid() and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {' '.join(process.info['cmdline'] or [])[:300]}")
        return found

    def _segments(self) -> int:
        """System V segments of the size that programs of this run make."""
        try:
            lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
        except OSError:  # this kernel has none
            return 0
        return sum(int(line.split()[3]) == self.segment for line in lines)


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _secrets_of(pid: int) -> str:
    """Environment and mounts of a process, where they can be read."""
    found = ""
    for name in ("environ", "mountinfo"):
        with contextlib.suppress(OSError):
            found += Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    return found


def _mounts(folder: Path) -> list[tuple[str, str]]:
    """Mounts that programs try to make, change and end, with their options."""
    lines = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [(one[4], one[5]) for one in lines if one[4] in ("/", "/proc") or one[4].startswith(str(folder))]
