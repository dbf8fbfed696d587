from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from packaging.version import Version

from perfquarry.data.errors import EnvironmentFailed
from perfquarry.data.home import Home
from perfquarry.data.records import Reason
from perfquarry.harness.environments import environment as environments
from perfquarry.harness.environments import installer
from perfquarry.harness.environments.environment import Environment, Environments, cutoff
from perfquarry.harness.environments.indexes import installer_environment
from perfquarry.harness.environments.interpreters import Interpreter, choose, find_interpreters
from perfquarry.harness.rejections import Rejection
from perfquarry.harness.sandbox import choose_sandbox

DATE = datetime(2024, 2, 10, tzinfo=UTC)
LIMIT = 300.0


def python_of(date: datetime) -> Interpreter:
    chosen = choose(date, None, find_interpreters())
    assert chosen
    return chosen


def there(made: Environment | Rejection) -> Environment:
    assert isinstance(made, Environment), made
    return made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("home"))


@pytest.fixture
def links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of distributions, the only place uv may take any from."""
    folder = tmp_path / "links"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    return folder


def wheel(folder: Path, name: str, version: str, requires: str = "") -> None:
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}.py", f"version = {version!r}\n")
        needs = f"Requires-Dist: {requires}\n" if requires else ""
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")


BACKEND = """
import os, sys, time, zipfile
def get_requires_for_build_wheel(config_settings=None): return []
def build_wheel(directory, config_settings=None, metadata_directory=None):
    open("started", "a").close()
    while os.path.exists("slow"): time.sleep(0.05)
    leak = sorted(name for name in os.environ if "SECRET" in name)
    name = "slow-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as file:
        file.writestr("slow.py", "leak = %r" % leak)
        file.writestr("slow-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: slow\\nVersion: 1.0\\n")
        file.writestr("slow-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        file.writestr("slow-1.0.dist-info/RECORD", "")
    return name
"""


def source_distribution(folder: Path, *, slow: bool) -> None:
    """A distribution whose build, if it is slow, never ends."""
    project = '[build-system]\nrequires=[]\nbuild-backend="backend"\nbackend-path=["."]\n'
    project += '[project]\nname="slow"\nversion="1.0"\n'
    with zipfile.ZipFile(folder / "slow-1.0.zip", "w") as file:
        file.writestr("slow-1.0/pyproject.toml", project)
        file.writestr("slow-1.0/PKG-INFO", "Metadata-Version: 2.1\nName: slow\nVersion: 1.0\n")
        file.writestr("slow-1.0/backend.py", BACKEND)
        if slow:
            file.writestr("slow-1.0/slow", "")


CHILD = """
import sys
from datetime import datetime, UTC
from pathlib import Path
from perfquarry.data.home import Home
from perfquarry.harness.environments.environment import Environments
from perfquarry.harness.environments.interpreters import Interpreter
from perfquarry.harness.sandbox import choose_sandbox
from packaging.version import Version
python = Interpreter(Path(sys.argv[2]), Version(sys.argv[3]))
date = datetime(2024, 2, 10, tzinfo=UTC)
made = Environments(Home(Path(sys.argv[1])), choose_sandbox()).ensure(python, sys.argv[4:], date, timeout=300)
print(made.model_dump_json())
"""


def ensure_elsewhere(home: Home, *requirements: str) -> subprocess.Popen[str]:
    python = python_of(DATE)
    arguments = [str(home.root), str(python.path), str(python.version), *requirements]
    where = Path(__file__).parents[3]
    return subprocess.Popen([sys.executable, "-c", CHILD, *arguments], cwd=where, stdout=subprocess.PIPE, text=True)


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("did not happen within a minute")


def test_an_environment_as_of_a_date(shared: Home) -> None:
    python = python_of(DATE)
    made = there(Environments(shared, choose_sandbox()).ensure(python, ["pytest", "setuptools"], DATE, timeout=LIMIT))

    installed = dict(line.split("==") for line in made.requirements)
    assert {"pytest", "pluggy", "setuptools"} <= installed.keys()
    # 8.1.0 came out on 3 March 2024, 9.0 in November 2025, after any interpreter of ours had matured
    assert Version(installed["pytest"]) < Version("8.1" if python.matured and python.matured < DATE else "9")
    asked, outside = (
        [made.python, "-m", "pytest", "--version"],
        made.python.parent,
    )  # our own tests are not its business
    said = subprocess.check_output(asked, stderr=subprocess.STDOUT, text=True, cwd=outside)
    assert installed["pytest"] in said
    assert made.version == str(python.version)
    assert made.seconds > 0 and made.bytes > 0 and "uv pip install" in made.log
    assert any(path.suffix == ".pyc" for path in made.python.parent.parent.rglob("pluggy/__pycache__/*"))

    # neighbours share it, in any order, in another process, and nothing is made again
    again = Environments(shared, choose_sandbox()).ensure(
        python, ["setuptools", "pytest", "pytest"], DATE + timedelta(15), timeout=LIMIT
    )
    assert again == made
    assert [path.name for path in shared.environments.iterdir()] == [made.environment_id]


def test_pytest_is_never_older_than_the_probe_can() -> None:
    early = environments._date_options(datetime(2017, 7, 1, tzinfo=UTC), builds=False, undated=())
    late = environments._date_options(datetime(2024, 3, 1, tzinfo=UTC), builds=True, undated=())
    assert "pytest=2018-11-12T00:00:00Z" in early
    assert late == ["--exclude-newer", "2024-03-01T00:00:00Z"]


def test_what_a_package_pins_keeps_no_pytest_that_the_probe_cannot_use(shared: Home) -> None:
    """configobj of 2014 has install_requires=['six==1.5.2'], with which uv takes pytest 3.2; later ones need no six."""
    long_ago = datetime(2014, 2, 1, tzinfo=UTC)
    asked = python_of(DATE), ["pytest<5", "six==1.5.2"], long_ago
    made = there(Environments(shared, choose_sandbox()).ensure(*asked, timeout=LIMIT))
    installed = dict(line.split("==") for line in made.requirements)
    assert Version("3.6") <= Version(installed["pytest"]) < Version("5") and "six" in installed
    assert "bounds of attrs" in made.log

    # one that was made before this was known is made anew
    marker = shared.environments / made.environment_id / "made.json"
    old = [f"pytest=={'3.2.5' if name == 'pytest' else version}" for name, version in installed.items()]
    marker.write_text(made.model_copy(update={"requirements": old}).model_dump_json())
    assert there(Environments(shared, choose_sandbox()).ensure(*asked, timeout=LIMIT)).requirements == made.requirements

    pinned = Environments(shared, choose_sandbox()).ensure(asked[0], ["pytest==3.2.5"], long_ago, timeout=LIMIT)
    assert isinstance(pinned, Rejection) and pinned.reason is Reason.RESOLUTION_FAILED
    assert "older than 3.6" in pinned.log


def test_removed_environments_are_made_again_as_they_were(shared: Home) -> None:
    python = python_of(DATE)
    made = there(Environments(shared, choose_sandbox()).ensure(python, ["pytest", "setuptools"], DATE, timeout=LIMIT))
    made.python.unlink()
    restored = there(
        Environments(shared, choose_sandbox()).restore(made.environment_id, python, made.requirements, timeout=LIMIT)
    )
    assert restored.requirements == made.requirements
    assert restored.environment_id == made.environment_id
    assert restored.python.exists()
    assert not made.python.parent.exists()


def test_what_is_made_again_is_built_as_at_its_date(shared: Home) -> None:
    """nose-cover3 has no wheel and needs a setuptools that still knows 2to3: made today, it cannot be built."""
    python = python_of(DATE)
    marked = 'wheel<0.40; python_version >= "3"'
    wanted = ["six", "setuptools<70", marked]
    made = there(Environments(shared, choose_sandbox()).ensure(python, wanted, DATE, timeout=LIMIT))
    made.python.unlink()
    again = Environments(shared, choose_sandbox()).restore(
        made.environment_id, python, made.requirements, timeout=LIMIT, commands=made.commands
    )
    limit = next(word for word in made.commands[-1].split() if word.startswith("20"))
    assert f"--exclude-newer {limit}" in there(again).commands[-1]
    assert environments._limits_of(made.commands) == (datetime.fromisoformat(limit), ["setuptools<70", marked])
    assert environments._limits_of(["uv venv --python 3.11", "python setup.py"]) == (None, [])
    earlier = 'uv pip install -- six setuptools==39.2.0; python_version == "3.3" wheel<1'
    assert environments._limits_of([earlier]) == (None, ["wheel<1"]), "rows of earlier versions have no quotes"


def test_tools_lie_in_a_folder_of_their_own(shared: Home) -> None:
    python = python_of(DATE)
    folder = Environments(shared, choose_sandbox()).tool_overlay(python)
    facts = "import coverage, yappi; print(coverage.__file__, yappi.__file__)"
    said = subprocess.check_output([python.path, "-c", facts], env={"PYTHONPATH": str(folder)}, text=True)
    assert said.count(str(folder)) == 2
    assert Environments(shared, choose_sandbox()).tool_overlay(python) == folder


@pytest.mark.parametrize(
    ("version", "date", "expected"),
    [
        ("3.11.7", "2024-02-10", "2024-03-01"),
        ("3.11.7", "2024-02-29T23:59:59", "2024-03-01"),
        ("3.11.7", "2024-03-01", "2024-04-01"),
        ("3.11.7", "2023-12-31", "2024-01-01"),
        ("3.6.15", "2010-05-05", "2017-07-01"),  # pytest of 2010 does not work on Python 3.6
        ("3.99.0", "2010-05-05", "2010-06-01"),
    ],
)
def test_dates_are_rounded_to_the_end_of_the_month(version: str, date: str, expected: str) -> None:
    moment = datetime.fromisoformat(date).replace(tzinfo=UTC)
    rounded = cutoff(moment, Interpreter(Path("/python"), Version(version)))
    assert rounded == datetime.fromisoformat(expected).replace(tzinfo=UTC)


def test_requirements_that_contradict_are_a_rejection(tmp_path: Path, links: Path) -> None:
    wheel(links, "one", "1.0", requires="two<2")
    wheel(links, "two", "2.0")
    ours = Environments(Home(tmp_path), choose_sandbox())
    made = ours.ensure(python_of(DATE), ["one", "two>=2"], DATE, timeout=LIMIT)
    assert isinstance(made, Rejection)
    assert made.reason == Reason.RESOLUTION_FAILED
    assert "unsatisfiable" in made.log
    assert not list((tmp_path / "environments").iterdir())
    assert ours.ensure(python_of(DATE), ["two>=2", "one"], DATE, timeout=LIMIT) is made


def test_distributions_without_an_upload_time_are_taken(
    tmp_path: Path, links: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, version, requires in (("one", "1.0", "two"), ("two", "2.0", "")):
        page = links / name / "index.html"
        page.parent.mkdir()
        wheel(page.parent, name, version, requires)
        page.write_text(f'<!DOCTYPE html><a href="{name}-{version}-py3-none-any.whl">wheel</a>')
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", links.as_uri())
    made = there(Environments(Home(tmp_path), choose_sandbox()).ensure(python_of(DATE), ["one"], DATE, timeout=LIMIT))
    assert made.requirements == ["one==1.0", "two==2.0"]
    assert "has no upload times of one" in made.log
    assert "has no upload times of two" in made.log
    assert not any(str(tmp_path) in command for command in made.commands)


def test_bounds_that_are_no_versions_are_left_out_where_nothing_else_fits(tmp_path: Path, links: Path) -> None:
    """pandas before 0.25 needs 'pytz (>=2011k)', which uv refuses; a later pandas does not fit to old numpy."""
    wheel(links, "old", "0.20", requires="times (>=2011k,<2020); python_version>'3'\nRequires-Dist: two[x] (>dev)")
    wheel(links, "old", "0.19", requires="times (>=2011k)")
    for version in ("2019.1", "2020.1"):
        wheel(links, "times", version)
    wheel(links, "two", "2.0")
    ours = Environments(Home(tmp_path), choose_sandbox())
    made = there(ours.ensure(python_of(DATE), ["old"], DATE, timeout=LIMIT))
    assert made.requirements == ["old==0.20", "times==2019.1", "two==2.0"]
    assert "what old 0.20 needs, read without what is no version" in made.log
    assert not any(str(tmp_path) in command for command in made.commands)


def test_an_index_that_cannot_be_reached_is_no_rejection(
    tmp_path: Path, links: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(EnvironmentFailed, match="check the network"):
        Environments(Home(tmp_path), choose_sandbox()).ensure(python_of(DATE), ["one"], DATE, timeout=LIMIT)


@pytest.mark.parametrize(
    ("exit_code", "output", "ours"),
    [
        (1, "error: No solution found when resolving dependencies\n  cause: Because six was not found", False),
        (
            1,
            "error: Failed to build `x`\n         [stderr]\n         Connection refused\n\n         dns error\n",
            False,
        ),
        (2, "error: Failed to fetch: https://h/\n  cause: dns error", True),
        (1, "hint: Packages were unavailable because the network was disabled.", True),
        (2, "error: Failed to install: x\n  cause: No space left on device (os error 28)", True),
        (-9, "", True),
        (101, "thread panicked", True),
    ],
)
def test_whose_fault_it_is(exit_code: int, output: str, ours: bool) -> None:
    assert installer._is_our_fault(exit_code, output) is ours


def test_builds_see_no_secrets_and_end_at_the_limit(
    tmp_path: Path, links: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SECRET_KEY", "x")
    source_distribution(links, slow=False)
    made = there(
        Environments(Home(tmp_path / "a"), choose_sandbox()).ensure(python_of(DATE), ["slow"], DATE, timeout=LIMIT)
    )
    assert subprocess.check_output([made.python, "-c", "import slow; print(slow.leak)"], text=True) == "[]\n"

    source_distribution(links, slow=True)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cold-cache"))
    rejected = Environments(Home(tmp_path / "b"), choose_sandbox()).ensure(python_of(DATE), ["slow"], DATE, timeout=3.0)
    assert isinstance(rejected, Rejection)
    assert rejected.reason == Reason.BUILD_TIMEOUT


def test_racing_processes_make_it_once(tmp_path: Path, links: Path) -> None:
    wheel(links, "one", "1.0")
    racers = [ensure_elsewhere(Home(tmp_path), "one") for _ in range(3)]
    outputs = [racer.communicate(timeout=120)[0] for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0, 0]
    made = [Environment.model_validate(json.loads(output)) for output in outputs]
    assert made[0] == made[1] == made[2]
    (folder,) = (tmp_path / "environments").iterdir()
    assert {path.name for path in folder.iterdir()} == {"made.json", made[0].python.parents[1].name}


def test_a_killed_maker_leaves_nothing_that_is_taken_for_whole(tmp_path: Path, links: Path) -> None:
    home = Home(tmp_path)
    source_distribution(links, slow=True)
    maker = ensure_elsewhere(home, "slow")
    wait_for(lambda: any(home.environments.glob("*/*/.stand-in/work/*/src/started")))
    os.kill(maker.pid, signal.SIGKILL)
    maker.communicate()
    (folder,) = home.environments.iterdir()
    left = {path.name for path in folder.iterdir()}
    assert left and "made.json" not in left

    source_distribution(links, slow=False)
    made = there(Environments(home, choose_sandbox()).ensure(python_of(DATE), ["slow"], DATE, timeout=LIMIT))
    assert made.requirements == ["slow==1.0"]
    assert subprocess.run([made.python, "-c", "import slow"], check=False).returncode == 0
    assert made.python.parents[1].name not in left
    assert Environments(home, choose_sandbox()).ensure(python_of(DATE), ["slow"], DATE, timeout=LIMIT) == made


def test_settings_of_pip_are_translated_for_uv(tmp_path: Path) -> None:
    file = tmp_path / "pip.conf"
    file.write_text(
        "[global]\nindex-url = https://a/simple\nextra-index-url =\n  https://b/simple\n  https://c/simple\n"
    )
    host = {
        "PATH": "/bin", "HOME": str(tmp_path), "API_KEY": "secret", "PIP_CONFIG_FILE": str(file),
        "PIP_FIND_LINKS": "/x /y", "PIP_CERT": "/cert.pem", "UV_EXCLUDE_NEWER": "2020-01-01", "UV_CACHE_DIR": "/cache",
    }  # fmt: skip
    found = installer_environment(host)
    assert found["UV_DEFAULT_INDEX"] == "https://a/simple"
    assert found["UV_INDEX"] == "https://b/simple https://c/simple"
    assert found["UV_INDEX_STRATEGY"] == "unsafe-best-match"
    assert found["UV_FIND_LINKS"] == "/x,/y"
    assert found["SSL_CERT_FILE"] == "/cert.pem"
    assert found["UV_CACHE_DIR"] == "/cache"
    assert not {"API_KEY", "UV_EXCLUDE_NEWER", "PIP_FIND_LINKS"} & found.keys()

    over = installer_environment({**host, "PIP_INDEX_URL": "https://d/simple"})
    assert over["UV_DEFAULT_INDEX"] == "https://d/simple"
    alone = installer_environment({**host, "PIP_NO_INDEX": "true"})
    assert "UV_DEFAULT_INDEX" not in alone and "UV_INDEX" not in alone and alone["UV_FIND_LINKS"] == "/x,/y"
    own = installer_environment({**host, "UV_DEFAULT_INDEX": "https://e/simple"})
    assert own["UV_DEFAULT_INDEX"] == "https://e/simple"
    assert "UV_INDEX" not in own and "UV_FIND_LINKS" not in own
    (tmp_path / ".config/uv").mkdir(parents=True)
    (tmp_path / ".config/uv/uv.toml").write_text('index-url = "https://f/simple"\n')
    assert "UV_DEFAULT_INDEX" not in installer_environment(host)
