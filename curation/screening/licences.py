"""Whether a task may be given to others."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perfquarry.curation.patch import files_of
from perfquarry.curation.screening.found import FoundProblem
from perfquarry.data.records import Task

PERMISSIVE = re.compile(
    r"0BSD|Apache-2\.0|BSD-[234]-Clause|BSL-1\.0|CC0-1\.0|HPND|ISC|MIT(?:-0|-CMU)?|NCSA|PostgreSQL|PSF-2\.0|Python-2\.0"
    r"|Unlicense|Zlib|ZPL-2\.1"
)
COPYLEFT = re.compile(r"(?:A?GPL|LGPL|MPL|EPL|EUPL|CDDL)-[\d.]+(?:-only|-or-later|\+)?")
_CLOSED = re.compile(r"(?i)\b(?:proprietary(?: and confidential)?|strictly confidential|do not (?:re)?distribute)\b")
_OPERATORS = re.compile(r"\s+(?:AND|OR|WITH)\s+|[()]")


def licence_of(task: Task) -> Iterator[FoundProblem]:
    """Findings on the licence (an SPDX expression) and on the patch's own words about it."""
    parts = [part.strip() for part in _OPERATORS.split(task.licence) if part.strip()]
    details = {"licence": task.licence}
    if not parts:
        text = "neither the tree nor the registry names a licence: it may not be given to others"
        yield FoundProblem("licence", text, "", "blocking", details)
    elif unknown := [part for part in parts if not (PERMISSIVE.fullmatch(part) or COPYLEFT.fullmatch(part))]:
        text = f"{', '.join(unknown)} is not known to allow that the code is given to others"
        yield FoundProblem("licence", text, "", "blocking", details)
    elif bound := [part for part in parts if COPYLEFT.fullmatch(part)]:
        text = f"{', '.join(bound)}: who passes it on is bound by its terms; say so in the release"
        yield FoundProblem("licence", text, "", "warning", details)
    for file in files_of(task.patch):
        for line in file.added + file.removed:
            if closed := _CLOSED.search(line):
                text = f"a changed line speaks of its licence ({closed[0]}): {line.strip()[:200]}"
                yield FoundProblem("licence", text, file.path, "warning")
