"""Changes that were sent back: what the stages have to do again, and which of their rows count (decision 0023)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import pyarrow.compute as pc

from curation.renewals import fulfilled, in_force, renewed
from data.records import Row, Timing, Workload, content_id
from flows.run import Run


def done(run: Run, model: type[Row], stage: Literal["generate", "measure"]) -> set[str]:
    """Changes that need nothing more of a stage: it wrote rows, and nobody wished it once more since then."""
    return fulfilled(_newest(run, model, stage), renewed(run.store, run.name, stage))


def timings_in_force(run: Run) -> list[Timing]:
    """Timings that count: of a change measured again the newer ones, of workloads that are still kept."""
    timings = in_force(run.store.records(Timing, run.name, **run.where("measure")), _measured_again(run))
    generated_again = renewed(run.store, run.name, "generate")
    if not generated_again:
        return timings
    kept = run.store.scan(
        Workload, run.name, columns=["workload_id"], where=pc.field("status") == "kept", **run.where("generate")
    )
    known = set(kept["workload_id"].to_pylist())
    return [row for row in timings if row.change_id not in generated_again or row.workload_id in known]


def family(run: Run, changes: Sequence[str]) -> str:
    """Configuration hash of the decision over these changes: another one once a change was measured again."""
    wishes = _measured_again(run)
    again = {change: wishes[change].isoformat() for change in changes if change in wishes}
    return content_id(run.hashes["select"], changes, *([again] if again else []))


def _measured_again(run: Run) -> dict[str, datetime]:
    """Wishes for measurements that were fulfilled: those before which timings no longer count."""
    wishes = renewed(run.store, run.name, "measure")
    if not wishes:
        return {}
    newest = _newest(run, Timing, "measure")
    return {change: at for change, at in wishes.items() if change in newest and newest[change] >= at}


def _newest(run: Run, model: type[Row], stage: str) -> dict[str, datetime]:
    table = run.store.scan(model, run.name, columns=["change_id", "created_at"], **run.where(stage))
    newest = table.group_by("change_id").aggregate([("created_at", "max")])
    return dict(zip(newest["change_id"].to_pylist(), newest["created_at_max"].to_pylist(), strict=True))
