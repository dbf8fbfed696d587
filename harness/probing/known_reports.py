"""Reports of a search that was cut: whoever goes on with it does not run the same processes again."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from perfquarry.data.files import write_whole
from perfquarry.harness.contracts import ProbeReport


@dataclass
class KnownReports:
    """A folder with a file for each process that went through.

    Its name stands for all that reports depend on beside what a process is asked. What ended at a limit or by a crash
    is not kept: that may have been the machine.
    """

    folder: Path
    _asked: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def name(self, *asked: object) -> str:
        """The file of what is asked, whose `repr` says all of it; asked the same again, another one each time."""
        digest = hashlib.sha256(repr(asked).encode("utf-8", "backslashreplace")).hexdigest()
        with self._lock:
            self._asked[digest] += 1
            return f"{digest}-{self._asked[digest]}.json"

    def get(self, name: str) -> ProbeReport | None:
        """What was reported; None where nothing whole is kept."""
        with contextlib.suppress(FileNotFoundError, ValidationError):
            return ProbeReport.model_validate_json((self.folder / name).read_bytes())
        return None

    def keep(self, name: str, report: ProbeReport) -> None:
        """Keeps a report, if it says what every machine would.

        Raises:
            OSError: it could not be written.
        """
        if report.outcome != "finished" or any(item.outcome == "timeout" for item in report.items):
            return
        with contextlib.suppress(PydanticSerializationError):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self.folder / name, report.model_dump_json())

    def remove(self) -> None:
        """The search is done."""
        shutil.rmtree(self.folder, ignore_errors=True)
