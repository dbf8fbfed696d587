"""Tables and plots of what a home holds, for the terminal and as JSON."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import ByteSize
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from perfquarry.curation.blocks import Session, sessions_of
from perfquarry.data.funnel import Funnel, SourceCount
from perfquarry.data.records import HELP, MEANING, Evidence, Intent, Reason, Task, Timing

PLOT_WIDTH = 48


def task_row(task: Task, intent: Intent | None = None) -> dict[str, Any]:
    """What `perfquarry tasks --json` gives of one task."""
    return {
        "task_id": task.task_id,
        "base_sha": task.base_sha,
        "head_sha": task.head_sha,
        "speedup": task.speedup,
        "low": task.low,
        "high": task.high,
        "delta": task.delta,
        "overall_speedup": task.overall_speedup,
        "workloads": [workload.node for workload in task.workloads],
        "intent": intent and intent.intent,
        "intent_by": intent and intent.author,
        "intent_evidence": intent.evidence if intent else [],
    }


def funnel_table(funnel: Funnel) -> Table:
    """How many changes each stage kept, and why the rest were rejected."""
    table = Table(title=f"Funnel of {escape(funnel.repository)}", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for name, justify in (("stage", "left"), ("in", "right"), ("kept", "right"), ("rejected", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    table.add_column("why", overflow="fold")
    for stage in funnel.stages:
        reasons = sorted(stage.rejected.items(), key=lambda item: -item[1])
        why = ", ".join(f"{reason} {count}" for reason, count in reasons)
        if stage.pending:
            why += f"{', ' if why else ''}[yellow]still to do {stage.pending}[/]"
        table.add_row(stage.stage, str(stage.entered), str(stage.kept), str(sum(stage.rejected.values())), why)
    return table


def sources_table(repository: str, counts: Sequence[SourceCount]) -> Table:
    """What each source of workloads gave; in brackets, of how many changes."""
    title = f"Workloads of {escape(repository)}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("source")
    for name in ("tried", "kept", "accepted"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why not", overflow="fold")
    for count in counts:
        why = [f"{reason} {number}" for reason, number in count.rejected.items()]
        why += [f"no workload of {number}: {reason}" for reason, number in count.without.items()]
        pairs = (count.tried, count.changes), (count.kept, count.kept_changes), (count.accepted, count.accepted_changes)
        table.add_row(count.source, *(f"{number} ({changes})" for number, changes in pairs), ", ".join(why))
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
            f"{times(task.speedup)} [{times(task.low)}, {times(task.high)}]",
            f"{times(task.overall_speedup)} [{times(task.overall_low)}, {times(task.overall_high)}]",
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


def times(value: float | None) -> str:
    """A speedup for people."""
    if value is None:
        return "–"
    return f"{value:.2f}×" if value < 100 else f"{value:.0f}×"


def seconds(value: float) -> str:
    """A duration with three digits and its unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * scale >= 1 or unit == "µs":
            return f"{value * scale:.3g} {unit}"
    raise AssertionError("unreachable")


def size(number: int) -> str:
    """Bytes for people."""
    return ByteSize(number).human_readable(separator=" ")


def session_plot(session: Session) -> RenderableType:
    """Speedups of the pairs of one session on one log axis, and of base against base below: strips of marks."""
    strips = {"pairs": session.logs.tolist(), "A/A": session.aa_logs.tolist()}
    every = [value for values in strips.values() for value in values]
    if not every:
        return Text("no whole pair of processes")
    low, high = min([*every, 0.0]), max([*every, 0.0])
    table = Table.grid(padding=(0, 1))
    for name, colour in (("pairs", "green"), ("A/A", "yellow")):
        counts = [0] * PLOT_WIDTH
        for value in strips[name]:
            counts[min(PLOT_WIDTH - 1, int(PLOT_WIDTH * (value - low) / (high - low))) if high > low else 0] += 1
        strip = "".join(" ▁▂▃▄▅▆▇█"[min(8, count)] for count in counts)
        table.add_row(name, Text(strip, style=colour), f"{len(strips[name])} values")
    begin, end = (f"{math.exp(value):.3g}×" for value in (low, high))
    table.add_row("", Text(f"{begin:<{PLOT_WIDTH - 10}}{end:>10}", style="dim"), "")
    return table


def evidence_panel(evidence: Evidence, code: str, timings: list[Timing]) -> RenderableType:
    """One workload: the decision in words and the plots of its sessions."""
    mark = "[green]✓[/]" if evidence.status == "kept" else f"[red]✗ {evidence.reason}[/]"
    parts: list[RenderableType] = [f"{mark} [bold]{escape(code)}[/]", f"  {escape(evidence.detail)}"]
    sessions = {session.number: session for session in sessions_of(timings)}
    for statistics in evidence.sessions:
        low, high = times(statistics.low), times(statistics.high)
        parts.append(
            f"  session {statistics.session}: {times(statistics.speedup)} \\[{low}, {high}], "
            f"δ {statistics.delta:.3f}, p {statistics.p_value:.2g}"
        )
        parts.append(session_plot(sessions[statistics.session]))
    return Group(*parts)


def task_head(task: Task, intent: Intent | None = None) -> RenderableType:
    """A task in words, without its workloads."""
    table = Table.grid(padding=(0, 2))
    low, high = times(task.low), times(task.high)
    overall = f"{times(task.overall_speedup)} [{times(task.overall_low)}, {times(task.overall_high)}]"
    rows = {
        "title": task.title,
        "base": task.base_sha,
        "head": task.head_sha,
        "merged": f"{task.created_at_commit:%Y-%m-%d}",
        "decision": f"accepted: {times(task.speedup)} [{low}, {high}], δ {task.delta or 0:.3f}"
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
            table.add_row(f"[dim]{name}[/]", escape(value))
    return table


def explain(console: Console, seen: Collection[str]) -> None:
    """Says what each of the reasons means, and what would help."""
    table = Table.grid(padding=(0, 2))
    for reason in Reason:
        if reason.value in seen:
            helps = HELP.get(reason, "nothing")
            table.add_row(f"[dim]{reason.value}[/]", MEANING[reason], "" if helps == "nothing" else escape(helps))
    console.print(table)
