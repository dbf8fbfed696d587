"""Changes of which no workload could execute anything: seen in their text, before anything is built."""

from __future__ import annotations

from pathlib import Path

from perfquarry.curation.layouts import with_own_roles
from perfquarry.data.own_rows import OwnRows
from perfquarry.data.records import Change, Reason, Verdict
from perfquarry.data.registry import Repository
from perfquarry.miners.blobs import sides
from perfquarry.miners.judge.verdicts import verdict_with_functions
from perfquarry.testgen.traced import can_be_executed, is_python_source


def nothing_to_execute(rows: OwnRows, clone: Path, repository: Repository, change: Change) -> Verdict | None:
    """The verdict on a change that is taken up, rejected since no statement of a function changed; None if one did.

    What is beside the package of its own tree does not count. Native source, and what cannot be read or
    parsed here, may be executed.

    Raises:
        GitFailed: git cannot read the change.
    """
    change = with_own_roles(clone, repository, change)
    verdict = verdict_with_functions(rows, clone, change)
    if all(file.role != "source" for file in change.files):
        return verdict.model_copy(update={"status": "rejected", "reason": Reason.NO_SOURCE_CHANGE})
    paths = [file.path for file in change.files if is_python_source(file)]
    read = {one.path: (one.base, one.head) for one in sides(clone, change, paths)} if paths else {}
    texts = {path: (base, head) for path, (base, head) in read.items() if base is not None and head is not None}
    if texts.keys() != {*paths} or can_be_executed(change, verdict, lambda file: texts[file.path]):
        return None
    return verdict.model_copy(update={"status": "rejected", "reason": Reason.NO_STATEMENT})
