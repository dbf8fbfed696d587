"""Images of tasks: base, interpreter, dependencies, repository, each a layer.

Each layer's image is named by what it holds, so the tasks of one repository that share an
environment share all layers but the last. Interpreter and environment lie at their paths on this
machine, because environments have theirs baked in; the repository is `TESTBED`, the base with a
git repository of one commit.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any

from filelock import FileLock

from perfquarry.data.errors import EnvironmentFailed, InputError, SandboxUnavailable
from perfquarry.data.home import Home
from perfquarry.data.records import content_id
from perfquarry.harness.building.checks import describe, environment_variables, interpreter_folder
from perfquarry.harness.contracts import BuiltSide, Command
from perfquarry.harness.grading.task_folder import TESTBED, pack_repository
from perfquarry.harness.images.base import KIND
from perfquarry.harness.images.oci import OciImage, check_archive, unpack_saved, write_archive
from perfquarry.harness.rejections import tail
from perfquarry.harness.sandbox.docker import DockerSandbox, own_image
from perfquarry.harness.sandbox.engine import connected, find_image, known_image
from perfquarry.harness.sandbox.hidden import PRIVATE, within

SYSTEM = Path("/usr")
"""Interpreters installed there are the base image's."""
PARTS = ("bin/python*", "lib/libpython*.so*", "lib/python{0}", "include/python{0}*", "openssl")
"""Of an installation of Python X.Y."""
NOT_RUN = re.compile(r".*/(site-packages|test/(test_[^/]*|__pycache__)|libpython[^/]*\.a|[^/]*\.opt-[12]\.pyc)")
"""Of an interpreter: its packages (a newer release of the target, say), its own tests, static libraries."""
NOT_PUBLISHED = re.compile(r"(.*/)?(\.git|\.cache|direct_url\.json)")
"""Of an environment."""


@dataclass(frozen=True)
class TaskImage:
    """An image in which the base of a task runs, with nothing of the host."""

    name: str
    """Its tag in the engine."""
    image_id: str
    layers: tuple[str, ...]
    """Digests of the layers' files, base first."""
    holds: tuple[Path, ...]
    """The paths in it: interpreter, environment, repository."""

    @property
    def sandbox(self) -> DockerSandbox:
        """Runs commands in it; its paths are the image's, not the host's."""
        return DockerSandbox(image=self.name, holds=self.holds)


@dataclass(frozen=True)
class Images:
    """The images of a home's tasks, in this machine's engine.

    Args:
        home: its lock keeps two processes from making one layer twice.
        base: a local image with the libraries that interpreters need; empty: our own base image.
    """

    home: Home
    base: str = ""

    def ensure(self, built: BuiltSide, made: datetime) -> TaskImage:
        """The image of a task's base; only layers that are not there are made.

        Args:
            made: date of the repository's one commit.

        Raises:
            InputError: the side lies in /tmp, of which every sandbox has its own.
            SandboxUnavailable: no engine, no base image, or a layer could not be made.
            EnvironmentFailed: the interpreter does not run on the base image.
        """
        with FileLock(self.home.locks / "images.lock"), tempfile.TemporaryDirectory(prefix="pq-task-") as place:
            parent, archive = self._environment(built), Path(place) / "repository.tar.gz"
            pack_repository(built.tree, made, archive)
            with archive.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            # `sleep`, which keeps such containers alive, ignores the usual signal: each stop would take 10 s
            stop = "STOPSIGNAL SIGKILL"
            lines = [f"ADD repository.tar.gz {TESTBED}/", *_variables(built), f"WORKDIR {TESTBED}", stop]

            def write(folder: Path) -> list[str]:
                archive.rename(folder / archive.name)
                return lines

            name = _layer("repository", parent, write, content, *lines)
        known = known_image(name)
        return TaskImage(name, known["Id"], tuple(known["RootFS"]["Layers"]), (*_paths(built), Path(TESTBED)))

    def _environment(self, built: BuiltSide) -> str:
        if covered := [path for path in _paths(built) if within(path, PRIVATE)]:
            raise InputError(f"{covered[0]} would be hidden by a sandbox's own /tmp: use a --home elsewhere")
        parent, prefix = self.base or own_image(), interpreter_folder(built.python)
        if prefix != SYSTEM:
            write = _copying(_installed(built.python), NOT_RUN)
            parent = _layer("interpreter", parent, write, str(built.python.resolve()))
        write = _copying([built.python.parents[1]], NOT_PUBLISHED)
        name = _layer("dependencies", parent, write, str(built.python.parents[1]), built.environment_id)
        _prove(name, built, _paths(built))
        return name

    def remove(self, image: TaskImage) -> None:
        """Removes an image of ours; layers that others share stay.

        Raises:
            InputError: it is not ours.
        """
        with connected(f"remove {image.name}") as api:
            found = find_image(api, image.name)
            if found is None:
                return
            if KIND not in (found["Config"].get("Labels") or {}):
                raise InputError(f"{image.name} is not an image of perfquarry: it stays")
            api.remove_image(image.name)


def save_images(names: Sequence[str], folder: Path) -> list[OciImage]:
    """Writes local images as an OCI layout; what they share is there once."""
    with tempfile.TemporaryFile(dir=folder.parent) as saved:
        _save(names, saved)
        return unpack_saved(saved, folder)


