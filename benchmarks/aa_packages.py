"""Sides whose work is known: a copy of the same tree (A/A), and a package whose tests do exactly so much less work."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from perfquarry.harness.contracts import BuiltSide

GAINS = (0.0, 0.03, 0.05, 0.10, 0.20)
KINDS = ("instructions", "memory")
SIZES = {"short": 1, "middle": 10, "long": 100}
"""Sizes of a test: units of work are so many times 1,000 or 10."""

_TEST = '''\
"""Tests whose work is known: `amount` units, of the interpreter or of memory."""
import pytest

LESS = {less}
BLOCK = bytearray(8 * 1024 * 1024)


def amount(gain, whole):
    return round(whole * (1 - gain)) if LESS else whole


@pytest.mark.parametrize("size", {sizes})
@pytest.mark.parametrize("gain", {gains})
def test_instructions(gain, size):
    total = 0
    for number in range(amount(gain, 4000 * size)):
        total += number & 7
    assert total >= 0


@pytest.mark.parametrize("size", {sizes})
@pytest.mark.parametrize("gain", {gains})
def test_memory(gain, size):
    room = memoryview(BLOCK)
    step = 16 * 1024
    places = len(BLOCK) // step
    for number in range(amount(gain, 100 * size)):
        place = number * 7919 % places * step
        bytes(room[place : place + step])
'''


def with_known_gains(built: BuiltSide, folder: Path) -> tuple[BuiltSide, BuiltSide]:
    """Base and head, at paths of equal length, in the environment of a built side (it needs pytest)."""
    sides = []
    for name in ("base", "head"):
        tree = folder / f"known-{name}"
        tree.mkdir(parents=True)
        sizes = list(SIZES.values())
        text = _TEST.format(less=name == "head", sizes=sizes, gains=list(GAINS))
        (tree / "test_known.py").write_text(text, encoding="utf-8")
        sides.append(dataclasses.replace(built, tree=tree, source_roots=(tree,)))
    return sides[0], sides[1]


def known_nodes() -> dict[str, tuple[str, float]]:
    """Node ids of the package's tests, with kind and gain."""
    return {
        f"test_known.py::test_{kind}[{gain}-{size}]": (kind, gain)
        for kind in KINDS
        for gain in GAINS
        for size in SIZES.values()
    }


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """So many endless loops beside what is done, one for each core; ended at the end."""
    program = "while True: pass"
    loops = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
        for loop in loops:
            loop.wait()


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
