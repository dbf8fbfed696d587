"""Canary keys of the caller: no table, log, database, cache, message or sandboxed program ever holds one."""

from __future__ import annotations

import base64
import io
import os
import secrets
import sqlite3
import subprocess
import tarfile
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import psutil
import pyarrow.parquet as pq
import pytest

from perfquarry.data.home import Home
from perfquarry.data.records import Build, Reason, Workload
from perfquarry.data.store import TableStore
from perfquarry.flows.server import address as local_address
from perfquarry.harness.sandbox import choose_sandbox
from tests.outside_tmp import outside_tmp
from tests.system.commands import command

PREFIX = "pqcanary"
NAMES = (
    "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GITHUB_TOKEN", "GH_TOKEN", "HF_TOKEN", "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "UNHEARD_OF_SECRET",
)  # fmt: skip
PKG_INFO = "Metadata-Version: 2.1\nName: pq-spy\nVersion: 1.0\n"
TITLE = "Make smallest() faster: no sorting"
# What a program of a hostile repository can see, in its own words; it reports by failing.
SPY = f"""
import functools, glob, os

@functools.lru_cache()  # once a process: its turns are many
def seen():
    top = os.getcwd()
    while top != "/" and not os.path.exists(os.path.join(top, "user")):
        top = os.path.dirname(top)
    paths = glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline") + ["/etc/pip.conf"]
    for home in ([top] * (top != "/") + [os.path.expanduser("~"), "/root", *glob.glob("/home/*")]):
        for folder, folders, names in os.walk(home):
            folders[:] = [one for one in folders if one not in ("environments", "uv-cache", ".pyenv", "versions")]
            paths += [os.path.join(folder, name) for name in names][:200]
            if len(paths) > 5000:
                break
    found = []
    for path in paths:
        if not os.path.isfile(path):
            continue  # reading a pipe would wait for ever
        try:
            with open(path, "rb") as file:
                data = file.read(2**20)
        except OSError:
            continue
        at = data.find(bytes(reversed(b"{PREFIX[::-1]}")))  # its own bytecode must not hold the word
        if at >= 0:
            found.append((path, data[at:at + 64]))
    return found
"""
SETTINGS = """
[judge]
keep_from = 0.0
[generate]
max_workloads = 1
repeats = 1
[measure]
max_pairs = 6
aa_every = 6
warmups = 1
most_turns = 5
turn_seconds = 0.01
[count]
seeds = [1]
warmups = 1
calls = 1
functions = 0
"""


@dataclass
class Caller:
    """Someone with keys everywhere a key can be, and what the program left of them."""

    folder: Path
    keys: dict[str, str] = field(default_factory=lambda: {name: f"{PREFIX}{secrets.token_hex(12)}" for name in NAMES})
    said: list[str] = field(default_factory=list)

    def key(self, name: str) -> str:
        """The canary of that name."""
        return self.keys.setdefault(name, f"{PREFIX}{secrets.token_hex(12)}")

    @property
    def home(self) -> Path:
        """The program's home."""
        return self.folder / "home"

    def environment(self, port: int) -> dict[str, str]:
        """The real one, with keys. The index of packages stays the real one; one that has nothing is added."""
        user = self.folder / "user"
        user.mkdir(exist_ok=True)
        (user / "pip.conf").write_text(f"[global]\nproxy-auth = {self.key('pip.conf')}\n{_pip_settings()}")
        (user / ".netrc").write_text(f"machine 127.0.0.1 login netrc password {self.key('netrc')}\n")
        pyenv = Path.home() / ".pyenv"
        index = "UV_EXTRA_INDEX_URL" if index_variables(os.environ) else "PIP_EXTRA_INDEX_URL"
        address = f"http://index:{self.key('index')}@127.0.0.1:{port}/simple/"
        return {
            **os.environ,
            **({"PYENV_ROOT": str(pyenv)} if pyenv.exists() else {}),
            "PIP_CONFIG_FILE": str(user / "pip.conf"),
            **{name: self.keys[name] for name in NAMES},
            "HOME": str(user),
            "UV_CACHE_DIR": str(self.folder / "uv-cache"),
            index: f"{os.environ.get(index, '')} {address}".strip(),
            "no_proxy": "127.0.0.1",
            "COLUMNS": "200",
        }

    def run(self, environment: Mapping[str, str], *arguments: str, code: int = 0) -> None:
        """Runs the program and keeps what it says."""
        done = subprocess.run(
            command(self.home, *arguments), env=environment, capture_output=True, text=True, timeout=280, check=False
        )
        self.said += [done.stdout, done.stderr]
        assert done.returncode == code, self.without_keys(f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}")

    def without_keys(self, text: str) -> str:
        """The text with the names of keys in their place."""
        for name, key in self.keys.items():
            text = text.replace(key, f"<{name}>")
        return text

    def traces(self) -> dict[str, list[str]]:
        """Names of the keys found, by where; Base64 as in a header included."""
        forms = {name: [key.encode(), *_encoded(key)] for name, key in self.keys.items()}
        found: dict[str, list[str]] = {}
        for place, data in self._everything():
            names = [name for name, ways in forms.items() if any(way in data for way in ways)]
            if names:
                found[place] = names
        return found

    def _everything(self) -> Iterator[tuple[str, bytes]]:
        yield from ((f"output {number}", text.encode()) for number, text in enumerate(self.said))
        for path in [
            path for path in self.folder.rglob("*") if path.is_file() and path.name not in (".netrc", "pip.conf")
        ]:
            yield str(path), path.read_bytes()
            if path.suffix == ".parquet":
                yield f"rows of {path}", str(pq.read_table(path).to_pylist()).encode()
        for path in self.home.rglob("*.db"):
            with sqlite3.connect(path) as database:
                yield f"dump of {path}", "\n".join(database.iterdump()).encode()
        for process in psutil.process_iter(["cmdline"]):
            if str(self.home) in " ".join(process.info["cmdline"] or []):  # the Prefect server
                yield f"process {process.info['cmdline']}", f"{process.info['cmdline']} {process.environ()}".encode()


