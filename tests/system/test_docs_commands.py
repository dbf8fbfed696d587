"""Commands in the documents: each exists with its options, and those marked to be run are run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from perfquarry.flows.cli import app
from tests.doc_pages import ROOT, Block, blocks, documents, words_of
from tests.system.conftest import GAIN, Curated

BLOCKS = {str(path.relative_to(ROOT)): list(blocks(path)) for path in documents()}
TARGETS = frozenset(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
PROGRAM = """case "$1" in curate|mine|judge|build|generate|measure|select) set -- "$@" --no-server;; esac
exec {command} "$@"
"""
"""The command without Prefect's server, whose start takes longer than what the pages do."""
WHOLE: Any = typer.main.get_command(app)


def parse(arguments: list[str]) -> None:
    """Raises where no command or option is called so, or a value has the wrong form."""
    command, context, words = WHOLE, None, list(arguments)
    while True:
        context = command.make_context((context and context.command.name) or "perfquarry", words, parent=context)
        if not hasattr(command, "resolve_command"):
            return
        rest = [*context._protected_args, *context.args]
        if not rest:  # a group that is itself a command: `release --repo …`
            return
        _, command, words = command.resolve_command(context, rest)


def check(command: str) -> None:
    match words_of(command):
        case ["perfquarry" | ".venv/bin/perfquarry", *arguments] if arguments not in (["--version"], ["--help"]):
            parse(arguments)
        case ["make", *rest]:
            targets = [word for word in rest if re.fullmatch(r"[a-z-]+", word)]
            assert set(targets) <= TARGETS, f"make has no target {targets}"
        case ["python" | ".venv/bin/python", "-m", module, *_] if module.split(".")[0] in ("benchmarks", "tests"):
            place = ROOT / module.replace(".", "/")
            assert place.with_suffix(".py").exists() or (place / "__main__.py").exists(), f"no module {module}"


@pytest.mark.parametrize(
    "page", [page for page, found in BLOCKS.items() if any(one.kind == "console" for one in found)]
)
def test_each_command_exists_with_its_options(page: str) -> None:
    for block in BLOCKS[page]:
        for command in block.commands if block.kind == "console" else []:
            try:
                check(command)
            except Exception as error:  # noqa: BLE001  # typer keeps its own to itself
                pytest.fail(f"{page}:{block.line}: {command}: {type(error).__name__}: {error}")


@pytest.mark.parametrize("command", ["perfquarry nonsense", "perfquarry tasks demo --no-such", "make nonsense"])
def test_wrong_commands_are_found(command: str) -> None:
    with pytest.raises(BaseException, match=r"(?i)no such|nonsense"):
        check(command)


def of_lane(page: str, *, slow: bool) -> list[Block]:
    """What is done with a page: all blocks up to the last that is to be run in this lane."""
    return [one for one in BLOCKS[page] if (one.mark or one.title) and (slow or "slow" not in one.mark)]


def runnable(*, slow: bool) -> list[str]:
    """Pages with blocks to be run in this lane; pages of slow blocks are run whole in the slow one."""
    return [
        page
        for page, found in BLOCKS.items()
        if any("run" in one.mark and slow == ("slow" in one.mark) for one in found)
    ]


@pytest.fixture(scope="module")
def copied(curated: Curated, facts: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home in which the demo is curated, for commands that write into it, and with all its changes."""
    home = curated.copied(tmp_path_factory.mktemp("docs") / "home")
    facts(home, "mine", "demo", "--no-server")
    assert [one for one in facts(home, "tasks", "demo") if GAIN in one["task_id"]]
    return home


def follow(page: str, found: list[Block], home: Path, folder: Path, forked: list[str]) -> None:
    """Does what a page says, block by block."""
    binaries = folder.parent / f"{folder.name}-bin"
    binaries.mkdir()
    python = f'exec {shlex.quote(sys.executable)} "$@"\n'
    for name, text in {"perfquarry": PROGRAM.format(command=shlex.join(forked)), "python": python}.items():
        (binaries / name).write_text(f"#!/bin/sh\n{text}")
        (binaries / name).chmod(0o755)
    variables = {"PATH": f"{binaries}:{os.environ['PATH']}", "PERFQUARRY_HOME": str(home), "COLUMNS": "120"}
    for block in found:
        if block.title:
            (folder / block.title).write_text(block.text)
        if not block.mark:
            continue
        if (program := re.search(r"if (\S+)", block.mark)) and not shutil.which(program[1]):
            continue
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.shell],
            cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, timeout=500, check=False,
        )  # fmt: skip
        said = f"{done.stdout[-1500:]}\n{done.stderr[-2500:]}"
        expected = re.search(r"exit code (\d+)", block.mark)
        assert done.returncode == int(expected[1] if expected else 0), (
            f"{page}:{block.line}: exit {done.returncode}\n{block.shell}\n{said}"
        )


@pytest.mark.timeout(580)
@pytest.mark.parametrize("page", runnable(slow=False))
def test_a_page_can_be_followed(page: str, copied: Path, tmp_path: Path, forked: list[str]) -> None:
    (folder := tmp_path / "work").mkdir()
    follow(page, of_lane(page, slow=False), copied, folder, forked)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", runnable(slow=True))
def test_a_page_can_be_followed_to_its_end(page: str, copied: Path, tmp_path: Path, forked: list[str]) -> None:
    (folder := tmp_path / "work").mkdir()
    follow(page, of_lane(page, slow=True), copied, folder, forked)
