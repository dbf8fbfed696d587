from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from perfquarry.harness.environments.interpreters import MATURITY, RELEASED, Interpreter, choose, find_interpreters

INSTALLED = [Interpreter(Path(f"/python{v}"), Version(v)) for v in ("3.6.15", "3.9.18", "3.11.7", "3.13.0", "3.99.1")]


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("date", "wanted", "expected"),
    [
        ("2009-12-01", None, "3.6.15"),  # none had matured: the oldest
        ("2017-06-30", None, "3.6.15"),
        ("2021-04-01", None, "3.6.15"),  # 3.9 was out, for less than half a year
        ("2021-04-05", None, "3.9.18"),
        ("2023-06-01", None, "3.11.7"),
        ("2026-01-01", None, "3.13.0"),  # nothing is known of 3.99
        ("2026-01-01", "<3.11", "3.9.18"),
        ("2014-01-01", ">=3.7,!=3.9.*", "3.11.7"),
        ("2026-01-01", ">=3.50", "3.99.1"),
        ("2026-01-01", "<3", None),
        ("2026-01-01", "==3.10.*", None),
    ],
)
def test_choose(date: str, wanted: str | None, expected: str | None) -> None:
    chosen = choose(day(date), SpecifierSet(wanted) if wanted else None, INSTALLED)
    assert (str(chosen.version) if chosen else None) == expected


@pytest.mark.parametrize(
    ("tested", "wanted", "expected"),
    [
        (["2.7", "3.6", "3.9"], None, "3.9.18"),  # 3.11 had matured, but the project did not know it
        (["3.6", "3.9", "3.13"], None, "3.9.18"),  # 3.13 was out of reach
        (["3.6"], ">=3.9", "3.11.7"),
        (["2.7", "3.4"], None, "3.11.7"),
    ],
)
def test_versions_tested_with_come_first(tested: list[str], wanted: str | None, expected: str) -> None:
    chosen = choose(day("2023-06-01"), SpecifierSet(wanted) if wanted else None, INSTALLED, tested)
    assert chosen and str(chosen.version) == expected


def test_choose_does_not_depend_on_the_order() -> None:
    assert choose(day("2022-01-01"), None, INSTALLED) == choose(day("2022-01-01"), None, INSTALLED[::-1])
    assert choose(day("2022-01-01"), None, []) is None


def test_an_interpreter_matures_after_its_release() -> None:
    assert INSTALLED[1].matured == RELEASED[3, 9] + MATURITY
    assert INSTALLED[-1].matured is None


def test_every_found_interpreter_is_what_it_says() -> None:
    found = find_interpreters()
    assert found
    assert [i.version for i in found] == sorted({i.version for i in found})
    for one in found:
        facts = "import json, sys; print(json.dumps([sys.version.split()[0], sys.prefix == sys.base_prefix]))"
        said = json.loads(subprocess.check_output([one.path, "-I", "-c", facts]))
        assert said == [str(one.version), True]
    assert find_interpreters() is found


def test_broken_shims_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("python3.9", "exit 127"), ("python3.10", "echo '{'"), ("python3.8", "echo null")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    before = find_interpreters()
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert find_interpreters.__wrapped__() == before


def test_without_pyenv_those_on_the_path_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = find_interpreters()[-1]
    (tmp_path / f"python{known.minor[0]}.{known.minor[1]}").symlink_to(known.path)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert known.version in {i.version for i in find_interpreters.__wrapped__()}
