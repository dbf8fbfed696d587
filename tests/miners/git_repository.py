"""Real git repositories for the miners' tests, made with fixed dates."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from perfquarry.data.records import Change, Stamp
from perfquarry.miners.history import crawl
from perfquarry.miners.settings import MineSettings

STAMP = Stamp(repo="sample", stage_version="1", config_hash="test")


class Repository:
    """A repository with a work tree; every commit is a second after the one before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._clock = 1_600_000_000
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str | bytes, data: bytes | None = None) -> bytes:
        self._clock += 1
        moment = f"{self._clock} +0000"
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            **{f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
            "GIT_AUTHOR_DATE": moment,
            "GIT_COMMITTER_DATE": moment,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        command = ["git", "-c", "protocol.file.allow=always", "-c", "gc.auto=0", *arguments]
        done = subprocess.run(command, cwd=self.folder, env=environment, input=data, capture_output=True)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        return done.stdout

    def write(self, name: str | bytes, content: str | bytes) -> None:
        path = self.folder / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, message: str | bytes, files: dict[str, str | bytes] | None = None, *options: str) -> str:
        """Writes the files, commits everything, returns the id."""
        for name, content in (files or {}).items():
            self.write(name, content)
        self.git("add", "-A")
        data = message.encode() if isinstance(message, str) else message
        self.git("commit", "-q", "--allow-empty", "--cleanup=verbatim", "-F", "-", *options, data=data)
        return self.head()

    def head(self, name: str = "HEAD") -> str:
        return self.git("rev-parse", name).decode().strip()

    def merge(self, message: str, *branches: str) -> str:
        self.git("merge", "-q", "--no-ff", "-m", message, *branches)
        return self.head()


def rows(clone: Path, settings: MineSettings | None = None, **options: object) -> list[Change]:
    """All rows of a crawl, each validated as if it came from outside."""
    found = list(crawl(clone, STAMP, settings or MineSettings(), **options))  # type: ignore[arg-type]
    return [Change.model_validate(change.model_dump()) for change in found]


def only_row(clone: Path, sha: str, settings: MineSettings | None = None) -> Change:
    (change,) = rows(clone, settings, only=[sha])
    return change


def reasons(changes: Sequence[Change]) -> dict[str, str | None]:
    return {change.title: change.reason for change in changes}
