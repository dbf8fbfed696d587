"""A small release made of the sample change, with a real clone behind it."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sample_change import BUILDS, CHANGE, REPOSITORY, VERDICT, WORKLOADS, measured
from simulated_timings import MACHINE, STAMP

from perfquarry.curation.assembly import ChangeTexts, assemble
from perfquarry.curation.evidence import decide
from perfquarry.curation.release import check as gate
from perfquarry.curation.release.harbor_folders import write_task
from perfquarry.curation.release.manifest import Family, Manifest, Source
from perfquarry.curation.release.selection import ReleaseCandidate, Selection, select
from perfquarry.curation.release.sources import tree_of
from perfquarry.curation.release.writing import MadeFolders, write_release
from perfquarry.curation.settings import SelectSettings
from perfquarry.data.funnel import Funnel, StageCount
from perfquarry.data.records import ReleasedTiming, Revalidation, Task, Timing
from perfquarry.harness.contracts import BuiltSide
from perfquarry.harness.grading.task_folder import pack_repository
from perfquarry.harness.images.oci import OciLayout, unique_bytes
from perfquarry.harness.images.registry import Pushed, Reference, Registry
from tests.registry_server import ImageRegistry

STAGES = ("mine", "judge", "build", "generate", "measure", "select")


def repository(folder: Path) -> tuple[Path, str, str, str]:
    """A clone with a base and a head; both commits and the patch between them."""
    folder.mkdir(parents=True)

    def git(*arguments: str) -> str:
        who = ("-c", "user.name=A", "-c", "user.email=someone@somewhere.org")
        done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
        return done.stdout

    git("init", "--quiet")
    (folder / "pkg").mkdir()
    (folder / "pkg" / "old.py").write_text("class Frob:\n    def run(self):\n        return sum([1, 2, 3])\n")
    git("add", ".")
    git("commit", "--quiet", "-m", "base")
    (folder / "pkg" / "old.py").write_text("class Frob:\n    def run(self):\n        return _frob_memo()\n")
    git("commit", "--quiet", "-a", "-m", "head")
    base, head = git("rev-parse", "HEAD^").strip(), git("rev-parse", "HEAD").strip()
    return folder, base, head, git("diff", "--binary", "--full-index", base, head)


def rows() -> list[Timing]:
    return [*measured(0, 1.5, 1.4), *measured(1, 2.5, 2.4)]


def sample_task(base: str, patch: str) -> Task:
    evidence = decide(rows(), SelectSettings(), STAMP)
    texts = ChangeTexts(patch=patch, version="1.2")
    task = assemble(CHANGE, VERDICT, BUILDS, WORKLOADS, evidence, rows(), texts, REPOSITORY, SelectSettings(), STAMP)
    return task.model_copy(update={"base_sha": base})


def candidate(task: Task, tree: str, **more: object) -> ReleaseCandidate:
    build = next(one for one in BUILDS if one.side == "base")
    build = build.model_copy(update={"environment_id": "e" * 16, "source_roots": ["."]})
    facts = {"task": task, "base": build, "tree": tree, "tests": [one.code for one in WORKLOADS], **more}
    return ReleaseCandidate(**facts)  # type: ignore[arg-type]


def timings_of(selection: Selection) -> list[ReleasedTiming]:
    found = []
    for task in selection.rows:
        mine = {workload.workload_id for workload in task.workloads}
        for row in rows():
            if row.workload_id in mine:
                facts = row.model_dump(include=set(ReleasedTiming.model_fields))
                found.append(ReleasedTiming(task_id=task.task_id, **facts))
    return found


def manifest(version: str = "0.1.0") -> Manifest:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    stages = [
        StageCount(stage=name, entered=9 - place, kept=8 - place, pending=place) for place, name in enumerate(STAGES)
    ]
    source = Source(
        repo="sample", codebase="owner/sample", url=REPOSITORY.url, licence="MIT", tasks=1, mined_until=moment,
        funnel=Funnel(repository="sample", stages=stages),
        family=Family(workloads=4, accepted=2, max_p=0.01, max_confirming_p=0.01),
    )  # fmt: skip
    return Manifest(
        name="sample-tasks", version=version, made_at=moment, made_by="perfquarry 0.1.0", sources=[source],
        machines=[], rows={}, accepted_by_curators=0, left_out=[], oldest=None, newest=None,
    )  # fmt: skip


@dataclass(frozen=True)
class SampleFolders:
    """Task folders whose image is written by hand, without an engine, and pushed to a registry of the tests."""

    tree: Path
    registry: ImageRegistry

    def make(self, to: Path, selection: Selection) -> MadeFolders:
        to.mkdir()
        names, whole = {}, 0
        for task in selection.tasks:
            base = BuiltSide("base", task.base_sha, self.tree, Path("/env/bin/python"), "e" * 16, (self.tree,))
            image, whole = publish(self.registry, base_layers(self.tree, to.parent))
            write_task(task, base, str(image), to / task.task_id, problem=task.problem_realistic)
            names[task.task_id] = (f"perfquarry/{task.task_id}", str(image))
        return MadeFolders(names=names, image_bytes=whole)


def files_at(clone: Path, commit: str, to: Path) -> Path:
    """The files of a commit in a folder of their own."""
    archive = subprocess.run(["git", "archive", commit], cwd=clone, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(to, filter="data")
    return to


def base_layers(tree: Path, scratch: Path) -> list[bytes]:
    """A layer with a system of one file, and one with the base at its place, as `Images.ensure` makes them."""
    archive = scratch / "repository.tar.gz"
    pack_repository(tree, datetime(2020, 1, 2, tzinfo=UTC), archive)
    with tarfile.open(archive) as packed:
        content = {
            f"testbed/{one.name}": packed.extractfile(one).read()  # type: ignore[union-attr]
            for one in packed
            if one.isfile()
        }
    archive.unlink()
    return [layer_of({"etc/issue": b"a system"}), layer_of(content)]


def layer_of(content: Mapping[str, bytes]) -> bytes:
    """A layer: a tar archive of files."""
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w") as archive:
        for name, data in content.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return into.getvalue()


def publish(registry: ImageRegistry, layers: Sequence[bytes]) -> tuple[Reference, int]:
    """Pushes an image of layers; its reference and its bytes."""
    with tempfile.TemporaryDirectory() as place, Registry(registry.host) as opened:
        layout = OciLayout(Path(place))
        image = layout.add("", b'{"os":"linux"}', [layout.put_layer(io.BytesIO(layer)) for layer in layers])
        return opened.push(layout, image, "tests/sample", "one", Pushed()), unique_bytes([image])


def sample_release(tmp_path: Path, to: str = "release", registry: ImageRegistry | None = None) -> Path:
    """A whole release of one task, in a folder of `tmp_path`; with a registry, it has a task folder and an image."""
    clone, base, _, patch = repository(tmp_path / "clone")
    selection = select([candidate(sample_task(base, patch), tree_of(clone, base))], {}, {})
    [row] = selection.rows
    again = Revalidation(
        repo=row.repo, stage_version="1", config_hash="1", task_id=row.task_id, change_id=CHANGE.change_id, run_id="r1",
        status="rejected", reason="no_gain", python="3.11.7", machine=MACHINE, seconds=1.0,
    )  # fmt: skip
    folders = None
    if registry:
        folders = SampleFolders(files_at(clone, base, tmp_path / "tree"), registry)
    made = timings_of(selection)
    write_release(tmp_path / to, manifest(), selection, made, {"sample": clone}, None, [again], folders)
    return tmp_path / to


def failed(folder: Path) -> dict[str, list[str]]:
    """What the gate finds without running tasks: by check, its problems."""
    checks, runs = gate.check(folder, None)
    assert runs == [] and [one.name for one in checks if one.outcome == "not run"][-2:] == [
        "gold passes",
        "null patch fails",
    ]
    return {one.name: one.problems for one in checks if one.outcome == "failed"}
