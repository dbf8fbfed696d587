"""Scripts under the probe: what is timed, stored and compared, and what they cannot make of it."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import coverage
import pytest

from perfquarry.harness.contracts import BuiltSide, Limits, ProbeItem, ProbeReport, ProbeRequest, Sandbox
from perfquarry.harness.probing.prober import PROBE, Prober
from tests.six_functions import REST

OVERLAY = Path(coverage.__file__).parents[1]
Probe = Callable[..., ProbeReport]

MODULE = """
CACHE = {}
def slow(n):
    return sum(
        range(n))
def cached(n):
    if n not in CACHE:
        CACHE[n] = slow(n)
    return CACHE[n]
"""
GOOD = "import module\ndef setup(): return 1000\ndef experiment(data): return [module.slow(data)]\n"


def script(text: str) -> str:
    """What it defines comes last, and wins."""
    return REST + textwrap.dedent(text)


@pytest.fixture
def probe(sandbox: Sandbox, tmp_path: Path, bare_python: Path) -> Probe:
    """Probes scripts by name in a tree that has `module`."""
    prober = Prober(sandbox, tmp_path / "scratch", overlay=lambda built: [OVERLAY])
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "module.py").write_text(MODULE)
    (tree / "test_module.py").write_text("import module\ndef test_slow(): assert module.slow(3) == 3\n")

    def run(mode: str, scripts: dict[str, str], **asked: object) -> ProbeReport:
        texts = {name: script(text) for name, text in scripts.items()}
        request = ProbeRequest.model_validate({"mode": mode, "scripts": texts, "max_calls": 5, **asked})
        built = BuiltSide("base", "sha", tree, bare_python, "e", (tree,))
        return prober.run(built, request, limits=Limits(wall_seconds=60.0))

    return run


def items_of(report: ProbeReport) -> dict[str, ProbeItem]:
    assert report.outcome == "finished", report.output
    return {item.node: item for item in report.items}


def test_only_experiment_is_timed_each_time_with_fresh_data(probe: Probe) -> None:
    code = """
        import time
        log = []
        def setup():
            time.sleep(0.2)
            log.append("setup")
            return []
        def experiment(data):
            assert data == []
            data.append(1)
            log.append("experiment")
            time.sleep(0.02)
        """
    counts = """
        from script_a import log
        def setup(): return 0
        def experiment(data): assert log == ["setup", "experiment"] * 3
        """
    calls = {"script-a": 2, "script-b": 1}
    items = items_of(probe("time", {"script-a": code, "script-b": counts}, warmups=1, calls=calls))
    item = items["script-a"]
    assert (item.outcome, item.calls, item.phase) == ("passed", 2, "")
    assert items["script-b"].outcome == "passed", items["script-b"].message
    assert all(0.02 <= one < 0.2 for one in [item.seconds, *item.samples]) and item.setup_seconds >= 0.2


def test_tests_and_scripts_share_a_process(probe: Probe) -> None:
    arguments = ["test_module.py::test_slow"]
    calls = {"test_module.py::test_slow": 3, "script-a": 4}
    items = items_of(probe("time", {"script-a": GOOD}, arguments=arguments, calls=calls))
    assert [(item.node, item.outcome, item.calls) for item in items.values()] == [
        ("test_module.py::test_slow", "passed", 3),
        ("script-a", "passed", 4),
    ]


FAILURES = {
    "load": "import nowhere_at_all",
    "setup": "def setup(): raise OSError('set-up')",
    "experiment": GOOD + "def experiment(data): raise SystemExit('left')",
    "false": GOOD + "class Empty(Exception):\n    def __bool__(self): return False\n"
    "def experiment(data): raise Empty\n",
}


@pytest.mark.parametrize("mode", ["check", "time", "coverage", "profile"])
def test_a_failure_names_the_function_and_the_others_go_on(probe: Probe, mode: str) -> None:
    scripts = {f"script-{phase}": code for phase, code in FAILURES.items()} | {"script-good": GOOD}
    items = items_of(probe(mode, scripts))
    assert items.pop("script-good").outcome == "passed"
    phases = {f"script-{phase}": phase for phase in FAILURES} | {"script-false": "experiment"}
    assert {node: item.phase for node, item in items.items()} == phases
    assert items["script-load"].message.endswith("ModuleNotFoundError: No module named 'nowhere_at_all'")
    assert items["script-experiment"].message.endswith("SystemExit: left")
    assert "perfquarry" not in "".join(item.message for item in items.values())


def test_results_are_stored_and_compared_by_the_script(probe: Probe) -> None:
    first = probe("time", {"script-a": GOOD}, store=True)
    assert items_of(first)["script-a"].phase == "", first.items
    files = first.results["script-a"]
    assert {name: json.loads(content) for name, content in files.items()} == {"_result.json": [499500]}

    again = items_of(probe("time", {"script-a": GOOD}, references=first.results))["script-a"]
    assert (again.outcome, again.phase, again.calls) == ("passed", "", 5)
    other = items_of(probe("check", {"script-a": GOOD}, references={"script-a": {"_result.json": b"[1]"}}))["script-a"]
    assert (other.outcome, other.phase) == ("failed", "compare") and "[1] became [499500]" in other.message


VACUOUS = {
    "nothing": "def check_equivalence(reference_result, current_result): pass",
    "itself": "def check_equivalence(a, b): assert len(a) == len(a)",
    "length": "def check_equivalence(a, b): assert len(a) == len(b)",
    "empty": "def experiment(data): return {'a': []}",
}


@pytest.mark.parametrize("vacuous", VACUOUS.values(), ids=VACUOUS)
def test_a_check_that_accepts_other_values_is_reported(probe: Probe, vacuous: str) -> None:
    code = GOOD + vacuous + "\n"
    stored = probe("check", {"script-a": code}, store=True)
    item = items_of(probe("check", {"script-a": code}, references=stored.results))["script-a"]
    assert (item.outcome, item.phase) == ("failed", "doubt"), item


def test_run_test_is_tried_as_gso_calls_it(probe: Probe) -> None:
    report = probe("check", {"script-a": GOOD + "def run_test(**options): return 'fast'", "script-b": GOOD}, store=True)
    items = items_of(report)
    assert (items["script-a"].outcome, items["script-a"].phase) == ("error", "run_test")
    assert "returned str" in items["script-a"].message
    assert list(report.results) == ["script-b"]


def test_coverage_shows_what_only_the_first_call_executes(probe: Probe) -> None:
    cached = "import module\ndef setup(): return module.slow(10)\ndef experiment(data): return module.cached(data)\n"
    items = items_of(probe("coverage", {"script-a": GOOD, "script-b": cached}, include=["module.py"]))
    assert items["script-a"].lines == items["script-a"].again == {"module.py": [4, 5]}
    assert items["script-b"].lines == {"module.py": [4, 5, 7, 8, 9]}
    assert items["script-b"].again == {"module.py": [7, 9]}


def test_profile_names_what_experiment_calls(probe: Probe) -> None:
    code = "import module\ndef setup(): return module.slow(10)\ndef experiment(data): return module.cached(data)\n"
    item = items_of(probe("profile", {"script-a": code}))["script-a"]
    assert set(item.functions) == {"module.py::cached", "module.py::slow"}
    assert item.callers == {"module.py::slow": ["module.py::cached"]}
    assert item.statistics["module.py::slow"][0] == 1


def test_a_script_that_runs_too_long_is_given_up_wherever_it_is(probe: Probe) -> None:
    loads = "import time\ntime.sleep(600)\n" + GOOD
    calls = GOOD + "def experiment(data):\n    while True: pass\n"
    scripts = {"script-loads": loads, "script-calls": calls, "script-good": GOOD}
    items = items_of(probe("check", scripts, test_timeout=0.5))
    assert {node: (item.outcome, item.phase) for node, item in items.items()} == {
        "script-loads": ("timeout", "load"),
        "script-calls": ("timeout", "experiment"),
        "script-good": ("passed", ""),
    }


@pytest.mark.parametrize("where", ["", "def experiment(data): "], ids=["load", "experiment"])
def test_a_script_that_ends_the_process_is_named(probe: Probe, where: str) -> None:
    report = probe("check", {"script-a": f"import os\ndef setup(): return 1\n{where}os._exit(3)\n"})
    assert report.outcome == "crashed"
    assert [(item.node, item.outcome) for item in report.items] == [("script-a", "crashed")]


FORGERS = {
    "nothing": "pass",
    "link": "os.symlink('/etc/hostname', filename)",
    "pipe": "os.mkfifo(filename)",
    "folder": "os.mkdir(filename)",
    "many": "[open(filename + str(n), 'w').close() for n in range(100)]",
    "large": "open(filename, 'w').truncate(2**20)",
    "no text": "open(os.fsencode(filename) + b'\\xff', 'w').close()",
    "elsewhere": "at = os.path.dirname(filename); os.rename(at, at + '2'); os.symlink(at + '2', at)",
}


@pytest.mark.parametrize("forgery", FORGERS.values(), ids=FORGERS)
def test_a_result_that_is_no_ordinary_small_file_fails_the_script(probe: Probe, forgery: str) -> None:
    code = GOOD + f"import os\ndef store_result(result, filename): {forgery}\ndef run_test(**options): return 1.0\n"
    report = probe("check", {"script-a": code, "script-good": GOOD}, store=True, result_bytes=1000)
    item = items_of(report)["script-a"]
    assert (item.outcome, item.phase) == ("failed", "store"), item
    assert list(report.results) == ["script-good"]


def test_what_is_kept_of_a_result_is_never_interpreted(probe: Probe) -> None:
    garbage = b"\x80\x04\x95garbage\xff"
    code = f"{GOOD}def store_result(result, filename): open(filename, 'wb').write({garbage!r})\n"
    report = probe("check", {"script-a": code + "def run_test(**options): return 1.0\n"}, store=True)
    assert report.results == {"script-a": {"_result.json": garbage}}


@pytest.mark.parametrize(("limit", "least", "most"), [(0.000001, 0.0, 0.00001), (0.002, 0.00195, 0.00205)])
def test_an_alarm_at_either_end_of_a_call_is_that_of_the_call(limit: float, least: float, most: float) -> None:
    """It may come before the first step of what is called, and anywhere between its last and the end of the limit."""
    code = """
        import random, sys, time
        sys.path.insert(0, sys.argv[1])
        from perfquarry_items import Loop
        from probe import Mode
        limit, least, most = map(float, sys.argv[2:])
        request = {"test_timeout": limit}
        loop, chosen = Loop(request, None, Mode(request), []), random.Random(7)
        def spin():
            until = time.perf_counter() + chosen.uniform(least, most)
            while time.perf_counter() < until: pass
            return "done"
        ends = [loop.guarded(spin) for _ in range(3000)]
        done, given_up = [value == "done" for value, _, _ in ends], [bool(message) for _, _, message in ends]
        print(sum(done), sum(given_up), sum(map(max, done, given_up)))"""
    command = [sys.executable, "-c", textwrap.dedent(code), str(PROBE.parent), *map(str, (limit, least, most))]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    done, given_up, either = map(int, ended.stdout.split())
    assert given_up and either == 3000 and (done or not least)
