"""Releases that somebody tampered with: each tries one thing, and is refused before anything is run.

Whoever changes a release writes its checksums anew, so these do not help.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from release_parts import BUILDS, sample_release, sample_task
from simulated_timings import STAMP

from perfquarry.curation.measured_again import revalidate
from perfquarry.curation.release import check as gate
from perfquarry.curation.release import folder as files
from perfquarry.curation.release.check import GoldRun
from perfquarry.curation.revalidation import read_tasks
from perfquarry.data.errors import InputError
from perfquarry.data.home import Home
from perfquarry.data.records import ReleasedTask
from perfquarry.data.registry import Repository
from perfquarry.data.schema import to_table
from perfquarry.flows.settings import Settings
from perfquarry.harness.building.builder import Builder
from perfquarry.harness.sandbox import choose_sandbox
from perfquarry.harness.settings import BuildSettings

Change = Callable[[dict[str, Any]], object]
DAMAGE = "canary-of-this-machine"


def within(*path: str | int, value: object) -> Change:
    """Sets a value of the first row."""

    def change(row: dict[str, Any]) -> None:
        place: Any = row
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


def recipe(name: str, value: object) -> Change:
    return within("recipe", name, value=value)


REQUIREMENTS = {
    "an address": "evil @ https://example.org/evil-1.0.tar.gz",
    "a file": "evil @ file:///etc/passwd",
    "a bare address": "https://example.org/evil-1.0.tar.gz",
    "git": "git+https://example.org/evil",
    "another file of requirements": "-r/etc/passwd",
    "an index": "--index-url=https://example.org/simple",
    "an editable path": "-e .",
    "a path": "./evil",
    "an absolute path": "/tmp/evil.whl",
    "a range": "numpy>=1.0",
    "no version": "numpy",
    "any version": "numpy==1.*",
    "the version as it is written": "numpy===1.0",
    "two clauses": "numpy==1.0,!=1.1",
    "a marker": "numpy==1.0; os_name == 'posix'",
    "an option of a requirement": "numpy==1.0 --hash=sha256:00",
    "a second line": "numpy==1.0\n--index-url=https://example.org",
    "spaces for a second argument": "numpy==1.0 evil",
    "the environment of the user": "${HOME}==1.0",
    "an address with an extra": "evil[x] @ https://example.org/e.whl",
}
PATHS = ("../../../tmp/x", "/etc", "a/../../b", "-rf", "", ".", "..", "a\0b", "a\nb", "a b;c", "~root")
ROWS: dict[str, tuple[Change, str]] = {
    **{
        f"requirement: {what}": (recipe("requirements", [text]), "name==version")
        for what, text in REQUIREMENTS.items()
    },
    **{f"environment_id: {one!r}": (recipe("environment_id", one), "environment_id") for one in PATHS},
    **{f"repo: {one!r}": (within("repo", value=one), "repo") for one in PATHS},
    **{f"task_id: {one!r}": (within("task_id", value=one), "task_id") for one in PATHS},
    **{
        f"source_roots: {one!r}": (recipe("source_roots", [one]), "source_roots")
        for one in ("..", "/etc", "a/../..", "-c", "a:/tmp/evil", "~", "", "a\0b", "a//b", "\\\\host\\x")
    },
    **{
        f"tree: {one!r}": (recipe("tree", one), "tree")
        for one in ("--help", "HEAD", "main", "a" * 39, "A" * 40, "HEAD:../x", "--output=/tmp/x", "0" * 40 + "^{tree}")
    },
    **{
        f"commit: {one!r}": (within("base_commit", value=one), "base_commit")
        for one in ("--upload-pack=touch x", "HEAD~1", "refs/heads/main", "@{upstream}")
    },
    **{
        f"url: {one!r}": (within("url", value=one), "url")
        for one in (
            "ext::sh -c touch% x", "file:///etc", "/etc", "--upload-pack=x", "-u", "https://a:b@example.org/x",
            "fd::17", "ssh://-oProxyCommand=x/y", "https://example.org/x\n--y", "http://[", "git@-oProxyCommand=x:y",
        )
    },
    **{
        f"python: {one!r}": (recipe("python", one), "python")
        for one in ("/usr/bin/python3", "-c", "3.11", "3.11.7; touch x", "../3.11.7", "")
    },
    **{
        f"build_version: {one!r}": (recipe("build_version", one), "build_version")
        for one in ("1.0\nX=1", "$(touch x)", "-1", "1.0;x", "x" * 200)
    },
    **{
        f"test: {one!r}": (within("tests", value=[one]), "tests")
        for one in ("-p evil", "--rootdir=/", "/etc/test.py::t", "../x.py::t", "a.py::t\n-p", "--pyargs", "~/t.py::x")
    },
    **{
        f"system_packages: {one!r}": (recipe("system_packages", [one]), "system_packages")
        for one in ("-o=APT::x", "./evil.deb", "gcc=1.0", "gcc evil", "/tmp/evil.deb")
    },
    "workload: an option for pytest": (
        within("workloads", 0, value={"source": "unit-test", "code": "-p evil"}), "workloads",
    ),
    "workload: a test outside": (
        within("workloads", 0, value={"source": "unit-test", "code": "../../x.py::t"}), "workloads",
    ),
    "workload: a source that is none": (within("workloads", 0, value={"source": "shell"}), "workloads"),
    "workload: a name outside": (within("workloads", 0, value={"workload_id": "../x"}), "workloads"),
    "target: a file outside": (within("oracle_targets", value=["/etc/passwd::x"]), "oracle_targets"),
    "image: another name": (recipe("image_digest", "evil:latest"), "image_digest"),
}  # fmt: skip


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_release(tmp_path_factory.mktemp("releases"))


@pytest.fixture
def copy(release: Path, tmp_path: Path) -> Path:
    shutil.copytree(release, tmp_path / "copy")
    return tmp_path / "copy"


@dataclass
class Runner:
    """Notes what it was asked to run."""

    asked: list[str] = field(default_factory=list)

    def run_gold(self, task: ReleasedTask) -> GoldRun:
        self.asked.append(task.task_id)
        raise AssertionError("nothing is to be run")


def refused(folder: Path) -> str:
    """What `release check` finds; it must run no task."""
    runner = Runner()
    checks, runs = gate.check(folder, runner)
    assert runner.asked == [] and runs == []
    assert gate.verdict(checks) == "failed"
    return "\n".join(line for one in checks for line in one.problems)


def tampered(folder: Path, change: Change) -> None:
    """Changes the first row of `default`, and writes the checksums anew."""
    file = files.parquet_of(folder, "default")
    table = pq.read_table(file, partitioning=None)
    row, *rest = table.to_pylist()
    before = json.loads(json.dumps(row["workloads"]))
    change(row)
    for workload, old in zip(row["workloads"], before, strict=False):
        workload.update({name: value for name, value in old.items() if name not in workload})
    pq.write_table(pa.Table.from_pylist([row, *rest], schema=table.schema), file)
    files.write_sums(folder)


@pytest.mark.parametrize("what", list(ROWS)[::8])
def test_the_gate_runs_nothing_of_it(copy: Path, what: str) -> None:
    change, reason = ROWS[what]
    tampered(copy, change)
    assert reason in refused(copy)


@pytest.mark.parametrize("what", ROWS)
def test_a_row_that_names_more_than_a_task_is_refused(copy: Path, what: str) -> None:
    change, reason = ROWS[what]
    tampered(copy, change)
    with pytest.raises(InputError, match=f"is refused.*{reason}"):
        files.read_tasks(copy)


@pytest.mark.parametrize("what", ["requirement: an address", "environment_id: '../../../tmp/x'", "test: '-p evil'"])
def test_it_is_not_measured_again_either(copy: Path, tmp_path: Path, what: str) -> None:
    tampered(copy, ROWS[what][0])
    home = Home(tmp_path / "home")
    with pytest.raises(InputError, match="is refused"):
        revalidate(home, str(copy), None, [], Settings(), print)
    assert not home.root.exists()


def link(folder: Path, name: str, to: Path) -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(to)


def header(folder: Path, old: str, new: str) -> None:
    text = (folder / "README.md").read_text()
    assert old in text
    (folder / "README.md").write_text(text.replace(old, new))


def manifest(folder: Path, change: Change) -> None:
    facts = json.loads((folder / "release.json").read_text())
    change(facts)
    (folder / "release.json").write_text(json.dumps(facts))


FILES: dict[str, Callable[[Path, Path], object]] = {
    "a card that is a link to a file of this machine": lambda folder, out: link(folder, "README.md", out),
    "an additional link": lambda folder, out: link(folder, "plots/extra.svg", out),
    "a table that is a link": lambda folder, out: link(folder, "data/gso/test-00000-of-00001.parquet", out),
    "sources that are a link": lambda folder, out: link(folder, "sources/sample.pack", out),
    "lines of JSON that are a link": lambda folder, out: link(folder, "jsonl/gso.jsonl", out),
    "a card that names files outside": lambda folder, out: header(folder, "data/default/test-*", "../../x/test-*"),
    "a card that names absolute files": lambda folder, out: header(folder, "data/default/test-*", "/etc/test-*"),
    "a card whose configurations are none": lambda folder, out: header(folder, "data_files:", "other:"),
    "lines of JSON that are none": lambda folder, out: (folder / "jsonl/gso.jsonl").write_text("{"),
    "sources that are no pack": lambda folder, out: (folder / "sources/sample.pack").write_bytes(b"PACK" + bytes(40)),
    "a table that is none": lambda folder, out: files.parquet_of(folder, "timings").write_bytes(b"PAR1"),
    "a file of bytes that are no text": lambda folder, out: (folder / "CHANGELOG.md").write_bytes(b"\xff\xfe"),
}  # fmt: skip


@pytest.mark.parametrize("what", FILES)
def test_files_that_are_not_what_they_seem_are_refused(copy: Path, tmp_path: Path, what: str) -> None:
    out = tmp_path / "outside"
    out.write_text(f"{DAMAGE}\n")
    FILES[what](copy, out)
    links = [path for path in copy.rglob("*") if path.is_symlink()]
    if not links:
        files.write_sums(copy)
    said = refused(copy)
    assert said and DAMAGE not in said


@pytest.mark.parametrize(
    "change",
    [within("sources", 0, "repo", value="../x"), within("sources", 0, "url", value="ext::sh"), within("rows", value=7)],
)
def test_a_manifest_is_input_too(copy: Path, change: Change) -> None:
    manifest(copy, change)
    with pytest.raises(InputError, match=r"release\.json is damaged"):
        gate.check(copy, Runner())


def test_a_manifest_that_is_a_link_is_no_manifest(copy: Path, tmp_path: Path) -> None:
    shutil.copy(copy / "release.json", tmp_path / "outside")
    link(copy, "release.json", tmp_path / "outside")
    with pytest.raises(InputError, match="is no release"):
        gate.check(copy, Runner())


IMPORTED = {
    "requirements": ["evil @ https://example.org/e.whl"], "python": "/bin/sh", "base_sha": "--help",
    "url": "ext::sh -c x", "repo": "../../x", "task_id": "/etc/x",
}  # fmt: skip


@pytest.mark.parametrize("name", IMPORTED)
def test_a_table_of_tasks_is_input_too(tmp_path: Path, name: str) -> None:
    task = sample_task("a" * 40, "").model_copy(update={"head_sha": "b" * 40})
    pq.write_table(to_table([task]), tmp_path / "good.parquet")
    assert read_tasks(tmp_path / "good.parquet") == [task]
    pq.write_table(to_table([task.model_copy(update={name: IMPORTED[name]})]), tmp_path / "tasks.parquet")
    with pytest.raises(InputError, match=f"is refused: {name}"):
        read_tasks(tmp_path / "tasks.parquet")


@pytest.mark.parametrize(
    ("name", "value"),
    [("environment_id", "../../x"), ("requirements", ["-r/etc/passwd"]), ("source_roots", ["/etc"]), ("sha", "--help")],
)
def test_what_is_made_again_for_an_image_or_an_export_is_looked_at(tmp_path: Path, name: str, value: object) -> None:
    """Where the rows come from does not matter: a home's tables may be a copy of somebody else's."""
    home = Home(tmp_path / "home")
    stamp = {"environment_id": "e" * 16, "source_roots": ["."], "sha": "a" * 40, "python": "3.11.7"}
    rows = [one.model_copy(update={**stamp, **({name: value} if one.side == "head" else {})}) for one in BUILDS]
    repository = Repository(name="sample", codebase="owner/sample", url="", licence="MIT")
    builder = Builder(home, tmp_path / "clone", repository, choose_sandbox(), BuildSettings(), STAMP)
    with pytest.raises(InputError, match=f"cannot be made again: {name}"):
        builder.reopen(rows)
    assert not home.environments.exists()


def test_an_untouched_release_passes(release: Path) -> None:
    checks, _ = gate.check(release, None)
    assert gate.verdict(checks) == "not run", problems(checks)


def problems(checks: Iterable[gate.Check]) -> list[str]:
    return [line for one in checks for line in one.problems]