def index_variables(environ: Mapping[str, str]) -> list[str]:
    """uv's own settings of an index, beside which pip's do not count."""
    return [name for name in environ if name.startswith("UV_") and ("INDEX" in name or "LINKS" in name)]


def _pip_settings() -> str:
    """Those of this machine's user, whose home is another while the program runs."""
    path = Path(os.environ.get("PIP_CONFIG_FILE") or Path.home() / ".config/pip/pip.conf")
    return path.read_text().replace("[global]", "") if path.is_file() else ""


def _encoded(key: str) -> list[bytes]:
    """Base64 of 'user:key' for every alignment, without its ends."""
    return [base64.b64encode(b"x" * shift + key.encode())[4:-4] for shift in range(3)]


class Server(SimpleHTTPRequestHandler):
    """Serves a bare repository (git's simple protocol) to who knows the password, and an index without packages."""

    password = ""

    def do_GET(self) -> None:
        given = base64.b64decode(self.headers.get("Authorization", "").partition(" ")[2]).decode()
        if self.path.startswith("/simple/"):
            self.send_error(404)
        elif given.partition(":")[2] != self.password:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, *_: Any) -> None:
        """Silent."""


@pytest.fixture
def caller() -> Iterator[Caller]:
    with tempfile.TemporaryDirectory(prefix=".secrets-", dir=outside_tmp(), ignore_cleanup_errors=True) as folder:
        yield Caller(Path(folder))


