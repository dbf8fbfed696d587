"""Every gate can fire: for each check a release with one fault, on which this check fails and no other.

Whoever changes a release writes hashes and checksums anew, so these do not help.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from release_parts import base_layers, layer_of, publish, sample_release

from perfquarry.curation.release import check as gate
from perfquarry.curation.release import folder as files
from perfquarry.curation.release import task_folders
from perfquarry.curation.release.check import GoldRun
from perfquarry.curation.release.manifest import Manifest
from perfquarry.curation.release.writing import describe
from perfquarry.data.records import ReleasedFolder, ReleasedTask, Withdrawn
from perfquarry.data.schema import to_table
from tests.registry_server import ImageRegistry, registry_server

EXPERT = b"class Frob:\n    def run(self):\n        return _frob_memo()\n"


@dataclass(frozen=True)
class Runner:
    """Says what it is asked to say of every task."""

    gold: bool = True
    null: bool = True

    def run_gold(self, task: ReleasedTask) -> GoldRun:
        return GoldRun(task_id=task.task_id, gold=self.gold, gold_detail="no", null=self.null, null_detail="it gains")


@dataclass(frozen=True)
class Published:
    """A release with a task folder and an image."""

    folder: Path
    tree: Path
    registry: ImageRegistry

    @property
    def task(self) -> Path:
        (place,) = (self.folder / "tasks").iterdir()
        return place

    def rewrite(self, configuration: str, change: Callable[[dict[str, Any]], object]) -> None:
        """Changes the first row of a configuration."""
        file = files.parquet_of(self.folder, configuration)
        table = pq.read_table(file, partitioning=None)
        row, *rest = table.to_pylist()
        change(row)
        pq.write_table(pa.Table.from_pylist([row, *rest], schema=table.schema), file)

    def seal(self, **facts: object) -> None:
        """Writes hashes, manifest, card and checksums for what is there, as a forger would."""
        rows = files.read(self.folder, ReleasedFolder, "tasks")
        new = {"sha256": task_folders.hash_of(self.task), **facts}
        files.write_table(self.folder, "tasks", to_table([row.model_copy(update=new) for row in rows], ReleasedFolder))
        describe(self.folder, Manifest.read(self.folder))
        files.write_sums(self.folder)

    def image(self, *more: Mapping[str, bytes], base: bool = True) -> None:
        """Publishes the task with another image: the base's, with more layers."""
        layers = base_layers(self.tree, self.folder.parent) if base else [layer_of({"etc/issue": b"a system"})]
        image, size = publish(self.registry, [*layers, *map(layer_of, more)])
        for name in ("task.toml", "environment/Dockerfile"):
            text = (self.task / name).read_text()
            (self.task / name).write_text(
                text.replace(files.read(self.folder, ReleasedFolder, "tasks")[0].image, str(image))
            )
        manifest = Manifest.read(self.folder).model_copy(update={"image_bytes": size})
        manifest.write(self.folder)
        self.seal(image=str(image))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    place = tmp_path_factory.mktemp("published")
    (place / "registry").mkdir()
    with registry_server(place / "registry") as registry:
        yield Published(sample_release(place, registry=registry), place / "tree", registry)


@pytest.fixture
def published(made: Published, tmp_path: Path) -> Published:
    return Published(Path(shutil.copytree(made.folder, tmp_path / "copy")), made.tree, made.registry)


def outcomes(published: Published, runner: Runner | None = Runner()) -> dict[str, str]:
    checks, _ = gate.check(published.folder, runner)
    return {one.name: one.outcome for one in checks}


def failed(published: Published, runner: Runner | None = Runner()) -> list[str]:
    return [name for name, outcome in outcomes(published, runner).items() if outcome == "failed"]


def test_a_whole_release_passes_every_check(made: Published) -> None:
    assert set(outcomes(made).values()) == {"ok"}, gate.check(made.folder, Runner())


def edit(published: Published, name: str, old: str, new: str) -> None:
    text = (published.folder / name).read_text()
    assert old in text
    (published.folder / name).write_text(text.replace(old, new))


def sums(change: Callable[[Published], object]) -> Callable[[Published], object]:
    def changed(published: Published) -> None:
        change(published)
        files.write_sums(published.folder)

    return changed


def sealed(change: Callable[[Published], object]) -> Callable[[Published], object]:
    def changed(published: Published) -> None:
        change(published)
        published.seal()

    return changed


def within_task(name: str, text: str) -> Callable[[Published], object]:
    return sealed(lambda one: (one.task / name).write_text(text))


