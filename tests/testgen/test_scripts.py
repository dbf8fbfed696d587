"""What is seen in a script's text before it is run."""

from __future__ import annotations

import textwrap

import pytest

from perfquarry.data.records import Reason
from perfquarry.testgen.scripts import faults_of
from tests.six_functions import REST

GOOD = """
import random
import datetime
import time
import numpy as np
from collections import namedtuple
from package import Thing
from package.sub import work as do

Pair = namedtuple("Pair", "a b")

class Own:
    def __init__(self):
        self._kept = 1
    def _own(self):
        return self._kept

def _make(n):
    random.seed(3)
    return [random.random() for _ in range(n)]

def setup():
    rng = random.Random(7)
    later = np.random.default_rng(seed=1).integers(5)
    old = np.random.RandomState(1).rand(3)
    start = datetime.datetime(2020, 1, 1), time.gmtime(0), time.strftime("%Y", time.gmtime(0))
    return Thing(rng.randint(1, 2), later, old), start, _make(3), Pair(1, 2)._replace(a=2), Own()._own()

def experiment(data):
    return do(data, getattr(data, "size", 1))
"""


def fault(text: str, private_allowed: bool = False) -> tuple[Reason, str] | None:
    found = faults_of(textwrap.dedent(text), {"package"}, private_allowed=private_allowed)
    return (found.reason, found.detail) if found else None


def with_setup(*lines: str) -> str:
    return GOOD + REST + "\ndef setup():\n" + "".join(f"    {line}\n" for line in lines)


def test_a_good_script_has_no_fault() -> None:
    assert fault(GOOD + REST) is None


@pytest.mark.parametrize(
    "text",
    ["def setup(:", "return 1", "x = '\0'", "x = '\ud800'", "def f():\n\tif 1:\n        pass", "(" * 10_000],
)
def test_what_is_no_python(text: str) -> None:
    assert (fault(GOOD + REST + text) or ("", ""))[0] == Reason.UNPARSABLE


@pytest.mark.parametrize(
    "name", ["setup", "experiment", "store_result", "load_result", "check_equivalence", "run_test"]
)
def test_each_of_the_six_functions_is_needed(name: str) -> None:
    assert fault((GOOD + REST).replace(f"def {name}(", f"def other_{name}(")) == (
        Reason.CONTRACT_BROKEN,
        f"it does not define {name}",
    )


@pytest.mark.parametrize(
    ("definition", "detail"),
    [
        ("def setup(size): return size", "needs other arguments than none"),
        ("def setup(*, size): return size", "needs other arguments than none"),
        ("def experiment(): return 1", "does not take data"),
        ("def experiment(data, size): return 1", "needs other arguments than data"),
        ("async def experiment(data): return 1", "coroutine"),
        ("def experiment(data):\n    for one in data:\n        yield one", "generator"),
        ("def store_result(result): pass", "does not take result, filename"),
        ("def run_test(eqcheck, reference, prefix): return 1.0", "needs other arguments"),
        ("def run_test(reference=False, eqcheck=False, prefix=''): return 1.0", "in this order"),
    ],
)
def test_the_functions_can_be_called_as_gso_does(definition: str, detail: str) -> None:
    found = fault(GOOD + REST + definition)
    assert found and found[0] == Reason.CONTRACT_BROKEN and detail in found[1]


@pytest.mark.parametrize(
    "definition",
    [
        "def setup(size=3): return size",
        "def experiment(*data): return 1",
        "def experiment(data, more=1): return 1",
        "def experiment(data):\n    return sorted(one for one in data) + list(map(lambda x: (yield), []))",
    ],
)
def test_more_that_can_be_called(definition: str) -> None:
    assert fault(GOOD + REST + definition) is None


def test_a_text_may_be_too_long() -> None:
    assert fault(GOOD + REST + "# " + "x" * 70_000) == (
        Reason.CONTRACT_BROKEN,
        f"its text has {len((GOOD + REST).encode()) + 70_002} bytes, more than 65536",
    )