@pytest.fixture
def port(caller: Caller, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Of a server of the repository, which lies where the traces are not looked for."""
    folder = tmp_path_factory.mktemp("served")
    _make_repository(folder)
    handler = type("Handler", (Server,), {"password": caller.key("source")})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def _make_repository(folder: Path) -> None:
    """A change whose test spies, then one whose build spies and fails."""
    work = folder / "work"
    setup = "from setuptools import setup, Extension\nimport spy\nprint('spied', spy.seen())\n"
    setup += "setup(name='lib', ext_modules=[Extension('lib.no', ['lib/missing.c'])])\n"
    test = "from lib import smallest\nimport spy\n\n\ndef test_smallest():\n    numbers = list(range(2000))\n"
    test += "    assert smallest(numbers) == 0\n    found = spy.seen()\n    assert not found, found\n"
    slow = "def smallest(numbers):\n    ordered = sorted(numbers)\n    return ordered[0]\n"
    commits = [
        ("First", {"lib/__init__.py": slow, "spy.py": SPY, "test_lib.py": test}),
        (TITLE, {"lib/__init__.py": "def smallest(numbers):\n    return min(numbers)\n"}),
        ("Build in C", {"setup.py": setup}),
        ("Speed up smallest()", {"lib/__init__.py": "def smallest(numbers, *, key=min):\n    return key(numbers)\n"}),
    ]
    _commit_all(work, commits)
    bare = folder / "lib.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(work), str(bare)], check=True)
    subprocess.run(["git", "update-server-info"], cwd=bare, check=True)


def _commit_all(work: Path, commits: Sequence[tuple[str, Mapping[str, str]]]) -> None:
    """A new repository with these commits: title, files that change."""
    moment = {"GIT_AUTHOR_DATE": "2024-02-10T12:00:00Z", "GIT_COMMITTER_DATE": "2024-02-10T12:00:00Z"}
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    work.mkdir()
    subprocess.run([*git, "init", "-q"], cwd=work, check=True)
    for title, files in commits:
        for name, text in files.items():
            (work / name).parent.mkdir(exist_ok=True)
            (work / name).write_text(text)
        subprocess.run([*git, "add", "-A"], cwd=work, check=True)
        subprocess.run([*git, "commit", "-q", "-m", title], cwd=work, check=True, env={**os.environ, **moment})


@pytest.mark.timeout(280)
@pytest.mark.parametrize("server", ["--no-server", pytest.param("--server", marks=pytest.mark.slow)])
def test_no_key_is_ever_left_or_seen(caller: Caller, port: int, server: str) -> None:
    if choose_sandbox().name == "process":
        pytest.skip("NOT TESTED: plain processes see all that this user may read")
    environment = caller.environment(port)
    settings = caller.folder / "quick.toml"
    settings.write_text(SETTINGS)
    address = f"http://user:{caller.key('source')}@127.0.0.1:{port}/lib.git"
    options = ("--source", address, "--settings", str(settings))
    caller.run(environment, "curate", address, *options, server)
    if server == "--server":
        url = local_address(Home(caller.home))
        assert url, "the local server ended before its grace time"
        runs = httpx.post(f"{url}/flow_runs/count", json={}, timeout=10, trust_env=False).json()
        assert runs == 7, "curate, and below it mine, judge, changes, select, screen and count"
    closed = address.replace(f":{port}/", ":1/")
    caller.run(environment, "mine", closed, "--source", closed, server, code=1)
    caller.run(environment, "mine", address, "--source", address.replace("http:", "odd:"), server, code=2)
    caller.run(environment, "mine", address, *options, "--changes", "deadbeef", server, code=2)

    assert caller.traces() == {}
    store = TableStore(Home(caller.home).tables)
    (name,) = {path.name.removeprefix("repo=") for path in Home(caller.home).tables.glob("builds/repo=*")}
    builds, workloads = list(store.records(Build, name)), list(store.records(Workload, name))
    # the spies were there: one in a build that fails, one in a workload that fails when it sees a key
    failed = [row for row in builds if row.reason == Reason.BUILD_FAILED]
    assert failed and "spied []" in failed[0].log
    kept = [row.code for row in workloads if row.status == "kept" and row.source == "unit-test"]
    assert kept == ["test_lib.py::test_smallest"], workloads
    assert any(TITLE.encode() in data for place, data in caller._everything() if place.startswith("rows of"))


@pytest.mark.slow
def test_the_build_of_a_dependency_sees_no_key(caller: Caller) -> None:
    """What it prints is kept in a row."""
    if choose_sandbox().name == "process":
        pytest.skip("NOT TESTED: without bubblewrap, such a build sees all that this user may read")
    setup = "import spy, sys\nfrom setuptools import setup\nfound = spy.seen()\n"
    setup += "if found: sys.exit(repr(found))\nsetup(name='pq-spy', version='1.0', py_modules=['spy'])\n"
    distributions = caller.folder / "distributions"
    distributions.mkdir()
    with tarfile.open(distributions / "pq_spy-1.0.tar.gz", "w:gz") as archive:
        for name, text in {"setup.py": setup, "spy.py": SPY, "PKG-INFO": PKG_INFO}.items():
            entry = tarfile.TarInfo(f"pq_spy-1.0/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    lib = "def total(numbers):\n    return {}\n"
    slow, fast = lib.format("sum(list(numbers))"), lib.format("sum(numbers)")
    commits = [("First", {"lib/__init__.py": slow, "requirements.txt": "pq-spy\n"}), (TITLE, {"lib/__init__.py": fast})]
    _commit_all(caller.folder / "lib", commits)
    environment = {name: value for name, value in caller.environment(0).items() if "EXTRA_INDEX" not in name}
    links = "UV_FIND_LINKS" if index_variables(os.environ) else "PIP_FIND_LINKS"
    between = "," if links.startswith("UV") else " "
    environment[links] = between.join(filter(None, [environment.get(links), str(distributions)]))
    caller.run(environment, "curate", str(caller.folder / "lib"), "--no-server")
    assert caller.traces() == {}
    (name,) = {path.name.removeprefix("repo=") for path in Home(caller.home).tables.glob("builds/repo=*")}
    builds = list(TableStore(Home(caller.home).tables).records(Build, name))
    assert builds and all("pq-spy==1.0" in row.requirements for row in builds), [row.log for row in builds]


@pytest.mark.slow
def test_an_index_that_fails_reveals_no_key(caller: Caller, port: int) -> None:
    environment = caller.environment(port)
    environment = {name: value for name, value in environment.items() if "FIND_LINKS" not in name}
    key = caller.key("closed")
    environment |= {"UV_DEFAULT_INDEX": f"http://index:{key}@127.0.0.1:1/simple/", "UV_HTTP_RETRIES": "0"}
    address = f"http://user:{caller.key('source')}@127.0.0.1:{port}/lib.git"
    caller.run(environment, "curate", address, "--source", address, "--limit", "1", "--no-server", code=1)
    assert "could not be done" in caller.said[-1]
    assert caller.traces() == {}
