"""What the gate looks for in the images of a release: that they are whole, hold the base, and nothing later."""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Self

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from perfquarry.curation.release import sources, task_folders
from perfquarry.curation.release.opened import NotRun, Opened
from perfquarry.data.errors import RegistryFailed
from perfquarry.data.records import ReleasedTask
from perfquarry.harness.grading.task_folder import TESTBED
from perfquarry.harness.images.contents import Contents, contents_of
from perfquarry.harness.images.registry import MissingImage, Reference, Registry
from perfquarry.harness.metadata.package import metadata_of
from perfquarry.harness.trees.clone_git import git

_TESTBED = PurePosixPath(TESTBED).name


@dataclass
class ImageReader:
    """Reads images of registries; each layer once, its digest checked."""

    read: dict[str, Contents] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of each blob that was named by a manifest."""
    _open: dict[str, Registry] = field(default_factory=dict)
    _closing: ExitStack = field(default_factory=ExitStack)
    _scratch: Path | None = None

    def __enter__(self) -> Self:
        self._scratch = Path(self._closing.enter_context(tempfile.TemporaryDirectory(prefix="pq-images-")))
        return self

    def __exit__(self, *failure: object) -> None:
        self._closing.close()

    def manifest(self, image: str) -> dict[str, Any]:
        """The manifest of an image by digest.

        Raises:
            MissingImage: the registry has it no more.
            NotRun: the registry cannot be asked.
        """
        reference = Reference.parse(image)
        body = self._asked(lambda: self._registry(reference).manifest(reference))
        found: dict[str, Any] = json.loads(body)
        for one in (found["config"], *found["layers"]):
            self.sizes[one["digest"]] = one["size"]
        self.sizes[reference.digest] = len(body)
        return found

    def contents(self, image: str) -> Contents:
        """All that is in an image.

        Raises:
            MissingImage: a blob is not there, or is another one.
            NotRun: the registry cannot be asked.
        """
        reference, whole = Reference.parse(image), Contents()
        for layer in self.manifest(image)["layers"]:
            digest = layer["digest"]
            if digest not in self.read:
                self.read[digest] = self._asked(lambda: self._layer(reference, digest))  # noqa: B023  # called at once
            whole.add(self.read[digest])
        return whole

    def _layer(self, reference: Reference, digest: str) -> Contents:
        assert self._scratch is not None
        file = self._scratch / "layer"
        self._registry(reference).download(reference, digest, file)
        try:
            return contents_of(file)
        except (tarfile.TarError, EOFError) as error:
            raise MissingImage(f"{reference}: its layer {digest} cannot be read: {error}") from error

    def _registry(self, reference: Reference) -> Registry:
        if reference.registry not in self._open:
            self._open[reference.registry] = self._closing.enter_context(Registry(reference.registry))
        return self._open[reference.registry]

    def _asked(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except RegistryFailed as error:
            raise NotRun(str(error)) from error


@dataclass(frozen=True)
class Trees:
    """The files of a task's base and of the expert's version, by git's id of their content."""

    base: Mapping[str, str]
    """Path by id."""
    expert: Mapping[str, str]
    """The same of what only the expert's version has."""
    names: frozenset[str]
    """Names the package may be distributed by, in normal form."""

    @classmethod
    def of(cls, folder: Path, task: ReleasedTask, scratch: Path) -> Trees:
        """From the sources of a release.

        Raises:
            InputError: the sources are damaged.
            ValueError: the patch does not apply.
        """
        clone = scratch / f"{task.repo}.git"
        sources.unpack(sources.pack_of(folder, task.repo), clone)
        head = sources.patched(clone, task.recipe.tree, task.patch)
        if head is None:
            raise ValueError("its patch does not apply to its base")
        base, expert = _blobs(clone, task.recipe.tree), _blobs(clone, head)
        later = {identity: path for identity, path in expert.items() if identity not in base}
        return cls(base, later, frozenset(map(canonicalize_name, _names(clone, task))))


def whole(opened: Opened, reader: ImageReader) -> Iterator[str]:
    """Whether every image is there, holds the base, and all are as large as the manifest says."""
    with tempfile.TemporaryDirectory() as scratch:
        tasks = {task.task_id: task for task in opened.tasks}
        for row in opened.folders:
            trees = Trees.of(opened.folder, tasks[row.task_id], Path(scratch))
            yield from (f"{row.task_id}: {what}" for what in islice(missing_in(reader.contents(row.image), trees), 3))
    found = sum(reader.sizes.values())
    promised = task_folders.TaskManifest.read(opened.folder).image_bytes
    if found != promised:
        yield f"the images hold {found:,} bytes, manifest.json says {promised:,}"


def nothing_later(opened: Opened, reader: ImageReader) -> Iterator[str]:
    """Whether an image holds what came after its base."""
    with tempfile.TemporaryDirectory() as scratch:
        tasks = {task.task_id: task for task in opened.tasks}
        for row in opened.folders:
            task = tasks[row.task_id]
            trees = Trees.of(opened.folder, task, Path(scratch))
            try:
                found = reader.contents(row.image)
            except MissingImage as error:
                raise NotRun(f"the images are not whole: {error}") from error
            yield from (f"{row.task_id}: {what}" for what in leaks_in(found, trees, task.version))


def leaks_in(found: Contents, trees: Trees, version: str) -> Iterator[str]:
    """What of an image shows more than the base: the expert's files, later releases, later objects of git, caches."""
    for identity, path in trees.expert.items():
        if identity in found.blobs:
            yield f"{found.blobs[identity]} is the expert's {path}"
    for name, later, place in sorted(found.distributions):
        if name in trees.names and PurePosixPath(place).parts[0] != _TESTBED and _is_later(later, version):
            yield f"{place} is {name} {later}, the base is {version or 'of unknown version'}"
    if len(found.commits) > 1:
        yield f"it holds {len(found.commits)} commits: the base's is one"
    yield from (f"{place} may show what came later" for place in sorted(set(found.traces)))


def missing_in(found: Contents, trees: Trees) -> Iterator[str]:
    """Files of the base that are missing in an image."""
    for identity, path in trees.base.items():
        if identity not in found.blobs:
            yield f"the base's {path} is missing"


def _is_later(version: str, base: str) -> bool:
    """Whether a release may be newer than the base; what cannot be compared may."""
    try:
        return Version(version) > Version(base)
    except InvalidVersion:
        return True


def _blobs(clone: Path, tree: str) -> dict[str, str]:
    listing = git(clone, "ls-tree", "-r", "-z", tree).decode(errors="surrogateescape")
    found: dict[str, str] = {}
    for line in filter(None, listing.split("\0")):
        facts, _, path = line.partition("\t")
        mode, kind, identity = facts.split()
        if kind == "blob" and mode != "120000":
            found.setdefault(identity, path)
    return found


def _names(clone: Path, task: ReleasedTask) -> Iterator[str]:
    yield from (task.repo, task.codebase.rpartition("/")[2])
    present = git(clone, "ls-tree", "--name-only", task.recipe.tree).decode(errors="replace").splitlines()

    def text(name: str) -> str:
        return git(clone, "show", f"{task.recipe.tree}:{name}").decode(errors="replace") if name in present else ""

    name = metadata_of(text).name
    if name:
        yield name
