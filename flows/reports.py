"""Tables of what a home holds, for the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from perfquarry.data.figures import times, with_interval
from perfquarry.data.funnel import Funnel, SourceCount
from perfquarry.data.records import HELP, MEANING, Intent, Reason, Task
from perfquarry.flows.output import Listing


def task_row(task: Task, intent: Intent | None = None) -> dict[str, Any]:
    """What `perfquarry tasks --json` gives of one task."""
    figures = {"speedup", "low", "high", "delta", "overall_speedup"}
    return {
        **task.model_dump(include={"task_id", "base_sha", "head_sha"} | figures),
        "workloads": [workload.node for workload in task.workloads],
        "intent": intent and intent.intent,
        "intent_by": intent and intent.author,
        "intent_evidence": intent.evidence if intent else [],
    }


def funnel_table(funnel: Funnel) -> Listing:
    """How many changes each stage kept, and why the rest were rejected."""
    table = Listing(("stage", ">in", ">kept", ">rejected", "why"), f"Funnel of {funnel.repository}")
    for stage in funnel.stages:
        reasons = sorted(stage.rejected.items(), key=lambda item: -item[1])
        why = Text(", ".join(f"{reason} {count}" for reason, count in reasons))
        if stage.pending:
            why.append(f"{', ' if reasons else ''}").append(f"still to do {stage.pending}", "yellow")
        table.add(stage.stage, str(stage.entered), str(stage.kept), str(sum(stage.rejected.values())), why)
    return table


def sources_table(repository: str, counts: Sequence[SourceCount]) -> Listing:
    """What each source of workloads gave; in brackets, of how many changes."""
    table = Listing(("source", ">tried", ">kept", ">accepted", "why not"), f"Workloads of {repository}")
    for count in counts:
        why = [f"{reason} {number}" for reason, number in count.rejected.items()]
        why += [f"no workload of {number}: {reason}" for reason, number in count.without.items()]
        pairs = (count.tried, count.changes), (count.kept, count.kept_changes), (count.accepted, count.accepted_changes)
        table.add(count.source, *(f"{number} ({changes})" for number, changes in pairs), ", ".join(why))
    return table


def tasks_table(
    tasks: list[Task], counted: Mapping[str, float], intents: Mapping[str, Intent] | None = None
) -> RenderableType:
    """The accepted tasks with what the expert reached: a line of figures, the id, the title; 80 columns are enough.

    Args:
        tasks: accepted ones.
        counted: instructions of base over head by task_id (`curation.counts`), where they were counted.
        intents: by task_id whether the gain was meant, where that is known.
    """
    heads = ["kept workloads", "all decided", "δ", *(["count"] if counted else []), "tests"]
    lines = [Text(f"{len(tasks)} accepted task(s)", style="italic"), Text()]
    lines += [Text(_columns(heads), style="bold"), Text("─" * (len(_columns(heads)) + 1))]
    for task in sorted(tasks, key=lambda one: -(one.speedup or 0)):
        figures = [
            with_interval(task.speedup, task.low, task.high),
            with_interval(task.overall_speedup, task.overall_low, task.overall_high),
            f"{task.delta or 0:.3f}",
            *([times(counted.get(task.task_id))] if counted else []),
            str(len(task.workloads)),
        ]
        lines += [Text(_columns(figures), style="green"), Text(f"  {task.task_id}", style="bold")]
        lines += [Text(f"  {task.title}")]
        if intent := (intents or {}).get(task.task_id):
            lines += [Text(f"  {intent_in_words(intent)}", style="dim")]
        lines += [Text()]
    return Group(*lines)


def intent_in_words(intent: Intent) -> str:
    """'side effect (heuristic)'."""
    return f"{intent.intent.replace('_', ' ')} ({intent.author})"


def _columns(cells: Sequence[str]) -> str:
    """The two speedups with their intervals, then narrow figures, all right-aligned."""
    widths = (24, 24, *(7 for _ in cells[2:]))
    return " ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def reasons_table(seen: Collection[str]) -> Listing:
    """What each of the reasons means, and what would help."""
    table = Listing(("reason", "it means", "what helps"), head=False)
    for reason in Reason:
        if reason.value in seen:
            helps = HELP.get(reason, "nothing")
            table.add(Text(reason.value, "dim"), MEANING[reason], "" if helps == "nothing" else helps)
    return table
