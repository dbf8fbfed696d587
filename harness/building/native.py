"""Native builds: commands run once in a sandboxed copy of a tree; what they add serves every equal tree."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from perfquarry.data.home import Home
from perfquarry.data.records import Reason, Record, content_id
from perfquarry.harness.building.build_folders import BuildFolder, Sources, locked_build_folder
from perfquarry.harness.building.checks import describe, environment_variables, interpreter_folder
from perfquarry.harness.building.toolchains import Toolchain, compilers_id, with_jobs
from perfquarry.harness.contracts import Command, Limits, Sandbox
from perfquarry.harness.environments.environment import Environment
from perfquarry.harness.leases.shared_folders import disk_bytes, make_shared
from perfquarry.harness.metadata.installed_files import VERSION
from perfquarry.harness.metadata.recipe import SITE, Recipe, absent_submodules
from perfquarry.harness.rejections import Rejection, tail
from perfquarry.harness.settings import BuildSettings
from perfquarry.harness.trees.checkouts import MTIME

LEAST_AT_ONCE = 2
"""Builds of a repository at the same time at least: a long one of one process (lib2to3, say) holds up no others."""
_LEFT_OUT = {"build", "__pycache__", ".git", SITE, ".pytest_cache", ".eggs"}
_LEFT_OUT_ENDINGS = {".o", ".obj", ".pyc"}
_ADDED_BYTES = 4 * 1024**3
"""Largest sum of sizes a build may add: copied, files with holes take all of it."""


class Artifacts(Record):
    """What a build added to a tree."""

    path: Path
    """Folder with the added files, laid out as in the tree."""
    how: str
    """'full: ...' or 'incremental: ...' with the reason."""
    seconds: float
    """Wall time, without that of waiting for another build."""
    bytes: int
    log: str


@dataclass(frozen=True)
class NativeBuilds:
    """The artifacts of a home, at `<home>/artifacts/<build_id>`."""

    home: Home
    sandbox: Sandbox
    settings: BuildSettings
    repo: str = "repository"
    """Builds of one repository share a compiler cache and build trees; no others do."""
    read_caches: Home | None = None
    """Home whose compiler cache is read, and not written; None: that of `home`, which is written."""

    def ensure(
        self, build_id: str, tree: Path, recipe: Recipe, environment: Environment, version: str
    ) -> Artifacts | Rejection:
        """What the recipe's commands add to the tree; built only when no equal build is there.

        Args:
            build_id: content address of all that decides the outcome.
            tree: a plain checkout; it is copied and stays as it is.
            environment: build requirements are installed in it; there is no network.
            version: for builds that would ask git for one.

        Returns:
            The artifacts, or BUILD_FAILED, SUBMODULE_MISSING or BUILD_TIMEOUT with the end of the output.
        """
        made, _ = make_shared(
            self.home.artifacts / build_id,
            self.home.locks / f"build-{build_id}.lock",
            Artifacts,
            lambda place: self._make(place, tree, recipe, environment, version),
            lambda artifacts: artifacts.path.is_dir(),
            memory_bytes=self.settings.memory_bytes,
        )
        return made

    def _make(
        self, place: Path, tree: Path, recipe: Recipe, environment: Environment, version: str
    ) -> Artifacts | Rejection:
        facts = [environment.environment_id, str(environment.python), recipe.build, recipe.variables, version]
        sources = Sources.of(tree, content_id("build tree", *facts, compilers_id()), version)
        count = max(LEAST_AT_ONCE, (os.cpu_count() or 1) // self.settings.jobs)
        with locked_build_folder(
            [self.home.compiled / self.repo / f"build-{n}" for n in range(count)], sources
        ) as build_folder:
            start = time.monotonic()
            how = build_folder.lay(sources)
            log, failed = self._run(build_folder, recipe, environment, version)
            if failed and how.startswith("incremental"):
                how = build_folder.lay(sources, anew=True)
                log, failed = self._run(build_folder, recipe, environment, version)
            if failed:
                build_folder.clear()
                lacks = failed == Reason.BUILD_FAILED and _names_one(log, absent_submodules(tree))
                return Rejection(Reason.SUBMODULE_MISSING if lacks else failed, tail(log))
            added = _added(build_folder.tree, tree, recipe.source_roots[0])
            if isinstance(added, Rejection):
                return added
            files = place / "files"
            files.mkdir()
            for source, name in added:
                (files / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, files / name)
            build_folder.keep(sources)
        seconds = time.monotonic() - start
        return Artifacts(path=files, how=how, seconds=seconds, bytes=disk_bytes(files), log=tail(f"{log}({how})"))

    def _run(
        self, build_folder: BuildFolder, recipe: Recipe, environment: Environment, version: str
    ) -> tuple[str, Reason | None]:
        """Runs the commands in the build tree; the log, and the reason if one fails."""
        caches, read_only = self.read_caches or self.home, self.read_caches is not None
        toolchain = Toolchain.find(caches, self.repo, build_folder.tree, self.settings.jobs, read_only=read_only)
        python = build_folder.environment(environment.python)
        env = environment_variables(python)
        own, system = env["PATH"].split(":", 1)
        env |= {
            "PATH": ":".join([own, *map(str, toolchain.path), system]),
            VERSION: version,
            "PBR_VERSION": version,
            "GIT_CEILING_DIRECTORIES": str(build_folder.tree.parent),  # not the version of what the home lies in
            "SOURCE_DATE_EPOCH": str(MTIME),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        linked, real = python.parent.parent, environment.python.parent.parent
        installed = (linked, real, interpreter_folder(environment.python))
        settings, log = self.settings, ""
        for command in recipe.build:
            text = with_jobs(command, settings.jobs)
            done = self.sandbox.run(
                Command(
                    argv=("/bin/sh", "-c", text),
                    cwd=build_folder.tree,
                    env={**env, **toolchain.env, **recipe.variables},
                    writable=(build_folder.tree, *toolchain.writable),
                    readable=(build_folder.tree, *installed, *toolchain.readable),
                    limits=Limits(wall_seconds=settings.timeout, memory_bytes=settings.memory_bytes, processes=1024),
                )
            )
            log += f"$ {text}\n{describe(done)}\n"
            if not done.ok:
                return log, Reason.BUILD_TIMEOUT if done.timed_out else Reason.BUILD_FAILED
        return log, None


def _names_one(log: str, absent: Sequence[str]) -> bool:
    """Whether a build that failed spoke of an absent submodule: that of the documentation hinders no compiler."""
    names = [PurePosixPath(path).name for path in absent]
    return any(f"/{name}" in log or f"{name}/" in log for name in names)  # as a part of a path


def _added(work: Path, tree: Path, root: str) -> list[tuple[Path, Path]] | Rejection:
    """(File, its place in the tree) of what the commands made; a rejection where it is too much, or too deep."""
    try:
        found = list(_found(work, tree, root))
        total = sum(path.stat().st_size for path, _ in found)
    except (OSError, RecursionError) as error:
        why = f"the files that the build left cannot be read: {type(error).__name__}"
        return Rejection(Reason.BUILD_FAILED, why)
    if total > _ADDED_BYTES:
        return Rejection(Reason.BUILD_FAILED, f"the build added {total} bytes; at most {_ADDED_BYTES} are taken over")
    return found


def _found(work: Path, tree: Path, root: str) -> Iterator[tuple[Path, Path]]:
    """Installed files beside the sources they belong to."""
    for path in _regular_files(work):
        name = path.relative_to(work)
        if not _LEFT_OUT & set(name.parts) and not (tree / name).exists():
            yield path, name
    for path in _regular_files(work / SITE):
        name = Path(root) / path.relative_to(work / SITE)
        if not _LEFT_OUT & set(name.parts) and name.parts[0] != "bin" and not (tree / name).exists():
            yield path, name


def _regular_files(folder: Path) -> Iterator[Path]:
    """Files of a folder that strangers' code wrote: no link is followed, the folder's own neither."""
    for path in [] if folder.is_symlink() else sorted(folder.rglob("*")):
        readable = not path.is_symlink() and path.is_file() and os.access(path, os.R_OK)
        if readable and path.suffix not in _LEFT_OUT_ENDINGS:
            yield path
