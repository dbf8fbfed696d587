"""Which forge a repository is on, and what was newest there."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from perfquarry.data.errors import InputError
from perfquarry.data.files import write_whole
from perfquarry.data.registry import Repository
from perfquarry.miners.pulls.crawl import Crawl, Newest
from perfquarry.miners.settings import PullSettings

_CODEBASE = re.compile(r"[\w.-]+/[\w.-]+")


def codebase_of(repository: Repository, source: str | None, settings: PullSettings) -> tuple[str, str]:
    """'owner/name' and the host of its forge.

    Raises:
        InputError: nothing names them.
    """
    address = source or repository.url
    host = urlsplit(address).hostname or "" if "://" in address else address.partition("@")[2].partition(":")[0]
    codebase = settings.codebase or repository.codebase
    if not _CODEBASE.fullmatch(codebase):
        raise InputError(
            f"{repository.name} names no owner on GitHub: set codebase = 'owner/name' under [pulls] in the settings, "
            "or use --offline"
        )
    local = Path(address).exists() or host in ("", "localhost")
    return codebase, "" if local else host


class Etags:
    """The newest pull request and issue when the last crawl that came to its end began.

    Args:
        file: where they are noted.
        trusted: whether there are rows; else there is nothing that could be unchanged.
    """

    def __init__(self, file: Path, *, trusted: bool) -> None:
        self._file = file
        self._noted: dict[str, Newest] = {}
        if trusted:
            with suppress(OSError, ValueError, TypeError):
                self._noted = {path: Newest(*one) for path, one in json.loads(self._file.read_text()).items()}
        self.until = self._noted["issues"].updated_at if "issues" in self._noted else ""

    def ask(self, reader: Crawl) -> bool:
        """Whether nothing changed, by the ETags: free of quota as long as that is so."""
        changed = False
        for path in ("pulls", "issues"):
            newest = reader.newest(path, self._noted[path].etag if path in self._noted else "")
            if newest is not None:
                self._noted[path], changed = newest, True
        return not changed

    def keep(self) -> None:
        """Notes them: everything up to them is in the tables."""
        write_whole(self._file, json.dumps(self._noted))
