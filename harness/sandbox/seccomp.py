"""System calls that no sandboxed program gets: a filter for bubblewrap's `--seccomp`, and a profile for Docker."""

from __future__ import annotations

import errno
import functools
import json
import platform
import struct
from pathlib import Path
from typing import Any, NamedTuple

FAMILIES = (1, 2, 10)
"""Sockets that a program may make: UNIX, INET and INET6 (AF_*). Others lead to the hypervisor (VSOCK), to frames of
the network (PACKET), or to parts of the kernel that little else tests."""
NETLINK, ROUTE = 16, 0
"""Python asks for the network's interfaces so; of netlink's protocols, this alone."""

# By machine: the kernel's name of its calls (AUDIT_ARCH_*), and the numbers. Refused are memory that no
# process is charged for (memfd_create, memfd_secret, shmget), the caller's keyrings, which no namespace
# hides (add_key, request_key, keyctl), and parts of the kernel that only attacks on it would need here
# (bpf, io_uring_setup, which also makes sockets, perf_event_open, userfaultfd): Docker's own filter
# refuses these and the keyrings, too. Of socket and socketpair, the family is looked at.
_MACHINES = {
    "x86_64": (0xC000003E, (319, 447, 29, 248, 249, 250, 321, 425, 298, 323), (41, 53)),
    "aarch64": (0xC00000B7, (279, 447, 194, 217, 218, 219, 280, 425, 241, 282), (198, 199)),
}
_X32 = 0x40000000
"""Bit of the numbers of x86-64's second set of calls."""
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FAMILY, _PROTOCOL = 0, 4, 16, 32
"""Offsets in the kernel's description of a call; of arguments, the half that the kernel takes as an int."""
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000

_DOCKERS_OWN = Path(__file__).with_name("docker-default-seccomp.json")
"""As github.com/moby/profiles has it (seccomp/default.json, Apache-2.0): a profile replaces the engine's own."""


class _Step(NamedTuple):
    """One instruction; where it jumps to is a name, or '' for the next."""

    code: int
    value: int
    yes: str = ""
    no: str = ""
    name: str = ""


def call_filter() -> bytes | None:
    """The filter (an array of `struct sock_filter`), or None on a machine whose numbers are not known.

    A refused call fails with ENOSYS, as on a kernel without it, so that libraries use what they used before;
    a socket of a refused family with EAFNOSUPPORT. Calls of another architecture (32 bit) are refused as a whole.
    """
    if platform.machine() not in _MACHINES:
        return None
    architecture, refused, sockets = _MACHINES[platform.machine()]
    return _assembled(
        _Step(_LOAD, _ARCHITECTURE),
        _Step(_EQUAL, architecture, no="absent"),
        _Step(_LOAD, _NUMBER),
        _Step(_AT_LEAST, _X32, yes="absent"),
        *(_Step(_EQUAL, number, yes="absent") for number in sorted(refused)),
        *(_Step(_EQUAL, number, yes="socket") for number in sockets),
        _Step(_RETURN, _ALLOW),
        _Step(_LOAD, _FAMILY, name="socket"),
        *(_Step(_EQUAL, family, yes="open") for family in FAMILIES),
        _Step(_EQUAL, NETLINK, no="closed"),
        _Step(_LOAD, _PROTOCOL),
        _Step(_EQUAL, ROUTE, no="closed"),
        _Step(_RETURN, _ALLOW, name="open"),
        _Step(_RETURN, _REFUSE | errno.EAFNOSUPPORT, name="closed"),
        _Step(_RETURN, _REFUSE | errno.ENOSYS, name="absent"),
    )


@functools.cache
def docker_profile() -> str:
    """Docker's own profile with fewer families of sockets, and without calls of other architectures (32 bit)."""
    profile: dict[str, Any] = json.loads(_DOCKERS_OWN.read_text(encoding="utf-8"))
    for architecture in profile["archMap"]:
        architecture["subArchitectures"] = []
    makers = ["socket", "socketpair"]
    for rule in profile["syscalls"]:
        rule["names"] = [name for name in rule["names"] if name not in (*makers, "socketcall")]
    rules = [rule for rule in profile["syscalls"] if rule["names"]]
    for family in FAMILIES:
        rules.append({"names": makers, "action": "SCMP_ACT_ALLOW", "args": [_equals(0, family)]})
    netlink = [_equals(0, NETLINK), _equals(2, ROUTE)]
    rules.append({"names": makers, "action": "SCMP_ACT_ALLOW", "args": netlink})
    return json.dumps({**profile, "syscalls": rules}, separators=(",", ":"))


def _assembled(*steps: _Step) -> bytes:
    places = {step.name: place for place, step in enumerate(steps) if step.name}

    def distance(place: int, name: str) -> int:
        return places[name] - place - 1 if name else 0

    return b"".join(
        struct.pack("=HBBI", step.code, distance(place, step.yes), distance(place, step.no), step.value)
        for place, step in enumerate(steps)
    )


def _equals(argument: int, value: int) -> dict[str, object]:
    return {"index": argument, "value": value, "op": "SCMP_CMP_EQ"}
