"""What hostile and careless tests cannot make of the probe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from probed import Probe, by_name

from perfquarry.harness.contracts import Completed
from perfquarry.harness.probing.prober import read_report


def test_a_test_that_runs_too_long_is_given_up(probe: Probe) -> None:
    code = """
        import time
        def test_sleeps(): time.sleep(600)
        def test_swallows():
            for _ in range(3):
                try: time.sleep(600)
                except BaseException: pass
        def test_good(): pass"""
    items = by_name(probe("test_long.py", code, test_timeout=0.3))
    assert {name: item.outcome for name, item in items.items()} == {
        "test_sleeps": "timeout", "test_swallows": "timeout", "test_good": "passed"
    }  # fmt: skip


STUCK = """
    import time
    def test_good(): pass
    def test_stuck():
        while True:
            try: time.sleep(600)
            except BaseException: pass
    def test_later(): pass
"""


def test_a_test_that_cannot_be_interrupted_ends_the_process_and_is_named(probe: Probe) -> None:
    report = probe("test_stuck.py", STUCK, test_timeout=0.3)
    assert report.outcome == "crashed"
    assert [item.outcome for item in report.items] == ["passed", "timeout"]


def test_the_wall_limit_names_the_test_that_was_running(probe: Probe) -> None:
    report = probe("test_stuck.py", STUCK, wall=8.0)
    assert report.outcome == "timeout"
    assert [(item.node, item.outcome) for item in report.items] == [
        ("test_stuck.py::test_good", "passed"), ("test_stuck.py::test_stuck", "timeout")
    ]  # fmt: skip


@pytest.mark.parametrize(("end", "words"), [("os._exit(0)", "exit code 0"), ("os.kill(os.getpid(), 11)", "signal 11")])
def test_a_test_that_ends_the_process_is_named(probe: Probe, end: str, words: str) -> None:
    report = probe("test_end.py", f"import os\ndef test_a(): pass\ndef test_b(): {end}\ndef test_c(): pass")
    assert report.outcome == "crashed"
    assert [item.outcome for item in report.items] == ["passed", "crashed"] and words in report.items[1].message


def test_threads_left_behind_do_not_hold_the_process(probe: Probe) -> None:
    code = "import threading, time\ndef test_a(): threading.Thread(target=time.sleep, args=(600,)).start()"
    assert by_name(probe("test_thread.py", code))["test_a"].outcome == "passed"


def test_a_forked_child_does_not_report(probe: Probe) -> None:
    code = "import os\ndef test_a():\n    if os.fork() == 0: return\n    os.wait()\ndef test_b(): pass"
    report = probe("test_fork.py", code)
    assert report.outcome == "finished" and [item.outcome for item in report.items] == ["passed", "passed"]


def test_patched_clocks_do_not_reach_the_samples(probe: Probe) -> None:
    code = """
        import gc, json, os, time
        time.perf_counter = time.monotonic = time.time = lambda: 0.0
        json.dumps = lambda *a, **k: "{}"
        def test_work():
            time.sleep(0.02)"""
    item = by_name(probe("test_cheat.py", code, mode="time", warmups=0))["test_work"]
    assert item.samples and min(item.samples) >= 0.02


def test_sitecustomize_of_the_tree_is_not_loaded_into_the_probe(probe: Probe) -> None:
    code = "import sys\ndef test_a(): assert 'loaded' not in dir(sys)"
    report = probe("test_site.py", code, "sitecustomize.py", "import sys; sys.loaded = True")
    assert by_name(report)["test_a"].outcome == "passed"


def line(entry: dict[str, object]) -> str:
    return f"write({json.dumps(entry)!r})"


FORGERS = {
    "twice": line({"item": {"node": "test_forge.py::test_forge", "outcome": "passed"}}),
    "garbage": "write('not json')",
    "other kind": line({"check": 1}),
    "no object": "write('[1]')",
    "impossible time": line({"item": {"node": "x", "outcome": "passed", "samples": [1e6], "calls": 1}}),
    "negative time": line({"item": {"node": "x", "outcome": "passed", "samples": [-1.0], "calls": 1}}),
    "not a number": line({"item": {"node": "x", "outcome": "passed", "samples": [float("nan")], "calls": 1}}),
    "calls": line({"item": {"node": "x", "outcome": "passed", "samples": [1e-9], "calls": 2}}),
    "deep": "write('[' * 100000)",
    "binary": "open(path, 'ab').write(b'\\xff\\xfe\\n')",
    "fifo": "os.remove(path); os.mkfifo(path)",
    "link": "os.remove(path); os.symlink('/etc/hostname', path)",
    "folder": "os.remove(path); os.mkdir(path)",
    "huge": "os.truncate(path, 2**29)",
}


@pytest.mark.parametrize("forgery", FORGERS.values(), ids=FORGERS)
def test_a_forged_result_is_a_crash_and_never_an_exception(probe: Probe, forgery: str) -> None:
    code = f"""
import os
path = os.path.join(os.environ["HOME"], "result.jsonl")
def write(line):
    with open(path, "a") as file: file.write(line + "\\n")
def test_forge():
    {forgery}
"""
    report = probe("test_forge.py", code)
    assert (report.outcome, report.items) == ("crashed", [])
    assert "result refused" in report.output


def test_a_process_that_wrote_nothing_is_a_crash(tmp_path: Path) -> None:
    ended = Completed(0, None, b"out \xff", b"err", False, 1.0, 0.5)
    report = read_report(tmp_path / "missing", ended)
    assert (report.outcome, report.items, report.wall_seconds) == ("crashed", [], 1.0)
    assert report.output == "out \ufffderr"


def test_private_folders_are_removed(probe: Probe, tmp_path: Path) -> None:
    probe("test_a.py", "import os\ndef test_a(): os.mkdir(os.path.join(os.environ['HOME'], 'x'))")
    assert list((tmp_path / "scratch").iterdir()) == []


def test_the_tree_is_left_as_it_was(probe: Probe, folder: Path) -> None:
    probe("pkg/test_a.py", "def test_a(): assert True", "pkg/__init__.py", "", mode="time")
    assert sorted(path.name for path in folder.rglob("*")) == ["__init__.py", "pkg", "test_a.py"]
