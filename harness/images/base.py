"""Makes the base image on a machine without an image registry (Debian or Ubuntu, root).

    python -m perfquarry.harness.images.base [--package NAME]

A minimal system of the machine's own suite, so that the machine's interpreters, mounted into
containers, find the libraries they were linked to.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from perfquarry.data.children import Need, environment
from perfquarry.data.errors import InputError, SandboxUnavailable
from perfquarry.harness.rejections import tail
from perfquarry.harness.sandbox.docker import own_image
from perfquarry.harness.sandbox.engine import connected, find_image

PACKAGES = ("python3", "python3-gdbm", "libgomp1")
"""What is added to Debian's minimal system: its Python has the libraries interpreters are linked to."""
LEFT_OUT = ("var/cache/apt", "var/lib/apt/lists", "var/log", "usr/share/doc", "usr/share/man", "usr/share/locale")
KIND, SUITE = "perfquarry.image", "perfquarry.suite"
"""Labels of our images: 'base', 'interpreter', 'dependencies' or 'repository'; and the suite of the base."""


def ensure_base(suite: str = "", packages: Sequence[str] = (), *, anew: bool = False) -> str:
    """The name of the base image, made when it is not there: about a minute, 200 MB.

    Args:
        suite: of Debian or Ubuntu, 'bookworm'; empty: this machine's.
        packages: more of its packages: compilers (`build-essential`) for native builds in containers.
        anew: make it even when it is there.

    Raises:
        InputError: this machine or user cannot make it.
        SandboxUnavailable: no engine, or debootstrap failed.
    """
    name = f"perfquarry/base:{suite}" if suite else own_image()
    with connected("look for the base image") as api:
        if not anew and find_image(api, name) is not None:
            return name
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise InputError(
            f"making {name} needs root and debootstrap (Debian, Ubuntu: apt-get install debootstrap); "
            "elsewhere name an image of a registry in the settings (sandbox.image)"
        )
    with tempfile.TemporaryDirectory(prefix="pq-base-") as folder:
        root = Path(folder) / "root"
        _bootstrap(name.rpartition(":")[2], root, [*PACKAGES, *packages])
        _import(root, name)
    return name


def _bootstrap(suite: str, root: Path, packages: Sequence[str]) -> None:
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(packages)}", suite, str(root)]
    done = subprocess.run(
        command, env=environment(Need.NETWORK), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode != 0:
        said = tail(done.stdout.decode(errors="replace"))
        raise SandboxUnavailable(f"debootstrap could not make a system of {suite}: {said}")
    for name in LEFT_OUT:
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir(parents=True)
    (root / "root").chmod(0o755)  # interpreters of root's home are mounted below, and run as nobody


def _import(root: Path, name: str) -> None:
    repository, _, tag = name.rpartition(":")
    labels = [f"LABEL {KIND}=base", f"LABEL {SUITE}={tag}"]
    command = ["tar", "--directory", str(root), "--one-file-system", "--create", "."]
    with (
        subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE) as archive,
        connected("import the base image") as api,
    ):
        api.import_image(archive.stdout, repository=repository, tag=tag, changes=labels, stream_src=True)
    if archive.returncode != 0:
        with connected("remove an incomplete base image") as api:
            api.remove_image(name, force=True)
        raise SandboxUnavailable(f"tar failed on {root}: is the disk full?")


def main() -> None:
    """Makes the image and prints its name."""
    parser = argparse.ArgumentParser(
        prog="python -m perfquarry.harness.images.base", description="Makes the base image."
    )
    parser.add_argument("--suite", default="", help="of Debian or Ubuntu; default: this machine's")
    parser.add_argument("--package", action="append", default=[], help="one more package, may be repeated")
    parser.add_argument("--anew", action="store_true", help="make it even when it is there")
    asked = parser.parse_args()
    print(ensure_base(asked.suite, asked.package, anew=asked.anew))


if __name__ == "__main__":
    main()