def export_image(name: str, path: Path) -> str:
    """Writes a local image to a file as an OCI layout in a tar archive, which `docker load` reads, too.

    Returns:
        The digest of its manifest, 'sha256:...': the same for the same image and version of zlib.
    """
    with tempfile.TemporaryFile(dir=path.parent) as saved:
        _save([name], saved)
        return write_archive(saved, path)


def _save(names: Sequence[str], saved: IO[bytes]) -> None:
    with connected(f"save {', '.join(names[:3])}") as api:
        address = f"{api.base_url}/v{api.api_version}/images/get"  # the SDK's own method takes one name
        with api.get(address, params={"names": list(names)}, stream=True) as answer:
            answer.raise_for_status()
            for block in answer.iter_content(1024**2):
                saved.write(block)
    saved.seek(0)


def import_image(path: Path, digest: str) -> str:
    """Loads an exported image and returns its id.

    Raises:
        InputError: the file is not the image of that digest.
        SandboxUnavailable: the engine refused it, for a layer that is not what its digest says, say.
    """
    image_id = check_archive(path, digest)
    with path.open("rb") as file, connected(f"import {path}") as api:
        for line in api.load_image(file):
            if "error" in line:
                raise SandboxUnavailable(f"the engine refused {path}: {line['error']}")
        if find_image(api, image_id) is None:
            raise SandboxUnavailable(f"the engine took {path} and has no image {image_id}")
    return image_id


def _layer(kind: str, parent: str, write: Callable[[Path], list[str]], *facts: str) -> str:
    """The image of one more layer on a parent, made when it is not there; its name.

    Args:
        write: writes what the layer needs into a folder, and returns the lines of its Dockerfile.
        facts: what the layer holds, for its name.
    """
    name = f"perfquarry/{kind}:{content_id(kind, known_image(parent)['Id'], *facts)}"
    with connected(f"make the image {name}") as api, tempfile.TemporaryDirectory(prefix="pq-layer-") as place:
        if find_image(api, name) is not None:
            return name
        folder, context = Path(place) / "context", Path(place) / "context.tar"
        folder.mkdir()
        lines = [f"FROM {parent}", *write(folder), f"LABEL {KIND}={kind}"]
        (folder / "Dockerfile").write_text("\n".join(lines) + "\n", encoding="utf-8")
        with tarfile.open(context, "w") as archive:
            archive.add(folder, ".")
        with context.open("rb") as file:
            _build(api, name, file)
    return name


def _copying(paths: Sequence[Path], left_out: re.Pattern[str]) -> Callable[[Path], list[str]]:
    """Writes a layer with files and folders at their own paths."""

    def write(folder: Path) -> list[str]:
        with tarfile.open(folder / "layer.tar", "w") as archive:
            _add(archive, paths, left_out)
        return ["ADD layer.tar /"]

    return write


def _paths(built: BuiltSide) -> tuple[Path, ...]:
    return interpreter_folder(built.python), built.python.parents[1]


def _variables(built: BuiltSide) -> list[str]:
    """Lines of a Dockerfile: the environment's programs come first, and its interpreter finds the package."""
    roots = ":".join(str(PurePosixPath(TESTBED) / root.relative_to(built.tree)) for root in built.source_roots)
    programs = f"{built.python.parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return [f'ENV PATH="{programs}"', f'ENV PYTHONPATH="{roots}"']


def _build(api: Any, name: str, context: IO[bytes]) -> None:
    said = ""
    options = {"custom_context": True, "rm": True, "forcerm": True, "network_mode": "none", "use_config_proxy": False}
    for line in api.build(fileobj=context, tag=name, decode=True, **options):
        said += line.get("stream", "") + line.get("error", "")
        if "error" in line:
            raise SandboxUnavailable(f"the engine could not make {name}: {tail(said)}")


def _add(archive: tarfile.TarFile, paths: Sequence[Path], left_out: re.Pattern[str]) -> None:
    """Adds files and folders at their own paths, with the folders above them, as root's and readable by all."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if left_out.fullmatch(info.name) or not (info.isfile() or info.isdir() or info.issym() or info.islnk()):
            return None
        info.uid = info.gid = 0
        info.uname = info.gname = "root"
        info.mode = info.mode & 0o755 | (0o555 if info.isdir() else 0o444)
        return info

    above: set[Path] = set()
    for path in paths:
        for folder in [one for one in reversed(path.parents) if one not in above and one != Path("/")]:
            archive.add(folder, recursive=False, filter=plain)
            above.add(folder)
        archive.add(path, filter=plain)


def _installed(python: Path) -> list[Path]:
    """What of an installation an interpreter needs to run."""
    real = python.resolve()
    version = re.fullmatch(r"python(\d+\.\d+)", real.name)
    if version is None:
        raise InputError(f"cannot tell the version of {real} from its name: an image of it cannot be made")
    prefix = real.parent.parent
    return sorted(path for part in PARTS for path in prefix.glob(part.format(version[1])))


def _prove(image: str, built: BuiltSide, holds: tuple[Path, ...]) -> None:
    """Raises EnvironmentFailed unless the interpreter runs in the image, with nothing of the host."""
    command = Command(
        (str(built.python), "-c", "import hashlib, zlib"), cwd=Path("/"), env=environment_variables(built.python)
    )
    done = DockerSandbox(image=image, holds=holds).run(command)
    if not done.ok:
        raise EnvironmentFailed(
            f"{built.python} does not run on the base image: make that of this machine's suite "
            f"(`python -m perfquarry.harness.images.base`):\n{describe(done)}"
        )
