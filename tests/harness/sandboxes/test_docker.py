"""Containers: what each is started with, whose are removed, and what the engine and we keep of a flood of output."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perfquarry.data.errors import SandboxUnavailable
from perfquarry.harness.contracts import BuiltSide, Command, Completed, Limits, ProbeRequest
from perfquarry.harness.probing.prober import Prober
from perfquarry.harness.sandbox import choose_sandbox
from perfquarry.harness.sandbox.docker import DockerSandbox, own_image
from perfquarry.harness.sandbox.engine import HOST, PID, STARTED, connected, owner_labels
from perfquarry.harness.sandbox.seccomp import docker_profile

MEBI = 1024**2
PREFIXES = (Path(sys.prefix), Path(sys.base_prefix))
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")


@pytest.fixture(scope="module")
def docker() -> DockerSandbox:
    sandbox = DockerSandbox()
    try:
        sandbox.verify()
    except SandboxUnavailable as error:
        pytest.skip(f"docker does not work here: {error}")
    return sandbox


@pytest.fixture
def engine(docker: DockerSandbox) -> Iterator[Any]:
    with connected("look after the tests") as api:
        yield api


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def shell(docker: DockerSandbox, script: str, folder: Path, **options: Any) -> Completed:
    return docker.run(Command(("/bin/sh", "-c", script), cwd=folder, **options))


def containers(engine: Any, owner: int | None = None) -> list[str]:
    """Ids of the containers of a process, this one by default."""
    label = f"{PID}={owner or os.getpid()}"
    return [one["Id"] for one in engine.containers(all=True, filters={"label": [label]})]


def while_running(docker: DockerSandbox, folder: Path, engine: Any, look: Callable[[dict[str, Any]], Any]) -> Any:
    """What `look` says of the facts of a running container."""
    ended: list[Completed] = []
    script = "touch started; until [ -e stop ]; do sleep 0.05; done"
    run = threading.Thread(target=lambda: ended.append(shell(docker, script, folder, writable=(folder,), core=0)))
    run.start()
    try:
        until = time.monotonic() + 60
        while not (folder / "started").exists() and run.is_alive() and time.monotonic() < until:
            time.sleep(0.02)
        (container,) = containers(engine)
        return look(engine.inspect_container(container))
    finally:
        (folder / "stop").touch()
        run.join()
        assert ended and ended[0].ok


def test_a_container_is_started_with_every_limit(docker: DockerSandbox, folder: Path, engine: Any) -> None:
    facts = while_running(DockerSandbox(cpus=0.5), folder, engine, lambda facts: facts)
    host, config = facts["HostConfig"], facts["Config"]
    limits = Limits()
    assert host["NetworkMode"] == "none" and host["ReadonlyRootfs"] and host["Init"]
    assert host["CapDrop"] == ["ALL"] and not host["CapAdd"] and not host["Privileged"]
    assert host["SecurityOpt"] == ["no-new-privileges", f"seccomp={docker_profile()}"]
    assert (host["Memory"], host["MemorySwap"]) == (limits.memory_bytes, limits.memory_bytes)
    assert limits.processes < host["PidsLimit"] < limits.processes + 8
    assert (host["CpusetCpus"], host["NanoCpus"]) == ("0", 500_000_000)
    assert host["LogConfig"]["Type"] == "none" and not facts["LogPath"]
    assert {"/tmp", "/var/tmp"} <= set(host["Tmpfs"]) and host["ShmSize"] == limits.file_bytes
    assert owner_labels().items() <= config["Labels"].items()
    assert not any(name.startswith(("HTTP", "http")) for name in config["Env"] or ())


def test_nothing_of_the_host_is_visible_but_what_was_asked_for(docker: DockerSandbox, folder: Path) -> None:
    ours = Path(__file__)
    assert not shell(docker, f"test -e {ours}", folder).ok
    assert shell(docker, f"test -r {ours} && ! touch {ours}", folder, readable=(ours,)).ok
    assert shell(docker, "find / -xdev -type s", folder).stdout == b""


def test_volumes_of_an_image_are_bounded_memory(docker: DockerSandbox, folder: Path, engine: Any) -> None:
    name = f"perfquarry-test:{uuid.uuid4().hex}"
    made = engine.create_container(own_image(), ["true"], labels=owner_labels())["Id"]
    try:
        engine.commit(made, *name.split(":"), changes=["VOLUME /data"])
        script = "touch /data/file && head -c 8388608 /dev/zero >/data/large; df -P /data | tail -n 1"
        ended = shell(DockerSandbox(name), script, folder, limits=Limits(file_bytes=4 * MEBI))
    finally:
        engine.remove_container(made, force=True)
        engine.remove_image(name, force=True)
    assert ended.stdout.split()[:2] == [b"tmpfs", b"4096"], ended


def test_nothing_is_left_of_any_end(
    docker: DockerSandbox, folder: Path, engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "private").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "private"))
    for script in ("exit 3", "kill -9 $$", "kill -9 -1", "sleep 60", "nonsense"):
        shell(docker, script, folder, limits=Limits(wall_seconds=1.0))
    assert containers(engine) == []
    assert list((tmp_path / "private").iterdir()) == []


def test_only_containers_of_dead_owners_are_removed(docker: DockerSandbox, engine: Any) -> None:
    with subprocess.Popen(["/bin/true"]) as dead:
        pass
    ours = owner_labels()
    kinds = {
        "dead": {**ours, PID: str(dead.pid)},
        "reused": {**ours, STARTED: f"{float(ours[STARTED]) - 100:.2f}"},
        "alive": ours,
        "elsewhere": {**ours, HOST: "another machine", PID: str(dead.pid)},
        "strangers": {"app": "database"},
    }
    made = {kind: engine.create_container(own_image(), ["true"], labels=labels)["Id"] for kind, labels in kinds.items()}
    try:
        DockerSandbox().verify()
        left = {one["Id"] for one in engine.containers(all=True)}
        assert {kind for kind, container in made.items() if container in left} == {"alive", "elsewhere", "strangers"}
    finally:
        for container in made.values():
            if any(one["Id"] == container for one in engine.containers(all=True)):
                engine.remove_container(container, force=True)


def test_the_next_use_removes_what_a_killed_parent_left(docker: DockerSandbox, folder: Path, engine: Any) -> None:
    parent = f"""
        from pathlib import Path
        from perfquarry.harness.contracts import Command
        from perfquarry.harness.sandbox.docker import DockerSandbox
        folder = Path({str(folder)!r})
        DockerSandbox().run(Command(("/bin/sh", "-c", "touch started; sleep 600"), cwd=folder, writable=(folder,)))"""
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(parent)], cwd=Path(__file__).parents[3]) as process:
        until = time.monotonic() + 60
        while not (folder / "started").exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        (container,) = containers(engine, process.pid)
        process.kill()
    assert engine.wait(container, timeout=30)  # it ends by itself
    DockerSandbox().verify()
    assert containers(engine, process.pid) == []


@needs_root
@pytest.mark.parametrize(("owner", "mode", "user"), [(0, 0o777, 65534), (1234, 0o700, 1234), (0, 0o700, 0)])
def test_root_is_used_only_where_files_ask_for_it(
    docker: DockerSandbox, folder: Path, owner: int, mode: int, user: int
) -> None:
    os.chown(folder, owner, owner)
    folder.chmod(mode)
    ended = shell(docker, "id -u && touch written", folder, writable=(folder,))
    assert ended.stdout.split() == [str(user).encode()], ended.stderr
    assert (folder / "written").stat().st_uid == user


@needs_root
def test_nobody_runs_what_writes_nothing(docker: DockerSandbox, folder: Path) -> None:
    code = "import os; print(os.getuid(), os.access('.', os.W_OK))"
    ended = docker.run(Command((sys.executable, "-c", code), cwd=folder, readable=PREFIXES))
    assert ended.stdout == b"65534 False\n", ended.stderr


@pytest.mark.slow
def test_a_gigabyte_of_output_does_not_fill_memory(docker: DockerSandbox, folder: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ended = shell(docker, "head -c 1073741824 /dev/zero; echo end >&2", folder, limits=Limits(output_bytes=1000))
    assert (ended.stdout, ended.stderr, ended.truncated, ended.ok) == (bytes(1000), b"end\n", True, True)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024  # KiB


def test_what_needs_an_engine_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, docker: DockerSandbox) -> None:
    with pytest.raises(SandboxUnavailable, match=r"python -m perfquarry\.harness\.images\.base"):
        DockerSandbox(image="perfquarry/base:nowhere").verify()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert choose_sandbox().name == "docker"  # without bubblewrap
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    with pytest.raises(SandboxUnavailable, match="DOCKER_HOST"):
        choose_sandbox("docker")


def test_the_probe_runs_in_containers(docker: DockerSandbox, folder: Path, tmp_path: Path, bare_python: Path) -> None:
    (folder / "test_it.py").write_text("def test_it(tmp_path): (tmp_path / 'x').write_text('x')\n")
    prober = Prober(docker, tmp_path / "scratch")
    built = BuiltSide("base", "0" * 40, folder, bare_python, uuid.uuid4().hex, (folder,))
    request = ProbeRequest(mode="time", arguments=["test_it.py"], max_calls=5)
    report = prober.run(built, request, limits=Limits(wall_seconds=60.0), core=0)
    assert report.outcome == "finished", report.output
    (item,) = report.items
    assert item.outcome == "passed" and item.calls and 0 < report.cpu_seconds < 60
