"""The Docker engine: a connection to it, whose containers are whose, and removing those whose owner crashed."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import docker
import psutil
import requests
from docker.errors import APIError, DockerException, NotFound
from docker.utils import kwargs_from_env

from perfquarry.data.errors import SandboxUnavailable

TIMEOUT = 120
"""Seconds the engine gets to answer one request."""
SOCKET = "unix:///var/run/docker.sock"
HOST, PID, STARTED = "perfquarry.host", "perfquarry.pid", "perfquarry.started"
"""Labels of every container: the machine and process namespace of its owner, its process id, and when that started."""
CLOCK_STEP = 2.0
"""Seconds by which two readings of one process's start may differ: the machine's clock may have been set meanwhile."""
GONE, BUSY = 404, 409
"""The engine's answers for a container that is not there, and for one that just ends or is being removed."""


@contextlib.contextmanager
def connected(doing: str) -> Iterator[docker.APIClient]:
    """A connection of its own to the engine (`DOCKER_HOST`, else the system's socket), closed at the end.

    Args:
        doing: what is done with it, for the error: 'start a container'.

    Raises:
        SandboxUnavailable: the engine cannot be reached, or refused what was asked of it inside.
    """
    api = None
    try:
        settings = kwargs_from_env()
        _check_socket(settings.get("base_url") or SOCKET)
        api = docker.APIClient(**settings, version="auto", timeout=TIMEOUT)
        yield api
    except (DockerException, requests.RequestException) as error:
        said = (isinstance(error, APIError) and error.explanation) or str(error)
        raise SandboxUnavailable(
            f"cannot {doing}: {str(said)[:500]}; see that a Docker engine runs and that this user may use it "
            "(DOCKER_HOST, the group 'docker')"
        ) from error
    finally:
        if api is not None:
            api.close()


def _check_socket(url: str) -> None:
    """Raises when there is no such socket: the SDK would, too, and leave a descriptor open."""
    if url.startswith("unix://") and not Path("/", url.removeprefix("unix://")).is_socket():
        raise DockerException(f"there is no engine's socket {url}")


def owner_labels() -> dict[str, str]:
    """Labels that say whose a container is: this process's."""
    me = psutil.Process()
    return {HOST: _host(), PID: str(me.pid), STARTED: f"{me.create_time():.2f}"}


def sweep(api: docker.APIClient) -> list[str]:
    """Removes the containers of owners on this machine that are dead, all others stay; the ids of the removed."""
    labelled = api.containers(all=True, filters={"label": [f"{HOST}={_host()}"]})
    left = [one["Id"] for one in labelled if not _alive(one["Labels"])]
    for container in left:
        remove(api, container)
    return left


def remove(api: docker.APIClient, container: str) -> None:
    """Kills and removes a container; nothing happens when it is not there."""
    try:
        api.remove_container(container, force=True, v=True)
    except APIError as error:
        if error.status_code not in (GONE, BUSY):
            raise


def kill(api: docker.APIClient, container: str) -> None:
    """Kills every process of a container, if it still runs."""
    try:
        api.kill(container)
    except APIError as error:
        if error.status_code not in (GONE, BUSY):
            raise


def find_image(api: docker.APIClient, image: str) -> dict[str, Any] | None:
    """What the engine knows of a local image, or None: nothing is pulled."""
    try:
        found: dict[str, Any] = api.inspect_image(image)
    except NotFound:
        return None
    return found


def known_image(name: str) -> dict[str, Any]:
    """What the engine knows of a local image.

    Raises:
        SandboxUnavailable: it has none of that name.
    """
    with connected("inspect an image") as api:
        found = find_image(api, name)
    if found is None:
        raise SandboxUnavailable(
            f"there is no image {name}: make it: `python -m perfquarry.harness.images.base` "
            "(Debian or Ubuntu, root), or name an image in the settings (sandbox.image)"
        )
    return found


def _host() -> str:
    """Where process ids mean the same as here: a shared engine may also serve other machines and containers."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return f"{platform.node()} {namespace}".strip()


def _alive(labels: Mapping[str, str]) -> bool:
    try:
        owner = psutil.Process(int(labels[PID]))
        return abs(owner.create_time() - float(labels[STARTED])) < CLOCK_STEP and owner.status() != psutil.STATUS_ZOMBIE
    except (psutil.NoSuchProcess, KeyError, ValueError):
        return False
    except psutil.Error:  # not ours to look at, so there
        return True