def taken_back(published: Published) -> None:
    row = Withdrawn(task_id=published.task.name, version="0.1.0", action="withdrawn", reason="wrong", sha256="")
    files.write_table(published.folder, "withdrawn", to_table([row]))
    manifest = Manifest.read(published.folder)
    manifest.model_copy(update={"rows": {**manifest.rows, "withdrawn": 1}}).write(published.folder)
    edit(published, "CHANGELOG.md", "First version", "wrong. First version")
    published.seal()


def lost(published: Published) -> None:
    image = files.read(published.folder, ReleasedFolder, "tasks")[0].image
    name, _, digest = image.removeprefix(f"{published.registry.host}/").partition("@")
    fresh = "0" * 64
    for file in ("task.toml", "environment/Dockerfile"):
        edit(published, f"tasks/{published.task.name}/{file}", digest, f"sha256:{fresh}")
    published.seal(image=f"{published.registry.host}/{name}@sha256:{fresh}")


FAULTS: dict[str, tuple[str, Callable[[Published], object]]] = {
    "a file is another one": ("checksums", lambda one: edit(one, "SCHEMA.md", "Columns", "Rows")),
    "a column has another name": ("schema", sums(lambda one: edit(one, "README.md", "data/gso/", "data/other/"))),
    "two tables say other things": ("rows", sums(lambda one: one.rewrite("gso", lambda row: row.update(api="x")))),
    "a speedup outside of its interval": (
        "figures", sealed(lambda one: one.rewrite("default", lambda row: row.update(low=9.0))),
    ),
    "a key in a text": ("no leak", within_task("instruction.md", "AKIA" + "ABCDEFGH" * 2)),
    "a recipe without an environment": (
        "recipes", sealed(lambda one: one.rewrite("default", lambda row: row["recipe"].update(source_roots=[]))),
    ),
    "a licence of another commit": (
        "licences",
        sealed(lambda one: [one.rewrite(name, lambda row: row.update(licence_url="https://github.com/a/b/blob/main/L"))
                            for name in ("default", "tasks")]),
    ),
    "a task that was taken back": ("withdrawn", taken_back),
    "a folder with one more file": ("task folders", sums(lambda one: (one.task / "more").write_text(""))),
    "a status of another content": (
        "task folders", sums(lambda one: (one.task / "instruction.md").write_text("Do what you like.\n")),
    ),
    "a folder nobody names": ("task folders", sums(lambda one: shutil.copytree(one.task, one.folder / "tasks" / "b"))),
    "another patch in the folder": ("task contents", within_task("solution/expert.patch", "+other")),
    "another image in the Dockerfile": ("task contents", within_task("environment/Dockerfile", "FROM debian\n")),
    "a file that is no text": ("task contents", within_task("tests/base.0.b64", "\0")),
    "no script of tests": ("task contents", sealed(lambda one: (one.task / "tests" / "test.sh").unlink())),
    "an image that is not there": ("images", lost),
    "an image without the base": ("images", lambda one: one.image(base=False)),
    "the size of other images": (
        "images",
        sealed(lambda one: Manifest.read(one.folder).model_copy(update={"image_bytes": 7}).write(one.folder)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_fails_one_check(published: Published, fault: str) -> None:
    check, change = FAULTS[fault]
    change(published)
    checks, runs = gate.check(published.folder, Runner())
    assert [one.name for one in checks if one.outcome == "failed"] == [check], checks
    assert runs == [] and [one.outcome for one in checks[-2:]] == ["not run", "not run"]


def test_what_is_run_fails_one_check_too(published: Published) -> None:
    assert failed(published, Runner(gold=False)) == ["gold passes"]
    assert failed(published, Runner(null=False)) == ["null patch fails"]


def test_every_check_is_among_the_faults(made: Published) -> None:
    fired = {check for check, _ in FAULTS.values()} | {"nothing later", "gold passes", "null patch fails"}
    assert fired == set(outcomes(made, None))


def archive(kind: str, name: str, content: bytes) -> bytes:
    into = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(into, "w") as packed:
            packed.writestr(name, content)
        return into.getvalue()
    with tarfile.open(fileobj=into, mode=f"w:{kind}") as opened:  # type: ignore[call-overload]
        info = tarfile.TarInfo(name)
        info.size = len(content)
        opened.addfile(info, io.BytesIO(content))
    return into.getvalue()


def repository_with_the_future(place: Path, *, packed: bool) -> dict[str, bytes]:
    """Files of a `.git` whose branch was moved back: the later commit is unreachable, and its objects are there."""

    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b.invalid", "-c", "gc.auto=0")
        subprocess.run(["git", *who, *arguments], cwd=place, check=True, capture_output=True)

    place.mkdir()
    git("init", "-q")
    for content in (b"base\n", EXPERT):
        (place / "old.py").write_bytes(content)
        git("add", ".")
        git("commit", "-q", "-m", "one")
    if packed:
        git("gc", "-q")
    git("reset", "-q", "--hard", "HEAD^")
    shutil.rmtree(place / ".git" / "logs")
    (place / ".git" / "ORIG_HEAD").unlink()
    return {
        f"testbed/{path.relative_to(place)}": path.read_bytes()
        for path in (place / ".git").rglob("*")
        if path.is_file()
    }


METADATA = "Metadata-Version: 2.1\nName: Sample\nVersion: {}\n"
LEAKS: dict[str, Callable[[Path], Mapping[str, bytes]]] = {
    "the expert's file": lambda _: {"usr/lib/python3/old.py": EXPERT},
    "the expert's file in a wheel": lambda _: {"opt/some-1.0-py3-none-any.whl": archive("zip", "pkg/old.py", EXPERT)},
    "the expert's file in a tar file": lambda _: {"opt/some.tar.gz": archive("gz", "old.py", EXPERT)},
    "an unreachable commit": lambda place: repository_with_the_future(place / "git", packed=False),
    "an unreachable commit in a pack": lambda place: repository_with_the_future(place / "git", packed=True),
    "the commit before a reset": lambda _: {"testbed/.git/ORIG_HEAD": b"a" * 40},
    "what was fetched": lambda _: {"testbed/.git/FETCH_HEAD": b"a" * 40},
    "a reflog": lambda _: {"testbed/.git/logs/HEAD": b"a"},
    "a branch of a remote": lambda _: {"testbed/.git/refs/remotes/origin/main": b"a" * 40},
    "pip's cache": lambda _: {"root/.cache/pip/http-v2/a/b": b"x"},
    "uv's cache": lambda _: {"root/.cache/uv/archive-v0/x/a.py": b"x"},
    "a later release, installed": lambda _: {"usr/lib/sample-9.0.dist-info/METADATA": METADATA.format("9.0").encode()},
    "a later release as a wheel": lambda _: {"opt/sample-1.3-py3-none-any.whl": archive("zip", "x", b"")},
    "a later release as a source archive": lambda _: {"opt/sample-1.2.1.tar.gz": archive("gz", "x", b"")},
    "a later release in an archive": lambda _: {
        "opt/all.zip": archive("zip", "sample.egg-info/PKG-INFO", METADATA.format("2").encode())
    },
}  # fmt: skip


@pytest.mark.parametrize("leak", LEAKS)
def test_what_came_later_is_found_in_an_image(published: Published, tmp_path: Path, leak: str) -> None:
    published.image(LEAKS[leak](tmp_path))
    assert failed(published) == ["nothing later"]


def test_what_a_later_layer_deletes_is_found(published: Published) -> None:
    published.image({"opt/old.py": EXPERT}, {"opt/.wh.old.py": b""})
    assert failed(published) == ["nothing later"]


def test_earlier_releases_and_other_packages_are_no_leak(published: Published) -> None:
    published.image({
        "usr/lib/sample-1.1.dist-info/METADATA": METADATA.format("1.1").encode(),
        "usr/lib/other-9.0.dist-info/METADATA": METADATA.format("9.0").replace("Sample", "other").encode(),
    })  # fmt: skip
    assert failed(published) == []


def test_what_cannot_be_asked_is_not_run(published: Published) -> None:
    gone = "127.0.0.1:9"  # nobody listens there
    for name in ("task.toml", "environment/Dockerfile"):
        edit(published, f"tasks/{published.task.name}/{name}", published.registry.host, gone)
    published.rewrite("tasks", lambda row: row.update(image=row["image"].replace(published.registry.host, gone)))
    published.seal()
    found = outcomes(published)
    assert {name for name, outcome in found.items() if outcome != "ok"} == {"images", "nothing later"}
    assert found["images"] == found["nothing later"] == "not run"
    checks, _ = gate.check(published.folder, Runner())
    assert gate.verdict(checks) == "not run"
    assert "cannot reach the registry" in next(one.why for one in checks if one.name == "images")


def test_a_release_without_folders_is_not_wholly_checked(release: Path) -> None:
    checks, _ = gate.check(release, Runner())
    idle = {one.name for one in checks if one.outcome == "not run"}
    assert idle == {"task folders", "task contents", "images", "nothing later"} and gate.verdict(checks) == "not run"


def test_a_link_in_a_folder_is_refused(published: Published) -> None:
    (published.task / "tests" / "link").symlink_to("/etc/passwd")
    assert "task folders" in failed(published)


def test_the_json_of_a_run_names_the_folder_it_is_of(published: Published) -> None:
    _, runs = gate.check(published.folder, Runner())
    assert [run.sha256 for run in runs] == [task_folders.hash_of(published.task)]
    written = json.loads(json.dumps([run.model_dump() for run in runs]))
    assert GoldRun.model_validate(written[0]) == runs[0]
