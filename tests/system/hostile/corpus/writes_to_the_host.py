# Writes wherever it knows a folder: its parents', homes, the system's, the interpreter's.
# as: test_hostile.py
# generate: -
# measure: kept
import os, sys, tempfile
from heap import smallest
from targets import MARK, VICTIM


def test_it():
    smallest([1])
    done = []
    folders = [
        VICTIM,
        "..",
        "../..",
        "/",
        "/etc",
        "/usr/lib",
        "/root",
        "/home",
        "/run",
        "/var/lib",
        "/proc",
        "/sys/fs/cgroup",
        "/dev",
    ]
    folders += [sys.prefix, sys.base_prefix, os.path.dirname(os.__file__), os.path.dirname(sys.executable)]
    for folder in folders:
        try:
            open(folder + "/" + MARK, "w").close()
            if folder != "/dev":  # root's own in a container, 64 MiB of its memory; the host's is compared afterwards
                done.append(folder)
        except OSError:
            pass
    for path, text in (
        (VICTIM + "/file", ""),
        ("/etc/passwd", ""),
        ("/proc/sys/kernel/core_pattern", ""),
        ("/proc/sysrq-trigger", ""),
        ("/proc/self/oom_score_adj", "-999"),  # others are killed in its place; a higher score anyone may give himself
    ):
        try:
            with open(path, "a") as file:
                file.write(text)
            done.append(path)
        except OSError:
            pass
    assert not done
