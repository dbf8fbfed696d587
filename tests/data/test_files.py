"""Locks, and files and folders that appear whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perfquarry.data.files import appearing, is_locked, locked, remove, unlock, write_whole, writing


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_as_before_when_its_writing_fails(tmp_path: Path) -> None:
    file = tmp_path / "new" / "file"
    write_whole(file, "first")
    with pytest.raises(RuntimeError), writing(file) as half:
        half.write(b"sec")
        raise RuntimeError
    assert file.read_text() == "first" and names(file.parent) == ["file"]
    write_whole(file, b"second")
    assert file.read_text() == "second" and names(file.parent) == ["file"]


def test_a_file_of_a_killed_writer_is_as_before(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_whole(file, "first")
    code = (
        "import sys, time; from pathlib import Path; from perfquarry.data.files import writing\n"
        "with writing(Path(sys.argv[1])) as file: file.write(b'sec'); file.flush(); print(flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(file)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None and writer.stdout.readline()
        (half,) = set(tmp_path.iterdir()) - {file}
        assert half.read_bytes() == b"sec" and is_locked(half)
        writer.kill()
        writer.wait()
    assert file.read_text() == "first" and not is_locked(half)


def test_a_folder_is_replaced_only_where_that_is_asked(tmp_path: Path) -> None:
    place = tmp_path / "place"
    for text, over in (("first", False), ("second", True)):
        with appearing(place, over=over) as partial:
            partial.mkdir()
            (partial / "file").write_text(text)
    with pytest.raises(OSError, match="not empty"), appearing(place) as partial:
        partial.mkdir()
        (partial / "file").write_text("third")
    with pytest.raises(RuntimeError), appearing(place, over=True) as partial:
        partial.mkdir()
        raise RuntimeError
    assert (place / "file").read_text() == "second" and names(tmp_path) == ["place"]


def test_a_folder_that_is_to_be_replaced_stays_when_nothing_was_made(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    with pytest.raises(FileNotFoundError), appearing(tmp_path / "place", over=True):
        pass
    assert names(tmp_path) == ["place"]


def test_locks_are_shared_or_alone(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    assert not is_locked(tmp_path / "lock") and not is_locked(tmp_path / "none")
    with (tmp_path / "lock").open() as one, (tmp_path / "lock").open() as two:
        assert locked(one, shared=True) and locked(two, shared=True, wait=False)
        assert not locked(two, wait=False) and is_locked(tmp_path / "lock")
        unlock(one)
        assert locked(two, wait=False)
    assert not is_locked(tmp_path / "lock")


def test_whatever_is_there_is_removed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (tmp_path / "link").symlink_to(kept)
    (tmp_path / "file").touch()
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "folder").chmod(0)
    for name in ("link", "file", "folder", "none"):
        remove(tmp_path / name)
    assert names(tmp_path) == ["kept"]
