"""Source distributions as dependencies: nothing of what their builds try reaches the host."""

from __future__ import annotations

import io
import json
import os
import socket
import tarfile
import tempfile
import textwrap
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import pytest

from perfquarry.data.errors import SandboxUnavailable
from perfquarry.data.home import Home
from perfquarry.data.records import Reason
from perfquarry.harness.contracts import Sandbox
from perfquarry.harness.environments.environment import Environment, Environments
from perfquarry.harness.environments.interpreters import Interpreter, find_interpreters
from perfquarry.harness.rejections import Rejection
from perfquarry.harness.sandbox import BubblewrapSandbox, choose_sandbox
from tests.outside_tmp import outside_tmp

DATE = datetime(2024, 2, 10, tzinfo=UTC)
KEY = "-----BEGIN KEY-----"
# In each step of a build: what it could do, and a backend that keeps that in the wheel it makes.
BACKEND = """
import glob, json, os, socket, sys, zipfile
OUTER = {outer!r}

def write(path):
    open(path, "a").close()

def connect():
    socket.create_connection(("127.0.0.1", {port}), timeout=2).close()

def attempt(step):
    prefix = os.path.dirname(os.path.dirname(sys.executable))
    tries = {{
        "etc": lambda: write("/etc/pq-evil"),
        "home": lambda: write({user!r} + "/pq-evil"),
        "notes": lambda: open({user!r} + "/work/notes").read(),
        "port": connect,
        "cache": lambda: write({cache!r} + "/pq-evil"),
        "site": lambda: write(glob.glob(prefix + "/lib/python*/site-packages")[0] + "/evil.pth"),
        "variable": lambda: os.environ["PQ_SECRET"],
        "interpreter": lambda: os.rename(sys.executable, sys.executable + "2"),
    }}
    for name in tries:
        try:
            tries[name]()
        except Exception:
            continue
        with open("done", "a") as file:
            file.write(step + " " + name + "\\n")
    with open("done", "a") as file:
        file.write(step + "\\n")

def get_requires_for_build_wheel(settings=None):
    attempt("requires")
    return ["inner"] if OUTER else []

def _info(folder, name):
    text = {{"METADATA": "Metadata-Version: 2.1\\nName: %s\\nVersion: 1.0\\n" % name, "RECORD": "",
            "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"}}
    return {{os.path.join(folder, "%s-1.0.dist-info" % name, file): content for file, content in text.items()}}

def prepare_metadata_for_build_wheel(folder, settings=None):
    attempt("metadata")
    for path, content in _info(folder, {name!r}).items():
        os.path.isdir(os.path.dirname(path)) or os.makedirs(os.path.dirname(path))
        with open(path, "w") as file:
            file.write(content)
    return "{name}-1.0.dist-info"

def build_wheel(folder, settings=None, metadata=None):
    attempt("wheel")
    done = open("done").read()
    if OUTER:
        import inner_done
        done += inner_done.done
    with zipfile.ZipFile(os.path.join(folder, "{name}-1.0-py3-none-any.whl"), "w") as wheel:
        wheel.writestr("{name}_done.py", "done = %r" % done)
        for path, content in _info("", {name!r}).items():
            wheel.writestr(path, content)
    return "{name}-1.0-py3-none-any.whl"
"""
WHEEL = "links-1.0-py3-none-any.whl"
STEPS = {"requires", "metadata", "wheel"}


@dataclass
class Victim:
    """A user with a file, a service, a variable and a cache."""

    user: Path
    home: Home
    links: Path
    cache: Path
    port: int

    def ensure(self, python: Interpreter, sandbox: Sandbox, name: str) -> Environment | Rejection:
        return Environments(self.home, sandbox).ensure(python, [name], DATE, timeout=200.0)

    def add(self, name: str, **facts: object) -> None:
        """Puts a source distribution with that backend among the links."""
        facts = {"name": name, "port": self.port, "user": str(self.user), "cache": str(self.cache), **facts}
        project = (
            f'[build-system]\nrequires=[]\nbuild-backend="backend"\nbackend-path=["."]\n[project]\nname="{name}"\n'
        )
        files = {
            "pyproject.toml": f'{project}dynamic=["version", "dependencies"]\n',
            "backend.py": BACKEND.format(**facts),
        }
        source_distribution(self.links, name, files)


