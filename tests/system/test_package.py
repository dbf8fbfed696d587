"""What is built for installation: one import root, every file, and a command that works beside any neighbours."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from uv import find_uv_bin

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ROOMS = ("data", "llm", "harness", "miners", "testgen", "curation", "flows")


def _run(*command: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=env or None, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution, built from what git tracks."""
    place = tmp_path_factory.mktemp("package")
    tree = place / "tree"
    tracked = _run("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", cwd=ROOT).stdout
    for name in filter(None, tracked.split("\0")):
        source, to = ROOT / name, tree / name
        if not source.is_symlink() and not source.exists():
            continue  # removed, not committed yet
        to.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            to.symlink_to(source.readlink())
        else:
            to.write_bytes(source.read_bytes())
    _run(
        find_uv_bin(), "build", "--no-build-isolation", "--python", sys.executable, "--out-dir", place, tree, cwd=place
    )
    return place


def test_wheel_and_source_distribution_have_one_root_and_every_file(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    (sdist,) = built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.partition("/")[0] for name in names} == {
        "perfquarry",
        f"perfquarry-{PROJECT['version']}.dist-info",
    }
    tree = built / "tree"
    wanted = {f"perfquarry/{path.relative_to(tree)}" for room in ROOMS for path in (tree / room).rglob("*")}
    wanted = {name for name in wanted if (tree / name).is_file() and not name.endswith(".md")}
    assert wanted - names == set() and {"perfquarry/py.typed", "perfquarry/api.py"} <= names
    assert any(name.endswith("/LICENSE") for name in names)
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    inside = {member.name.partition("/")[2] for member in members}
    assert wanted - inside == set() and not any(member.issym() or member.islnk() for member in members)


def test_the_command_works_beside_packages_with_the_names_of_rooms(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    _run(find_uv_bin(), "venv", "--quiet", "--no-project", "--python", sys.executable, tmp_path / "env", cwd=tmp_path)
    python = tmp_path / "env" / "bin" / "python"
    _run(find_uv_bin(), "pip", "install", "--quiet", "--no-deps", "--python", python, wheel, cwd=tmp_path)
    (site,) = (tmp_path / "env" / "lib").glob("python3*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    for room in ROOMS:
        for place in (site, tmp_path):
            (place / room).mkdir()
            (place / room / "__init__.py").write_text(f"raise SystemExit('the wrong {room}')\n")
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    program = tmp_path / "env" / "bin" / "perfquarry"
    assert _run(program, "--version", cwd=tmp_path, **env).stdout == f"perfquarry {PROJECT['version']}\n"
    where = "import perfquarry.flows.cli as one; print(one.__file__)"
    assert _run(python, "-c", where, cwd=tmp_path, **env).stdout.strip() == f"{site}/perfquarry/flows/cli.py"
    home = tmp_path / "home"
    for stage in ("mine", "judge"):
        words = ("-m", "perfquarry", stage, "demo", "--no-server", "--home", home)
        said = _run(python, *words, cwd=tmp_path, **env).stdout
        assert "No task yet. " in said and "`perfquarry curate demo` goes on" in said
    known = "import perfquarry; print(len(perfquarry.open_home('home').frame('changes', 'demo')))"
    assert int(_run(python, "-c", known, cwd=tmp_path, **env).stdout) > 30
