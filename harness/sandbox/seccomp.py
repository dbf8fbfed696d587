"""System calls that no sandboxed program gets, as a filter for bubblewrap's `--seccomp`."""

from __future__ import annotations

import errno
import platform
import struct

# By machine: the kernel's name of its calls (AUDIT_ARCH_*), and the numbers. Refused are memory that no
# process is charged for (memfd_create, memfd_secret, shmget), the caller's keyrings, which no namespace
# hides (add_key, request_key, keyctl), and parts of the kernel that only attacks on it would need here
# (bpf, io_uring_setup, perf_event_open, userfaultfd): Docker's own filter refuses these and the keyrings, too.
_MACHINES = {
    "x86_64": (0xC000003E, (319, 447, 29, 248, 249, 250, 321, 425, 298, 323)),
    "aarch64": (0xC00000B7, (279, 447, 194, 217, 218, 219, 280, 425, 241, 282)),
}
_X32 = 0x40000000
"""Bit of the numbers of x86-64's second set of calls."""
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE = 0, 4
"""Offsets in the kernel's description of a call."""
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.ENOSYS


def call_filter() -> bytes | None:
    """The filter (an array of `struct sock_filter`), or None on a machine whose numbers are not known.

    A refused call fails with ENOSYS, as on a kernel without it, so that libraries use what they used before.
    Calls of another architecture (32 bit) are refused as a whole.
    """
    if platform.machine() not in _MACHINES:
        return None
    architecture, numbers = _MACHINES[platform.machine()]
    refused = [(_AT_LEAST, _X32), *((_EQUAL, number) for number in sorted(numbers))]
    steps = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 0, len(refused) + 2, architecture), (_LOAD, 0, 0, _NUMBER)]
    for place, (test, number) in enumerate(refused):
        steps.append((test, len(refused) - place, 0, number))
    steps += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