USES = {
    Reason.UNDEFINED_NAME: ["return nowhere", "x = x + 1"],
    Reason.USES_NETWORK: [
        "import socket", "from urllib import request", "import urllib; return urllib.request.urlopen('x')",
        "import http.client as c", "from requests import get", "import asyncio; return asyncio.open_connection()",
    ],
    Reason.USES_TIME: [
        "return time.time()", "from time import time as t; return t()", "return datetime.datetime.now()",
        "from datetime import datetime as d; return d.utcnow()", "return datetime.date.today()", "time.sleep(1)",
        "return time.gmtime()", "return time.strftime('%Y')", "return time.perf_counter()",
        "import timeit as t; return t.default_timer()",
    ],
    Reason.USES_RANDOMNESS: [
        "return random.shuffle([1])", "from random import choice; return choice([1])", "return np.random.rand(3)",
        "from numpy.random import normal; return normal()", "return random.Random()", "random.seed(); return 1",
        "random.seed(None); return random.random()", "return np.random.default_rng()", "return np.random.RandomState()",
        "return np.random.default_rng(None)", "return sorted([1], key=lambda _: random.random())",
        "import os; return os.urandom(3)", "import uuid; return uuid.uuid4()", "import secrets as s; s.choice('a')",
        "return random.SystemRandom()", "np.random.seed(1); return random.random()",
    ],
    Reason.USES_PRIVATE_API: [
        "import package._hidden", "from package import _hidden", "from package._hidden import x",
        "return Thing._hidden", "import package as p; return p.sub._hidden(1)", "return Thing(1)._hidden",
        "return getattr(Thing(1), '_hidden')", "return Thing(1).__hidden",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("reason", "line"), [(reason, line) for reason, lines in USES.items() for line in lines])
def test_what_a_script_must_not_use(reason: Reason, line: str) -> None:
    text = with_setup(line).replace(
        "    random.seed(3)\n    return [random.random() for _ in range(n)]", "    return [n]"
    )
    found = fault(text)
    assert found and found[0] == reason, found
    assert found[1].startswith("line ")


def test_what_a_helper_or_the_body_of_the_module_uses_counts_as_well() -> None:
    helper = with_setup("return Helper().make()") + "class Helper:\n    def make(self): return time.time()\n"
    assert (fault(helper) or ("", ""))[0] == Reason.USES_TIME
    assert (fault("import time\nSTART = time.time()\n" + GOOD + REST) or ("", ""))[0] == Reason.USES_TIME
    assert (
        fault(GOOD + REST + "def unused(): return time.time()\nif __name__ == '__main__':\n    time.time()\n") is None
    )


@pytest.mark.parametrize(
    "definition",
    [
        "def store_result(result, filename):\n    import pickle\n    pickle.dump(result, open(filename, 'wb'))",
        "from pickle import load as read\ndef load_result(filename): return helper(filename)\ndef helper(x): read(x)",
        "def load_result(filename): return np.load(filename, allow_pickle=True)",
        "def store_result(result, filename): result.to_pickle(filename)",
        "import joblib\ndef store_result(result, filename): joblib.dump(result, filename)",
    ],
)
def test_results_are_not_pickled(definition: str) -> None:
    assert (fault(GOOD + REST + definition) or ("", ""))[0] == Reason.USES_PICKLE


def test_to_pickle_may_be_what_is_timed() -> None:
    text = GOOD + REST + "import pickle\ndef experiment(data): return len(pickle.dumps(data))\n"
    assert fault(text + "def load_result(filename): return np.load(filename, allow_pickle=False)\n") is None


def test_a_package_about_the_network_may_use_itself_and_a_replay_what_is_private() -> None:
    text = with_setup("import requests", "return requests.models.Request()")
    assert faults_of(text, {"requests"}) is None
    private = with_setup("from package import _hidden", "return _hidden(Thing(1)._other)")
    assert fault(private, private_allowed=True) is None
