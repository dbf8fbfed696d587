"""A parent that is ended at any moment leaves no sandbox behind: while it starts, runs, or is being killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from perfquarry.data.errors import SandboxUnavailable
from perfquarry.harness.contracts import Command, Limits
from perfquarry.harness.sandbox import choose_sandbox, ending_together

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
KILLS = 40
# Starts as many processes as asked for, each of which runs a sandboxed command without end, and ends them by a signal.
DYING = """
    import os, random, signal, sys, time
    from pathlib import Path
    from perfquarry.harness.contracts import Command, Limits
    from perfquarry.harness.sandbox import choose_sandbox

    backend, mark, number, count, longest, limit = sys.argv[1], sys.argv[2], *map(float, sys.argv[3:])
    sandbox, chance = choose_sandbox(backend), random.Random(int(number))
    for _ in range(int(count)):
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            try:
                command = Command(("/bin/sleep", "605"), cwd=Path("/usr"), env={"MARK": mark}, limits=Limits(limit))
                sandbox.run(command)
            finally:
                os._exit(0)
        time.sleep(chance.uniform(0, longest))
        os.kill(pid, int(number))
        os.waitpid(pid, 0)
    """


def left(mark: str, seconds: float = 10.0) -> list[str]:
    """Living processes with the mark in their arguments or environment, after some time to go."""
    until = time.monotonic() + seconds
    while found := [one for one in psutil.process_iter() if _is_marked(one, mark)]:
        if time.monotonic() > until:
            break
        time.sleep(0.05)
    names = [f"{one.pid} {one.name()}" for one in found]
    for one in found:
        one.kill()
    return names


def _is_marked(process: psutil.Process, mark: str) -> bool:
    try:
        return process.pid != os.getpid() and (
            mark in " ".join(process.cmdline()) or process.environ().get("MARK") == mark
        )
    except psutil.Error:
        return False


def _skip_without(backend: str) -> None:
    try:
        choose_sandbox(backend)
    except (ValueError, SandboxUnavailable) as error:
        pytest.skip(f"NOT TESTED on {backend}: {error}")


@pytest.mark.parametrize(("longest", "limit"), [(0.03, 60.0), (0.08, 0.04)], ids=["starting", "being killed"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_sandbox_outlives_its_parent(number: signal.Signals, longest: float, limit: float) -> None:
    _skip_without("bubblewrap")
    mark = f"pq-kill-{os.urandom(6).hex()}"
    arguments = ("bubblewrap", mark, str(int(number)), str(KILLS), str(longest), str(limit))
    subprocess.run([sys.executable, "-c", textwrap.dedent(DYING), *arguments], cwd=ROOT, check=True, timeout=120)
    assert left(mark) == []


@pytest.mark.parametrize("backend", ["bubblewrap", "process"])
def test_an_interrupt_ends_the_commands_of_other_threads(backend: str) -> None:
    """Only the main thread hears of it; a build in another one must not go on for half an hour."""
    _skip_without(backend)
    sandbox, mark = choose_sandbox(backend), f"pq-kill-{os.urandom(6).hex()}"
    command = Command(("/bin/sleep", "606"), cwd=Path("/usr"), env={"MARK": mark}, limits=Limits(250.0))
    with ThreadPoolExecutor(2) as pool:
        with pytest.raises(KeyboardInterrupt), ending_together():
            running = [pool.submit(sandbox.run, command) for _ in range(2)]
            while sum(_is_marked(one, mark) and one.name() == "sleep" for one in psutil.process_iter()) < 2:
                time.sleep(0.05)
            raise KeyboardInterrupt
        assert [type(one.exception(20)) for one in running] == [KeyboardInterrupt] * 2
    assert left(mark) == []


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_an_ended_run_ends_soon_and_leaves_nothing(
    tmp_path: Path, number: signal.Signals, share: float, quick_demo: tuple[list[str], float]
) -> None:
    """The command itself: whatever stage it is in, no sandbox, git or uv goes on without it."""
    command, whole = quick_demo
    run = subprocess.Popen(
        [*command, "--home", str(tmp_path / "home")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    time.sleep(whole * share * random.Random(share).uniform(0.9, 1.1))
    run.send_signal(number)
    run.wait(timeout=20)
    assert left(str(tmp_path)) == []


@pytest.fixture(scope="session")
def quick_demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], float]:
    """The command line of a short run of the demo, and how long it takes undisturbed (seconds)."""
    settings = tmp_path_factory.mktemp("settings") / "quick.toml"
    settings.write_text("[measure]\nmax_pairs = 6\naa_every = 6\nturn_seconds = 0.02\nmost_turns = 5\n")
    command = [sys.executable, "-m", "perfquarry", "curate", "demo", "--no-server", "--limit", "2"]
    command += ["--settings", str(settings)]
    began = time.monotonic()
    home = tmp_path_factory.mktemp("undisturbed")
    subprocess.run([*command, "--home", str(home)], check=True, timeout=280, stdout=subprocess.DEVNULL)
    return command, time.monotonic() - began
