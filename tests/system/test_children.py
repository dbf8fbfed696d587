"""Processes that we start: through which door, and what of our environment they get."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from perfquarry.data.children import Need, environment
from tests.loopback import serve
from tests.miners.git_repository import Repository
from tests.system.commands import command

ROOT = Path(__file__).parents[2]
ROOMS = ("data", "llm", "harness", "miners", "testgen", "curation", "flows")
GIT = "data/git.py"
CONFINED = (
    "harness/sandbox/",
    "harness/environments/installer.py",
    "harness/grader/",
    "harness/probe/",
    "data/demo/history/",
)
"""They make an environment of their own (tests/harness/sandboxes), or run where there is none of ours."""
STARTS = {"run", "Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput"}
OTHER_DOORS = {"system", "popen", "fork", "forkpty", "create_subprocess_exec", "create_subprocess_shell"}
KEYS = (
    "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GITHUB_TOKEN", "GITHUB_TOKENS", "GH_TOKEN", "HF_TOKEN", "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GITHUB_APP_PRIVATE_KEY_PATH", "PERFQUARRY_DATABASE", "ODD_SECRET",
    "OTEL_EXPORTER_OTLP_HEADERS", "PGPASSWORD", "GIT_ASKPASS", "UNKNOWN",
)  # fmt: skip
PROGRAMS = ("git", "gcc", "g++", "cc", "c++", "ccache", "pyenv", "valgrind", "rustc", "gfortran", "ninja", "dpkg-query")


def sources() -> Iterator[tuple[str, ast.Module]]:
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(CONFINED):
                yield name, ast.parse(path.read_text(encoding="utf-8"))


def starts(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls that start a process by `subprocess`."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="subprocess"), attr=name)) if name in STARTS:
                yield node


def test_only_one_module_starts_git() -> None:
    for name, tree in sources():
        imported = {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}
        imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not imported & {"git", "pygit2", "dulwich"}, name
        lists = [node.elts for node in ast.walk(tree) if isinstance(node, ast.List | ast.Tuple) and node.elts]
        begin = {one[0].value for one in lists if isinstance(one[0], ast.Constant)}
        assert name == GIT or not (list(starts(tree)) and "git" in begin), f"{name} starts git: use data.git"


def test_every_child_gets_an_environment_that_was_made_for_it() -> None:
    found = 0
    for name, tree in sources():
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in ("os", "asyncio")
            ):
                assert node.attr not in OTHER_DOORS and not node.attr.startswith(("exec", "spawn", "posix_spawn")), name
            if isinstance(node, ast.ImportFrom):
                assert node.module not in ("subprocess", "multiprocessing"), f"{name}: import the module itself"
        for call in starts(tree):
            found += 1
            given = next((one.value for one in call.keywords if one.arg == "env"), None)
            assert given is not None, f"{name}:{call.lineno} inherits our environment: use data.children"
            made = {
                node.func.id
                for node in ast.walk(given)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            }
            assert name == GIT or made & {"environment", "server_environment"}, f"{name}:{call.lineno}"
    assert found > 10


def test_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.setenv(name, "canary")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    assert not set(environment()) & set(KEYS) and "PATH" in environment()
    assert "https_proxy" in environment(Need.NETWORK) and "https_proxy" not in environment()
    for need in (Need.NETWORK, Need.SESSION, Need.TOOLCHAINS, Need.PREFECT, Need.INDEX):
        assert not set(environment(need)) & set(KEYS)
    assert set(environment(Need.MODELS)) & set(KEYS) == {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}
    assert set(environment(Need.SETTINGS)) & set(KEYS) == {"PERFQUARRY_DATABASE", "GIT_ASKPASS", "UNKNOWN"}
    assert environment(Need.EVERYTHING) == dict(os.environ)
    assert environment(HOME="/nowhere")["HOME"] == "/nowhere"


class Files(SimpleHTTPRequestHandler):
    """Serves a folder."""

    folder = ""

    def translate_path(self, path: str) -> str:
        return f"{self.folder}{path.partition('?')[0]}"

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def spied(tmp_path: Path) -> tuple[dict[str, str], Path]:
    """An environment with keys in which programs write what they get, and the folder where they write it."""
    programs, seen = tmp_path / "programs", tmp_path / "seen"
    programs.mkdir(), seen.mkdir()
    for name in PROGRAMS:
        if real := shutil.which(name):
            spy = f'#!/bin/sh\ntr "\\0" "\\n" < /proc/$$/environ > {seen}/{name}.$$\nexec {real} "$@"\n'
            (programs / name).write_text(spy)
            (programs / name).chmod(0o755)
    keys = {name: f"canary-{name}" for name in KEYS if name != "PERFQUARRY_DATABASE"}
    return {**os.environ, **keys, "PATH": f"{programs}:{os.environ['PATH']}", "COLUMNS": "200"}, seen


def test_no_program_that_a_run_starts_sees_a_key(spied: tuple[dict[str, str], Path], tmp_path: Path) -> None:
    variables, seen = spied
    repository = Repository(tmp_path / "served" / "lib")
    for number in range(2):
        repository.commit(f"Faster {number}", {"lib.py": f"a = {number}\n"})
    repository.git("update-server-info")
    home = tmp_path / "home"
    with serve(Files, folder=str(tmp_path / "served")) as address:
        runs = (
            ("mine", str(repository.folder), "--no-server"),
            ("mine", f"{address}/lib/.git", "--no-server"),
            ("doctor",),
        )
        for arguments in runs:
            done = subprocess.run(
                command(home, *arguments), env=variables, capture_output=True, text=True, timeout=120, check=False
            )
            assert done.returncode == 0 or arguments[0] == "doctor", done.stdout + done.stderr
    reports = list(seen.iterdir())
    assert len([one for one in reports if one.name.startswith("git.")]) > 5
    leaks = {f"{one.name}: {line}" for one in reports for line in one.read_text().splitlines() if "canary" in line}
    assert not leaks
