"""Reads files that hostile code may have written, with the grader's rights: nothing on the way may be a link."""

import os
import stat

STORED_BYTES = 16 * 1024**2
"""Of all files of a result together."""
MOST_FILES = 16
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


def content_of(path, limit):
    """Contents of a regular file that hostile code may have written into a folder of ours."""
    return content_of_descriptor(os.open(path, _FILE), limit)


def content_of_descriptor(descriptor, limit):
    """Contents of an open file, which is closed."""
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > limit:
            raise ValueError("it is no file, or too large")
        return file.read(limit)


def take_stored(folder, below):
    """The files in a folder that a side may write to, by name; they are removed, so that nothing is read twice.

    No name on the way may be a link: what it names would be read with our rights.

    Args:
        folder: a folder of ours, which no side can change.
        below: the names that lead from there to the folder.

    Raises:
        OSError: it cannot be read, or a name on the way is a link.
        ValueError: what is there is no file, or too large.
    """
    place = os.open(folder, _FOLDER)
    try:
        for name in below:
            inner = os.open(name, _FOLDER, dir_fd=place)
            os.close(place)
            place = inner
        found, left = {}, STORED_BYTES
        for name in sorted(os.listdir(place))[:MOST_FILES]:
            found[name] = content_of_descriptor(os.open(name, _FILE, dir_fd=place), left)
            left -= len(found[name])
            os.unlink(name, dir_fd=place)
        return found
    finally:
        os.close(place)


def keep(folder, files):
    """Writes files into a new folder."""
    os.makedirs(folder)
    for name, content in files.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
    return folder
