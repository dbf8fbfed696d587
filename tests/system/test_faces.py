"""What people meet on the terminal: width, completion, pipes, homes that are empty or too new, Ctrl-C."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from perfquarry.data.demo import expected
from perfquarry.data.errors import InfrastructureError
from perfquarry.flows import cli
from tests.system.commands import command, heed_interrupts
from tests.system.conftest import Curated

Program = Callable[..., subprocess.CompletedProcess[str]]


FIRST_COLUMNS = {"task", "where"}


def words(forked: list[str], home: Path, columns: int, *arguments: str) -> list[str]:
    environment = {**os.environ, "COLUMNS": str(columns)}
    done = subprocess.run(
        [*forked, *arguments, "--home", str(home)], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    "name", ["tasks", "funnel", "workloads", "sampling", "statistics", "costs", "screen", "show", "problems", "gc"]
)
def test_no_word_is_broken_at_80_columns(curated: Curated, name: str, tmp_path: Path, forked: list[str]) -> None:
    home = curated.home
    if name == "gc":  # what tests beside this one use meanwhile is listed with another time
        home = curated.copied(tmp_path / "home")
    task = curated.printed["tasks"][0]["task_id"]
    arguments = {"show": ["show", task], "problems": ["problems", task], "gc": ["gc", "--all", "--dry-run"]}
    asked = arguments.get(name, [name, "demo"])
    # the wide one first: tests beside this one add to the home, and never take away
    wide, narrow = (words(forked, home, columns, *asked) for columns in (400, 80))
    rules = set("─")
    plots = set(" ▁▂▃▄▅▆▇█")
    lost = {word for word in wide if not set(word) <= rules | plots and "s)" not in word and "(" not in word}
    # a row that became a block begins with its first cell, without that column's name, and names the others: "kind: …"
    named = {word.rstrip(":") for word in narrow}
    assert lost - FIRST_COLUMNS <= named | set(narrow)


def test_problems_of_one_task(curated: Curated, perfquarry: Program) -> None:
    task = curated.printed["tasks"][0]["task_id"]
    whole, start = (perfquarry(curated.home, "problems", one).stdout for one in (task, task[:-3]))
    took = re.compile(r"\(\d+\.\d s\)")
    assert took.sub("", start) == took.sub("", whole) and task in whole


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("tasks", "demo"), 2, "perfquarry curate demo"),
        (("funnel", "demo"), 2, "perfquarry curate demo"),
        (("workloads", "demo"), 2, "perfquarry curate demo"),
        (("screen", "demo"), 2, "perfquarry curate demo"),
        (("sampling", "demo"), 0, "perfquarry curate demo"),
        (("costs",), 0, "perfquarry curate"),
        (("status", "--once"), 0, "perfquarry curate demo"),
    ],
)
def test_an_empty_home_says_what_comes_next(
    tmp_path: Path, perfquarry: Program, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = perfquarry(tmp_path, *arguments, code=code)
    assert said in done.stdout + done.stderr


def completed(home: Path, line: str) -> list[str]:
    """What bash is offered for a line that is not finished."""
    environment = {**os.environ, "_PERFQUARRY_COMPLETE": "complete_bash", "PERFQUARRY_HOME": str(home)}
    environment |= {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    program = "import sys; sys.argv[0] = 'perfquarry'; from perfquarry.flows.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.split()


def test_shells_complete_commands_repositories_and_recipes(tmp_path: Path) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "of-mine.toml").touch()
    assert completed(tmp_path, "perfquarry lead") == ["leaderboard"]
    assert completed(tmp_path, "perfquarry curate nump") == ["numpy"]
    assert completed(tmp_path, "perfquarry curate of-") == ["of-mine"]
    assert "exchange" not in completed(tmp_path, "perfquarry tasks ex")


def test_shells_complete_tasks_of_the_home(curated: Curated, tmp_path: Path) -> None:
    task = curated.printed["tasks"][0]["task_id"]
    assert completed(curated.home, f"perfquarry show {task[:-4]}") == [task]
    assert task in completed(curated.home, "perfquarry problems perf")
    assert completed(tmp_path, "perfquarry show perf") == []


def test_show_completion_prints_a_script(perfquarry: Program) -> None:
    assert "--install-completion" in perfquarry(None, "--help").stdout


@pytest.mark.parametrize("ending", ["| head -1", "| true", ">&-"])
def test_nobody_has_to_read_all_of_it(tmp_path: Path, ending: str) -> None:
    line = f"{sys.executable} -m perfquarry --help {ending}; {sys.executable} -m perfquarry status --json {ending}"
    environment = {**os.environ, "PERFQUARRY_HOME": str(tmp_path)}
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, env=environment)
    assert done.stderr == ""


def test_a_home_of_a_newer_version(curated: Curated, tmp_path: Path, perfquarry: Program) -> None:
    part = next((curated.home / "tables" / "tasks" / "repo=demo").glob("*.parquet"))
    for table in ("tasks", "changes"):
        source = next((curated.home / "tables" / table / "repo=demo").glob("*.parquet"))
        rows = pq.read_table(source)
        metadata = {**(rows.schema.metadata or {}), b"perfquarry.schema_version": b"99"}
        place = tmp_path / "tables" / table / "repo=demo" / part.name
        place.parent.mkdir(parents=True)
        pq.write_table(rows.replace_schema_metadata(metadata), place)
    done = perfquarry(tmp_path, "tasks", "demo", code=2)
    assert "newer" in done.stderr and len(done.stderr.splitlines()) == 1


def interrupted(arguments: list[str], ready: Callable[[], bool], by: signal.Signals = signal.SIGINT) -> tuple[int, str]:
    """Exit code and stderr of a program that gets Ctrl-C, or another signal, once it is ready."""
    process = subprocess.Popen(
        arguments,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_interrupts,
    )
    try:
        while process.poll() is None and not ready():
            time.sleep(0.05)
        os.killpg(process.pid, by)
        _, said = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    return process.returncode, said


def test_what_fails_after_ctrl_c_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C of a terminal ends git, too, whose failure may be noticed first: exit code 1, seen once."""

    def fails(**_: object) -> int:
        raise InfrastructureError("git ended by signal 2")

    monkeypatch.setattr(cli, "_asked", lambda: fails)
    monkeypatch.setattr(cli, "_interrupted", threading.Event())
    with pytest.raises(SystemExit) as failed:
        cli._done()
    assert failed.value.code == cli.FAILED
    cli._interrupted.set()
    assert cli._done() == cli.INTERRUPTED


