"""`perfquarry show`: one task with the timings of its workloads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow.compute as pc
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from perfquarry.curation.blocks import Session, measured_session
from perfquarry.curation.counts import LABELS, counts_of, label_of
from perfquarry.curation.facts import intent_in_words
from perfquarry.curation.intents import curated, intents_of, with_curators
from perfquarry.curation.names import find_task
from perfquarry.data.figures import with_interval
from perfquarry.data.home import Home
from perfquarry.data.output import Listing, Report
from perfquarry.data.records import MEANING, Count, Evidence, Intent, Reason, Task, Timing, Workload

PLOT_WIDTH = 48
SHOWN_FUNCTIONS = 6


def report(home: Home, task_id: str) -> Report:
    """One task, accepted or not, found by the start of its id or head.

    Raises:
        UnknownTask: there is none, or there are several.
    """
    store, task = find_task(home, task_id)
    own = pc.field("change_id") == task.change_id
    evidence = list(store.records(Evidence, task.repo, config_hash=task.config_hash, where=own))
    counts = counts_of(store, task.repo)
    intent = with_curators(intents_of(store, task.repo, [task]), curated(home)).get(task.task_id)
    kept = {row.workload_id for row in evidence if row.status == "kept"} | {one.workload_id for one in task.workloads}
    about = [row for row in counts.values() if row.change_id == task.change_id]
    rows = [count_facts(row, faster=row.workload_id in kept) for row in about]

    def parts() -> Iterator[RenderableType]:
        timings = list(store.records(Timing, task.repo, where=own))
        names = {
            row.workload_id: f"{row.node} ({row.source}): {row.detail}" if row.is_script else row.node
            for row in store.records(Workload, task.repo, where=own)
        }
        yield task_head(task, intent)
        yield ""
        yield Text(
            "Intervals are of 95 %: the task's for any occasion, a session's for what it saw. "
            "In the strips of a session, each pair of processes is one mark.",
            "dim",
        )
        for row in sorted(evidence, key=lambda one: (one.status != "kept", -(one.speedup or 0))):
            measured = [timing for timing in timings if timing.workload_id == row.workload_id]
            yield ""
            yield from evidence_lines(row, names.get(row.workload_id, row.workload_id), measured)
            if row.workload_id in counts:
                yield from _counted(counts[row.workload_id], row)

    return Report({"task": task, "intent": intent, "evidence": evidence, "counts": rows}, parts())


def count_facts(row: Count, *, faster: bool) -> dict[str, Any]:
    """A row of counts and its label as JSON."""
    return {**row.model_dump(mode="json"), "label": label_of(row, faster=faster)}


def _counted(row: Count, evidence: Evidence) -> Iterator[Text]:
    label = label_of(row, faster=evidence.status == "kept")
    if label is None:
        yield Text(f"  instructions: {row.detail}")
        return
    yield Text(
        f"  instructions: {row.ratio:.3f}× [{row.low:.3f}, {row.high:.3f}] over {len(row.seeds)} seeds, "
        f"{row.ir_base:,} → {row.ir_head:,}: {label} ({LABELS[label]})"
    )
    for one in row.functions[:SHOWN_FUNCTIONS]:
        where = "in the patch" if one.in_patch else "called from it" if one.called_from_patch else "elsewhere"
        base, head = (f"{count:,}" if count is not None else "–" for count in (one.ir_base, one.ir_head))
        yield Text(f"    {base} → {head}  {one.name} ({where})", "dim")


def evidence_lines(evidence: Evidence, code: str, timings: Sequence[Timing]) -> Iterator[RenderableType]:
    """One workload: the decision in words and the plots of its sessions.

    Args:
        evidence: the decision.
        code: what the workload is called.
        timings: all of it, of whatever machines and settings.
    """
    mark = ("✓", "green") if evidence.status == "kept" else (f"✗ {evidence.reason}", "red")
    yield Text.assemble(mark, " ", (code, "bold"))
    yield f"  {evidence.detail}"
    for one in evidence.sessions:
        yield (
            f"  session {one.session}: {with_interval(one.speedup, one.low, one.high)}, "
            f"δ {one.delta:.3f}, p {one.p_value:.2g}"
        )
        session = measured_session(one, timings)
        yield session_plot(session) if session else "    its timings are no longer in this home"


def session_plot(session: Session) -> RenderableType:
    """Speedups of the pairs of one session on one log axis, and of base against base below: strips of marks."""
    strips = {"pairs": session.logs.tolist(), "A/A": session.aa_logs.tolist()}
    every = [value for values in strips.values() for value in values]
    low, high = min([*every, 0.0]), max([*every, 0.0])
    table = Table.grid(padding=(0, 1))
    for name, colour in (("pairs", "green"), ("A/A", "yellow")):
        counts = [0] * PLOT_WIDTH
        for value in strips[name]:
            counts[min(PLOT_WIDTH - 1, int(PLOT_WIDTH * (value - low) / (high - low))) if high > low else 0] += 1
        strip = "".join(" ▁▂▃▄▅▆▇█"[min(8, count)] for count in counts)
        table.add_row(name, Text(strip, style=colour), f"{len(strips[name])} values")
    begin, end = (f"{math.exp(value):.2f}×" for value in (low, high))
    table.add_row("", Text(f"{begin:<{PLOT_WIDTH - 10}}{end:>10}", style="dim"), "")
    return table


def task_head(task: Task, intent: Intent | None = None) -> Listing:
    """A task in words, without its workloads."""
    table = Listing(("what", ""), head=False)
    overall = with_interval(task.overall_speedup, task.overall_low, task.overall_high)
    rows = {
        "title": task.title,
        "base": task.base_sha,
        "head": task.head_sha,
        "merged": f"{task.created_at_commit:%Y-%m-%d}",
        "decision": f"accepted: {with_interval(task.speedup, task.low, task.high)}, δ {task.delta or 0:.3f}"
        if task.status == "kept"
        else f"rejected: {task.reason} ({MEANING[Reason(task.reason or Reason.NO_GAIN)]})",
        "overall": f"{overall} over all {task.timed_workloads} workloads timed" if task.timed_workloads else "",
        "intent": "\n".join([intent_in_words(intent), *intent.evidence]) if intent else "",
        "python": task.python,
        "oracle targets": "\n".join(task.oracle_targets),
        "realistic targets": "\n".join(task.realistic_targets),
        "detail": task.detail,
    }
    for name, value in rows.items():
        if value:
            table.add(Text(name, "dim"), value)
    return table
