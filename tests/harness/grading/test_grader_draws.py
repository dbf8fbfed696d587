"""Data of scripts that are drawn for each call, and what of the probe's answers a module under test can change."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perfquarry.harness.probing.prober import PROBE
from tests.six_functions import REST

SEEDED = """
import random
SEED = 3
def setup():
    chance = random.Random(SEED)
    random.seed(a=4)
    return [chance.random(), random.random()]
def experiment(data): return data
"""
TESTS = """
import pytest

@pytest.mark.parametrize("n", [1, 2])
def test_one(n):
    assert (
        n
    )

class TestTwo:
    def test_two(self):
\t    with open(__file__) as file:
\t        assert file.read()

def test_line(): assert True
"""
Ask = Callable[..., dict[str, Any]]


@contextlib.contextmanager
def probed(part: Any, folder: Path, code: str, more: str = "") -> Iterator[Ask]:
    """A process of the probe that has a script loaded, which takes requests; its results lie below `folder`."""
    channel, tree = part("channel"), folder / "tree"
    tree.mkdir()
    (tree / "evil.py").write_text(more)
    names = {name: str(folder / name) for name in ("ask", "answer")}
    channel.make_pipes(names["ask"], names["answer"])
    request = {
        "mode": "turns", "arguments": [], "scripts": {"script-a": REST + code}, "calls": {}, "extra_paths": [],
        "draws": {}, "tree": str(tree), "source_roots": [str(tree)], "result": str(folder / "result"),
        "store": str(folder / "results"), "references": "", "keep": "last", "test_timeout": 20, "channel": names,
    }  # fmt: skip
    process = subprocess.Popen([sys.executable, "-s", PROBE, "-"], stdin=subprocess.PIPE)
    ends = channel.Channel(names["ask"], names["answer"], lambda: process.poll() is None)
    try:
        assert process.stdin
        with process.stdin:
            process.stdin.write(json.dumps(request).encode())
        assert ends.receive(60)["ready"] == {"script-a": "script"}
        yield lambda *words: ends.ask(60, *words)[0]
    finally:
        process.kill()
        process.wait()
        ends.close()


def test_each_call_has_the_data_of_its_draw(part: Any, tmp_path: Path) -> None:
    found: dict[int | None, Any] = {}
    with probed(part, tmp_path, SEEDED) as ask:
        for drawn in (None, 1, 2, 1, None):
            for words in (["prepare", "script-a", 0.5, drawn], ["run", "script-a"], ["finish", "script-a"]):
                answer = ask(*words)
                assert answer["outcome"] == "passed", answer
            assert answer["seeds"] == 2
            (result,) = part("stored").take_stored(str(tmp_path), ("results", "script-a")).values()
            assert found.setdefault(drawn, result) == result, "the same data for the same number"
    assert len(set(found.values())) == 3


@pytest.mark.parametrize(
    "patch",
    [
        "import json\njson.JSONEncoder.encode = json.JSONEncoder.iterencode = lambda self, value, *rest: '{}'",
        "import json\njson.dumps = lambda value, **options: '{}'\njson.loads = lambda text, **options: {}",
        "import builtins\nbuiltins.open = None",
        "import io, os\nos.write = io.open = None",
    ],
)
def test_a_patched_library_changes_no_answer(part: Any, tmp_path: Path, patch: str) -> None:
    code = "import evil\ndef setup(): return 0\ndef experiment(data): assert data\n"
    with probed(part, tmp_path, code, patch) as ask:
        answer = ask("call", "script-a", 0.5, {"token": "ours"})
    assert (answer["outcome"], answer["token"]) == ("failed", "ours")


TOLERANT = """
import random
def setup(): return random.Random(3).random()
def experiment(data): return {"value": data}
def check_equivalence(reference_result, current_result):
    for name, value in reference_result.items():
        assert abs(value - current_result[name]) <= 1e-9 * max(1.0, abs(value))
"""
UNSTORED = """
def setup(): return 1
def experiment(data): return {data}
def store_result(result, filename):
    with open(filename, "w") as file: json.dump(sorted(result), file)
def check_equivalence(reference_result, current_result):
    assert isinstance(current_result, set) and set(reference_result) == current_result
"""


@pytest.mark.parametrize(
    ("code", "stored", "outcome"),
    [
        (TOLERANT, '{"value": Infinity}', "failed"),
        (TOLERANT, "{}", "failed"),
        (TOLERANT, '{"value": 0.23796462709189137}', "passed"),
        (UNSTORED, "[1]", "passed"),
        (UNSTORED, "[2]", "failed"),
    ],
    ids=["infinite", "nothing", "equal", "one way only", "other"],
)
def test_what_a_stranger_stored_is_no_measure_of_its_own(tmp_path: Path, code: str, stored: str, outcome: str) -> None:
    """A tolerance that is a part of the reference, and a loop over its keys, accept what they should refuse."""
    references, tree = tmp_path / "references" / "script-a", tmp_path / "tree"
    tree.mkdir()
    references.mkdir(parents=True)
    (references / "_result.json").write_text(stored)
    request = {
        "mode": "check", "arguments": [], "scripts": {"script-a": REST + code}, "calls": {}, "extra_paths": [],
        "draws": {"script-a": 0}, "tree": str(tree), "source_roots": [str(tree)], "result": str(tmp_path / "result"),
        "store": "", "references": str(tmp_path / "references"), "both_ways": True, "test_timeout": 20,
    }  # fmt: skip
    subprocess.run([sys.executable, "-s", PROBE, "-"], input=json.dumps(request).encode(), check=True)
    lines = map(json.loads, (tmp_path / "result").read_text().splitlines())
    assert [line["item"]["outcome"] for line in lines if "item" in line] == [outcome]


def test_a_test_that_must_fail_differs_by_its_end_alone(part: Any, tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(TESTS)
    tests = ["test_a.py::test_one[2]", "test_a.py::TestTwo::test_two", "test_a.py::test_line", "test_a.py::test_none"]
    twins = part("twins").Twins(str(tmp_path), tests)
    assert set(twins.nodes) == set(tests[:2])
    twins.put(str(tmp_path))
    ran = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests[:2], *twins.nodes.values()]
    done = subprocess.run(ran, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "2 failed, 2 passed" in done.stdout, done.stdout