@pytest.mark.parametrize(
    ("seen", "server", "by"),
    [
        ("logs", "--no-server", signal.SIGINT),
        *(
            pytest.param("cache/timings", "--server", end, marks=pytest.mark.slow)
            for end in (signal.SIGINT, signal.SIGTERM)
        ),
    ],
)
def test_ctrl_c_in_curate_says_how_to_go_on(tmp_path: Path, seen: str, server: str, by: signal.Signals) -> None:
    """Prefect speaks of what was ended in its own way, after the last word."""
    head = next(one.head_sha for one in expected() if one.speedup)
    words = ["curate", "demo", "--changes", head, server]
    code, said = interrupted(command(tmp_path, *words), lambda: (tmp_path / seen).exists(), by)
    assert code == 130 and "Traceback" not in said, said
    assert f"perfquarry {shlex.join(words)} --home" in said.splitlines()[-1]


def test_ctrl_c_in_revalidate_says_how_to_go_on(curated: Curated, tmp_path: Path) -> None:
    """While it measures; the whole takes some seconds."""
    home = curated.copied(tmp_path / "home")
    probes = (home / "cache" / "scratch").glob
    code, said = interrupted(command(home, "revalidate", "demo"), lambda: any(probes("probe-*")))
    assert code == 130 and "Traceback" not in said and "perfquarry revalidate demo" in said, said
