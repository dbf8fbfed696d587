# Makes namespaces and mounts, as far as it is let.
# as: test_hostile.py
# generate: -
# measure: kept
import ctypes
from heap import smallest
from targets import VICTIM


def test_it():
    smallest([1])
    libc = ctypes.CDLL(None)
    libc.unshare(0x10000000)  # CLONE_NEWUSER
    done = [libc.unshare(0x00020000) == 0]  # CLONE_NEWNS
    done.append(libc.mount(b"none", VICTIM.encode(), b"tmpfs", 0, None) == 0)
    done.append(libc.mount(b"none", b"/", None, 32 | 4096, None) == 0)  # remount what is read-only
    done.append(libc.umount2(b"/proc", 2) == 0)
    done.append(libc.chroot(b".") == 0)
    done.append(libc.setuid(1) == 0)
    assert not any(done)