def source_distribution(folder: Path, name: str, files: Mapping[str, str]) -> None:
    with tarfile.open(folder / f"{name}-1.0.tar.gz", "w:gz") as archive:
        for path, text in {"PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", **files}.items():
            entry = tarfile.TarInfo(f"{name}-1.0/{path}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))


@pytest.fixture
def victim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Victim]:
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(name)
    # outside of /tmp, of which every sandbox has its own
    with tempfile.TemporaryDirectory(prefix=".walls-", dir=outside_tmp()) as place:
        user, links = Path(place, "user"), Path(place, "links")
        for folder in (user / "work", links):
            folder.mkdir(parents=True)
        (user / "work/notes").write_text(KEY)
        for name, value in {
            "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(links), "HOME": str(user),
            "UV_CACHE_DIR": f"{place}/uv", "PQ_SECRET": KEY,
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        find_interpreters()
        with socket.create_server(("127.0.0.1", 0)) as server:
            yield Victim(user, Home(Path(place, "home")), links, Path(place, "uv"), server.getsockname()[1])


def sandbox_of(name: str) -> Sandbox:
    try:
        return choose_sandbox(name)
    except SandboxUnavailable as error:
        pytest.skip(f"{name} does not work here: {error}")


def oldest_and_newest() -> list[Interpreter]:
    found = find_interpreters()
    return list(dict.fromkeys([found[0], found[-1]]))


@pytest.mark.parametrize("name", ["bubblewrap", pytest.param("docker", marks=pytest.mark.slow)])
@pytest.mark.parametrize("python", oldest_and_newest(), ids=lambda python: str(python.version))
def test_no_step_of_a_build_reaches_the_host(victim: Victim, name: str, python: Interpreter) -> None:
    """Neither of a dependency nor of what it needs to be built."""
    sandbox = sandbox_of(name)
    victim.add("outer", outer=True)
    victim.add("inner", outer=False)
    made = victim.ensure(python, sandbox, "outer")
    assert isinstance(made, Environment), made.log
    assert made.requirements == ["outer==1.0"]
    (kept,) = made.python.parents[1].glob("lib/python*/site-packages/outer_done.py")
    said: dict[str, str] = {}
    exec(kept.read_text(), said)
    assert said["done"].split("\n")[:-1].count("wheel") == 2, "both were built"
    assert set(said["done"].split("\n")) - {""} == STEPS, "all steps were there, and nothing they tried was done"
    assert not Path("/etc/pq-evil").exists() and not list(victim.user.glob("pq-evil"))
    assert not (made.python.parents[1] / ".stand-in").exists()
    assert made.python.resolve() == python.path.resolve()
    assert str(victim.home.root) not in (made.python.parents[1] / "pyvenv.cfg").read_text()


LEAVES = {
    "a link in the wheel's place": "os.symlink({work!r} + '/' + WHEEL, folder + '/' + WHEEL)",
    "a link in the place of the wheel's folder": "os.rename(folder, folder + '2'); os.symlink({work!r}, folder)",
    "files larger than the machine": (
        "[open(folder + '/%d' % n, 'wb').truncate(2**30 - 1) for n in range(8)]; open(folder + '/w', 'w')"
    ),
}


def hooked(folder: Path, does: str) -> None:
    """A source distribution 'links' whose only hook does that; its wheel is named in vain."""
    code = f"""
        import glob, os, sys
        WHEEL = {WHEEL!r}
        def get_requires_for_build_wheel(settings=None): return []
        def build_wheel(folder, settings=None, metadata=None):
            {does}
            return WHEEL
        """
    project = '[build-system]\nrequires=[]\nbuild-backend="backend"\nbackend-path=["."]\n'
    project += '[project]\nname="links"\nversion="1.0"\n'
    source_distribution(folder, "links", {"pyproject.toml": project, "backend.py": textwrap.dedent(code)})


@pytest.mark.parametrize("does", LEAVES.values(), ids=LEAVES)
def test_what_a_build_leaves_leads_nowhere(victim: Victim, does: str) -> None:
    """Uv follows links, in the errors it prints, too; what it finds are copies of regular files."""
    work = victim.user / "work"
    with zipfile.ZipFile(work / WHEEL, "w") as file:
        file.writestr("links.py", KEY)
        file.writestr("links-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: links\nVersion: 1.0\n")
        file.writestr("links-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("links-1.0.dist-info/RECORD", "")
    hooked(victim.links, does.format(work=str(work)))
    made = victim.ensure(oldest_and_newest()[-1], sandbox_of("bubblewrap"), "links")
    assert isinstance(made, Rejection)
    assert made.reason == Reason.RESOLUTION_FAILED and "ailed to build" in made.log
    assert KEY not in made.log


def test_folders_of_the_user_are_not_built(victim: Victim) -> None:
    """A build requirement may be a path: the project there is the user's own, and stays as it is."""
    project = victim.user / "work"
    (project / "setup.py").write_text("open('was-here', 'w')\nfrom setuptools import setup\nsetup(name='own')\n")
    asks = f'[build-system]\nrequires={json.dumps([f"own @ {project.as_uri()}"])}\nbuild-backend="own"\n'
    source_distribution(victim.links, "asks", {"pyproject.toml": f'{asks}[project]\nname="asks"\nversion="1.0"'})
    before = sorted(project.iterdir())
    made = victim.ensure(oldest_and_newest()[-1], sandbox_of("bubblewrap"), "asks")
    assert isinstance(made, Rejection)
    assert sorted(project.iterdir()) == before


def test_a_sandbox_that_fails_is_no_rejection(victim: Victim, tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: no namespaces' >&2\nexit 1\n")
    broken.chmod(0o755)
    victim.add("outer", outer=False)
    with pytest.raises(SandboxUnavailable, match="no namespaces"):
        victim.ensure(oldest_and_newest()[-1], BubblewrapSandbox(_bwrap=str(broken)), "outer")


def test_what_an_interruption_ends_is_no_rejection(victim: Victim, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen: a run that was ended left a row which said that dependencies could not be resolved."""

    def ends(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    sandbox = sandbox_of("bubblewrap")
    monkeypatch.setattr(type(sandbox), "run", ends)
    victim.add("outer", outer=False)
    with pytest.raises(KeyboardInterrupt):
        victim.ensure(oldest_and_newest()[-1], sandbox, "outer")


def test_without_a_sandbox_builds_run_beside_us(victim: Victim) -> None:
    """As is said of plain processes."""
    hooked(victim.links, f"sys.exit(open({str(victim.user / 'work/notes')!r}).read())")
    made = victim.ensure(oldest_and_newest()[-1], choose_sandbox("process"), "links")
    assert isinstance(made, Rejection) and KEY in made.log
