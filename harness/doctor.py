"""What is missing on this machine, and what that costs."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
from pydantic import Field
from rich.text import Text

from perfquarry.data.errors import SandboxUnavailable
from perfquarry.data.figures import size
from perfquarry.data.git import version
from perfquarry.data.home import Home
from perfquarry.data.output import Listing, Report
from perfquarry.data.records import Record
from perfquarry.harness.environments.interpreters import find_interpreters
from perfquarry.harness.leases.eviction import inventory, make_room
from perfquarry.harness.leases.shared_folders import disk_bytes
from perfquarry.harness.measuring.callgrind import REMEDY, Callgrind
from perfquarry.harness.measuring.machine import cores_of_process
from perfquarry.harness.sandbox import choose_sandbox
from perfquarry.harness.sandbox.docker import own_image

MIN_DISK_BYTES = 10 * 1024**3
MIN_MEMORY_BYTES = 4 * 1024**3


class DoctorCheck(Record):
    """One thing looked at."""

    name: str
    ok: bool
    found: str
    cost: str = Field(default="", description="What it costs to be without it; empty when it is there.")
    remedy: str = Field(default="", description="What to do about it.")
    needed: bool = Field(default=False, description="Nothing can be curated without it.")


def verdict(checks: Sequence[DoctorCheck]) -> str:
    """The whole in one line."""
    missing = [check for check in checks if not check.ok]
    needed = ", ".join(check.name for check in missing if check.needed)
    if needed:
        return f"cannot work: {needed} missing"
    if not missing:
        return "ready"
    remarks = "remark" if len(missing) == 1 else "remarks"
    return f"works, with {len(missing)} {remarks}: {', '.join(check.name for check in missing)}"


def report(home: Home) -> Report:
    """What there is and what is missing; the exit code is 1 where nothing can be curated."""
    checks = examine(home)
    table = Listing(("", "check", "found"), head=False)
    for check in checks:
        mark = Text("✓", "green") if check.ok else Text("✗", "red") if check.needed else Text("!", "yellow")
        costs, remedy = ("\ncosts: ", "dim"), ("\nto do: ", "dim")
        more = () if check.ok else (costs, check.cost, remedy, check.remedy)
        table.add(mark, check.name, Text.assemble(check.found, *more))
    return Report(checks, [verdict(checks), table], int(any(check.needed and not check.ok for check in checks)))


def examine(home: Home) -> list[DoctorCheck]:
    """All checks, in the order in which a run needs them."""
    sandbox = _backend(
        "sandbox",
        "bubblewrap",
        lambda name: name,
        "strangers' code runs as a plain process: it can read your files and use the network",
        "Linux: install bubblewrap and allow unprivileged user namespaces; elsewhere use a machine of its own",
    )
    docker = _backend(
        "docker",
        "docker",
        lambda _: own_image(),
        "no images of tasks can be made; runs use bubblewrap where there is one",
        "start an engine that this user may use, then `make base-image`",
    )
    software = [_git(), sandbox, docker, _interpreters(), _compilers(), _valgrind()]
    return [*software, _cores(), _governor(), _load(), _memory(), _disk(home), _room(home), _keys()]


def _check(name: str, ok: bool, found: str, cost: str, remedy: str, *, needed: bool = False) -> DoctorCheck:
    help_with_it = {} if ok else {"cost": cost, "remedy": remedy}
    return DoctorCheck(name=name, ok=ok, found=found, needed=needed, **help_with_it)


def _git() -> DoctorCheck:
    found = version()
    numbers = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
    cost, remedy = "no repository can be mined", "install git 2.31 or newer"
    return _check("git", numbers >= (2, 31), found or "none", cost, remedy, needed=True)


def _backend(title: str, name: str, shown: Callable[[str], str], cost: str, remedy: str) -> DoctorCheck:
    try:
        return _check(title, True, shown(choose_sandbox(name).name), "", "")
    except SandboxUnavailable as error:
        return _check(title, False, str(error).splitlines()[0], cost, remedy)


def _interpreters() -> DoctorCheck:
    found = sorted({one.minor for one in find_interpreters()})
    words = ", ".join(f"{major}.{minor}" for major, minor in found)
    return _check(
        "interpreters",
        len(found) >= 4,
        words or "none",
        "changes older than these Pythons are rejected (no_interpreter) or fail to build",
        "install more with pyenv, uv python install, or your distribution",
        needed=not found,
    )


def _compilers() -> DoctorCheck:
    compiler, cargo = shutil.which("cc"), shutil.which("cargo")
    caches = [name for name in ("ccache", "sccache") if shutil.which(name)]
    missing = [name for name in ("ccache", *(["sccache"] if cargo else [])) if name not in caches]
    if not compiler:
        return _check("compilers", False, "none", "changes with native parts are rejected", "install gcc or clang")
    return _check(
        "compilers",
        not missing,
        ", ".join([Path(compiler).name, *(["cargo"] if cargo else []), *caches]),
        "native builds of neighbouring commits compile everything again: minutes instead of seconds each",
        f"install {' and '.join(missing)}",
    )


def _valgrind() -> DoctorCheck:
    found = Callgrind.find()
    return _check(
        "valgrind",
        found is not None,
        found.version if found else "none",
        "no instruction counts: speedups have the clock as their only witness (docs/counts.md)",
        REMEDY,
    )


def _cores() -> DoctorCheck:
    cores = cores_of_process()
    return _check(
        "cores",
        cores >= 2,
        f"{cores} x {platform.processor() or platform.machine()}",
        "the harness and the timed process share one core: timings are noisier",
        "measure on a machine with two cores or more",
    )


def _governor() -> DoctorCheck:
    files = list(Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor"))
    governors = sorted({file.read_text().strip() for file in files})
    return _check(
        "clock",
        governors in ([], ["performance"]),
        ", ".join(governors) or "no governor visible",
        "the clock rate changes while timings run: more blocks are disturbed or noisy",
        "cpupower frequency-set -g performance",
    )


def _load() -> DoctorCheck:
    busy = psutil.cpu_percent(interval=0.5) / 100 * (psutil.cpu_count() or 1)
    return _check(
        "load",
        busy < 0.5,
        f"{busy:.2f} cores busy",
        "blocks during which others use the core of a timing are repeated, and are noisier",
        "stop what else runs while timings are taken",
    )


def _memory() -> DoctorCheck:
    total = psutil.virtual_memory().available
    return _check(
        "memory",
        total >= MIN_MEMORY_BYTES,
        f"{total / 1024**3:.1f} GiB available",
        "builds and tests may be killed at their limit",
        "free some memory, or lower build.memory_bytes in --settings",
    )


def _disk(home: Home) -> DoctorCheck:
    place = next(one for one in (home.root, *home.root.parents) if one.exists())
    free = shutil.disk_usage(place).free
    return _check(
        "disk",
        free >= MIN_DISK_BYTES,
        f"{free / 1024**3:.0f} GiB free for {home.root}",
        "environments and clones of large repositories may not fit",
        "free some space or name another --home",
    )


def _room(home: Home) -> DoctorCheck:
    room = make_room(home, dry_run=True)
    sizes = dict.fromkeys(("environment", "tree", "artifacts", "build folder"), 0)
    for thing in inventory(home):
        sizes[thing.kind] += thing.bytes
    sizes |= {folder.name: disk_bytes(folder) for folder in (home.repositories, home.root / "tables")}
    kinds = ", ".join(f"{kind} {size(number)}" for kind, number in sizes.items())
    return _check(
        "home",
        not room.removed,
        f"{kinds}; budget of the first four {size(room.budget)}, gc would free {size(room.freed)}",
        "disk is taken by what can be made again",
        "perfquarry gc",
    )


def _keys() -> DoctorCheck:
    names = [name for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GITHUB_TOKEN") if os.environ.get(name)]
    return DoctorCheck(
        name="keys",
        ok=True,
        found=f"{', '.join(names) or 'none'} set; nothing here needs one (python {sys.version.split()[0]})",
    )
