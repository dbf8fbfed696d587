"""Images of built sides, for published tasks: base, interpreter, dependencies, repository, each a layer.

Each layer's image is named by what it holds, so the changes of one repository that share an
environment share all layers but the last. Everything lies at its path on this machine, because
environments have theirs baked in.
"""

from __future__ import annotations

import re
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from filelock import FileLock

from perfquarry.data.errors import EnvironmentFailed, InputError, SandboxUnavailable
from perfquarry.data.home import Home
from perfquarry.data.records import content_id
from perfquarry.harness.building.checks import describe, environment_variables, interpreter_folder
from perfquarry.harness.contracts import BuiltSide, Command
from perfquarry.harness.images.base import KIND
from perfquarry.harness.images.oci import check_archive, write_archive
from perfquarry.harness.rejections import tail
from perfquarry.harness.sandbox.docker import DockerSandbox, own_image
from perfquarry.harness.sandbox.engine import connected, find_image
from perfquarry.harness.sandbox.hidden import PRIVATE, within

SYSTEM = Path("/usr")
"""Interpreters installed there are the base image's."""
PARTS = ("bin/python*", "lib/libpython*.so*", "lib/python{0}", "include/python{0}*", "openssl")
"""Of an installation of Python X.Y."""
NOT_RUN = re.compile(r".*/(site-packages|test/(test_[^/]*|__pycache__)|libpython[^/]*\.a|[^/]*\.opt-[12]\.pyc)")
"""Of an interpreter: its packages (a newer release of the target, say), its own tests, static libraries."""
GITS = re.compile(r"(.*/)?\.git")


@dataclass(frozen=True)
class SideImage:
    """An image in which one built side runs, with nothing of the host."""

    name: str
    """Its tag in the engine."""
    image_id: str
    layers: tuple[str, ...]
    """Digests of the layers' files, base first."""
    holds: tuple[Path, ...]
    """The paths in it: interpreter, environment, tree."""

    @property
    def sandbox(self) -> DockerSandbox:
        """Runs commands in it; the side's paths are the image's, not the host's."""
        return DockerSandbox(image=self.name, holds=self.holds)


@dataclass(frozen=True)
class Images:
    """The images of a home's built sides, in this machine's engine.

    Args:
        home: its lock keeps two processes from making one layer twice.
        base: a local image with the libraries that interpreters need; empty: our own base image.
    """

    home: Home
    base: str = ""

    def ensure(self, built: BuiltSide) -> SideImage:
        """The image of a built side; only layers that are not there are made.

        Raises:
            InputError: the side lies in /tmp, of which every sandbox has its own.
            SandboxUnavailable: no engine, no base image, or a layer could not be made.
            EnvironmentFailed: the interpreter does not run on the base image.
        """
        holds = self._holds(built)
        with self._locked():
            name = _layer("repository", self._environment(built), [built.tree], GITS, built.sha, str(built.tree))
        known = _known(name)
        return SideImage(name, known["Id"], tuple(known["RootFS"]["Layers"]), holds)

    def environment(self, built: BuiltSide) -> str:
        """Name of the image with a side's interpreter and dependencies, without its tree.

        Raises:
            InputError, SandboxUnavailable, EnvironmentFailed: as `ensure`.
        """
        with self._locked():
            return self._environment(built)

    def _environment(self, built: BuiltSide) -> str:
        parent, prefix = self.base or own_image(), interpreter_folder(built.python)
        if prefix != SYSTEM:
            parent = _layer("interpreter", parent, _installed(built.python), NOT_RUN, str(built.python.resolve()))
        name = _layer("dependencies", parent, [built.python.parents[1]], GITS, built.environment_id)
        _prove(name, built, self._holds(built))
        return name

    def _holds(self, built: BuiltSide) -> tuple[Path, ...]:
        holds = (interpreter_folder(built.python), built.python.parents[1], built.tree)
        if covered := [path for path in holds if within(path, PRIVATE)]:
            raise InputError(f"{covered[0]} would be hidden by a sandbox's own /tmp: use a --home elsewhere")
        return holds

    def _locked(self) -> FileLock:
        self.home.locks.mkdir(parents=True, exist_ok=True)
        return FileLock(self.home.locks / "images.lock")

    def remove(self, image: SideImage) -> None:
        """Removes an image of ours; layers that others share stay.

        Raises:
            InputError: it is not ours.
        """
        with connected(f"remove {image.name}") as api:
            found = find_image(api, image.name)
            if found is not None and KIND not in _labels(found):
                raise InputError(f"{image.name} is not an image of perfquarry: it stays")
            if found is not None:
                api.remove_image(image.name)


def export_image(name: str, path: Path) -> str:
    """Writes a local image to a file as an OCI layout in a tar archive, which `docker load` reads, too.

    Returns:
        The digest of its manifest, 'sha256:...': the same for the same image wherever it is written.
    """
    with tempfile.TemporaryFile(dir=path.parent) as saved, connected(f"export {name}") as api:
        for block in api.get_image(name):
            saved.write(block)
        saved.seek(0)
        return write_archive(saved, path)


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


def _known(name: str) -> dict[str, Any]:
    with connected(f"inspect {name}") as api:
        found = find_image(api, name)
    if found is None:
        raise SandboxUnavailable(f"there is no image {name}: make the base: `python -m perfquarry.harness.images.base`")
    return found


def _labels(found: dict[str, Any]) -> dict[str, str]:
    return found["Config"].get("Labels") or {}


def _layer(kind: str, parent: str, paths: Sequence[Path], left_out: re.Pattern[str], *facts: str) -> str:
    """The image of one more layer on a parent, made when it is not there; its name."""
    name = f"perfquarry/{kind}:{content_id(kind, _known(parent)['Id'], [str(path) for path in paths], *facts)}"
    with connected(f"make the image {name}") as api, tempfile.TemporaryDirectory(prefix="pq-layer-") as folder:
        if find_image(api, name) is not None:
            return name
        layer, context = Path(folder) / "layer.tar", Path(folder) / "context.tar"
        with tarfile.open(layer, "w") as archive:
            _add(archive, paths, left_out)
        recipe = f"FROM {parent}\nADD layer.tar /\nLABEL {KIND}={kind}\n".encode()
        with tarfile.open(context, "w") as archive:
            info = tarfile.TarInfo("Dockerfile")
            info.size = len(recipe)
            archive.addfile(info, BytesIO(recipe))
            archive.add(layer, "layer.tar")
        with context.open("rb") as file:
            _build(api, name, file)
    return name


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
