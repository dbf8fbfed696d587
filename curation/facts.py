"""The commands that only read: tasks, funnel, workloads, costs, sampling; and their tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from perfquarry.curation.counts import ratios_of
from perfquarry.curation.in_force import accepted_tasks, funnel_in_force
from perfquarry.curation.intents import curated, intents_of, with_curators
from perfquarry.curation.names import known, repository_of
from perfquarry.curation.sampling import by_round, newest_scripts
from perfquarry.data import funnel as funnels
from perfquarry.data.figures import times, with_interval
from perfquarry.data.funnel import Funnel, SourceCount
from perfquarry.data.home import Home
from perfquarry.data.output import Listing, Report
from perfquarry.data.own_rows import OwnRows
from perfquarry.data.records import HELP, MEANING, Intent, LlmCall, Reason, Task
from perfquarry.data.store import TableStore
from perfquarry.llm import By
from perfquarry.llm.costs import Cost
from perfquarry.llm.costs import costs as cost_rows

SHOWN = 40
"""Most rows of the table; --json has all."""


def tasks(home: Home, repo: str) -> Report:
    """Accepted tasks of a repository."""
    store, name = known(home, repo)
    accepted, intents = _accepted(home, store, name)

    def parts() -> Iterator[RenderableType]:
        if accepted:
            yield tasks_table(accepted, ratios_of(store, name, accepted), intents)
        else:
            yield _without_tasks(funnel_in_force(store, name), repo)

    return Report(_task_rows(accepted, intents), parts())


def of_run(run: OwnRows, repo: str, counts: Funnel, seconds: float) -> Report:
    """What a run has come to, of a repository that the command line named so, with this funnel."""
    home, store, name = run.home, run.store, run.name
    accepted, intents = _accepted(home, store, name)
    facts = {"repository": name, "funnel": counts, "tasks": _task_rows(accepted, intents)}
    facts |= {"tables": str(home.tables), "seconds": round(seconds, 1)}

    def parts() -> Iterator[RenderableType]:
        yield from ("", _funnel_table(counts), "", _reasons_table(counts.reasons), "")
        place = f"Parquet: {home.tables}/<table>/repo={name}/   ({seconds:.0f} s)"
        if not accepted:
            yield from (_without_tasks(counts, repo), place)
            return
        yield from (tasks_table(accepted, ratios_of(store, name, accepted), intents), "", place)
        one_file = f"perfquarry export {repo} --to tasks.parquet"
        yield f"One task in full: perfquarry show TASK. One file: {one_file}"

    return Report(facts, parts())


def _accepted(home: Home, store: TableStore, name: str) -> tuple[list[Task], dict[str, Intent]]:
    """The accepted tasks of a repository, and by task_id whether their gains were meant."""
    tasks = accepted_tasks(store, name)
    return tasks, with_curators(intents_of(store, name, tasks), curated(home))


def _task_rows(tasks: Sequence[Task], intents: Mapping[str, Intent]) -> list[dict[str, Any]]:
    """For JSON."""
    figures = {"task_id", "base_sha", "head_sha", "speedup", "low", "high", "delta", "overall_speedup"}
    found = []
    for task in tasks:
        intent, nodes = intents.get(task.task_id), [workload.node for workload in task.workloads]
        said = {"intent": intent and intent.intent, "intent_by": intent and intent.author}
        evidence = intent.evidence if intent else []
        found.append({**task.model_dump(include=figures), "workloads": nodes, **said, "intent_evidence": evidence})
    return found


def _without_tasks(counts: Funnel, repo: str) -> str:
    """What it means that there is no task, and which command comes next."""
    rejected = [(number, stage.stage, reason) for stage in counts.stages for reason, number in stage.rejected.items()]
    late = [one for one in rejected if one[1] not in ("mine", "judge")] or rejected
    parts = []
    if counts.pending:
        again = f"perfquarry curate {repo}"
        parts.append(
            f"{counts.pending} changes wait for their next stage: `{again}` goes on (without --limit, or a larger one)"
        )
    if late:
        number, stage, reason = max(late)
        parts.append(f"most frequent reason of rejection: {reason}, at {stage} ({number} changes)")
    said = "No task was accepted" if counts.stages[-1].entered else "No task yet"
    return f"{said}. {'; '.join(parts) or 'Nothing was rejected'}. All reasons: perfquarry funnel {repo}"


def funnel(home: Home, repo: str) -> Report:
    """Funnel of a repository."""
    counts = funnel_in_force(*known(home, repo))
    return Report(counts, [_funnel_table(counts), "", _reasons_table(counts.reasons)])


def workloads(home: Home, repo: str) -> Report:
    """Workloads of a repository by source."""
    store, name = known(home, repo)
    counts = funnels.by_source(store, name)
    seen = {reason for count in counts for reason in [*count.rejected, *count.without]}
    none = f"no workload of {name} was tried yet: `perfquarry curate {repo}` goes on, or `perfquarry generate {repo}`"
    parts: list[RenderableType] = [_sources_table(name, counts), "", _reasons_table(seen)] if counts else [none]
    return Report(counts, parts)


def costs(home: Home, repo: str | None, by: By) -> Report:
    """Sums of the ledger of one repository, or of all of the home.

    Raises:
        InputError: no such repository.
    """
    store = TableStore(home.tables)
    names = store.repositories(LlmCall)
    if repo is not None:
        name = repository_of(home, repo).name
        names = [name] if name in names else []
    found = cost_rows(store, names, by)
    usd, unpriced = sum(cost.usd for cost in found), sum(cost.unpriced for cost in found)
    facts = {"usd": usd, "unpriced": unpriced, "by": by, "rows": found}
    about = f"{repo or 'anything'} in {home.root}"
    return Report(facts, _cost_parts(found, about, f"{usd:.4f} USD in all", unpriced))


def _cost_parts(found: list[Cost], about: str, total: str, unpriced: int) -> Iterator[RenderableType]:
    if not found:
        yield (
            f"no model was asked for {about}: nothing was paid; models are asked with "
            "`perfquarry curate REPO --judge cascade --llm SPEC` or `--workloads generated --llm SPEC`"
        )
        return
    figures = ("changes", "calls", "cached", "bad", "tokens in", "cached", "out", "USD", "USD / 1,000 changes")
    names = [name.replace("_", " ") for name in found[0].group]
    table = Listing([*names, *(f">{name}" for name in figures)], "Calls of models")
    for cost in found[:SHOWN]:
        counts = (cost.changes, cost.calls, cost.cached, cost.malformed + cost.refused)
        tokens = (cost.input_tokens, cost.cached_tokens, cost.output_tokens)
        per_1000 = cost.usd_per_1000_changes
        table.add(
            *cost.group.values(),
            *(f"{number:,}" for number in (*counts, *tokens)),
            f"{cost.usd:.4f}" + (" + ?" if cost.unpriced else ""),
            "–" if per_1000 is None else f"{per_1000:.2f}",
        )
    yield table
    if len(found) > SHOWN:
        yield f"… and {len(found) - SHOWN} more (--json lists all)"
    yield total + (f"; the price of {unpriced} calls is not known" if unpriced else "")


def sampling(home: Home, repo: str) -> Report:
    """Sampled scripts of a repository's newest configuration by round.

    Raises:
        InputError: no such repository.
    """
    name = repository_of(home, repo).name
    rounds = by_round(newest_scripts(TableStore(home.tables), name))
    seen = {reason for one in rounds for reason in one["rejected"]}
    none = (
        f"no model wrote workloads for {repo} in {home.root}: "
        f"`perfquarry curate {repo} --workloads generated --llm SPEC` lets one"
    )
    parts: list[RenderableType] = [_rounds_table(name, rounds), "", _reasons_table(seen)] if rounds else [none]
    return Report({"repository": name, "rounds": rounds}, parts)


def _rounds_table(name: str, rounds: list[dict[str, Any]]) -> Listing:
    figures = ("round", "changes", "scripts", "kept", "hidden")
    names = (*(f">{figure}" for figure in (*figures, "share")), "why the rest were rejected")
    table = Listing(names, f"Sampled scripts of {name}")
    for one in rounds:
        share = "–" if one["share"] is None else f"{one['share']:.0%}"
        why = ", ".join(f"{reason} {count}" for reason, count in one["rejected"].items())
        table.add(*(str(one[figure]) for figure in figures), share, why)
    return table


def _funnel_table(funnel: Funnel) -> Listing:
    """How many changes each stage kept, and why the rest were rejected."""
    table = Listing(("stage", ">in", ">kept", ">rejected", "why"), f"Funnel of {funnel.repository}")
    for stage in funnel.stages:
        reasons = sorted(stage.rejected.items(), key=lambda item: -item[1])
        why = Text(", ".join(f"{reason} {count}" for reason, count in reasons))
        if stage.pending:
            why.append(f"{', ' if reasons else ''}").append(f"still to do {stage.pending}", "yellow")
        table.add(stage.stage, str(stage.entered), str(stage.kept), str(sum(stage.rejected.values())), why)
    return table


def _sources_table(repository: str, counts: Sequence[SourceCount]) -> Listing:
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


def _reasons_table(seen: Collection[str]) -> Listing:
    """What each of the reasons means, and what would help."""
    table = Listing(("reason", "it means", "what helps"), head=False)
    for reason in Reason:
        if reason.value in seen:
            helps = HELP.get(reason, "nothing")
            table.add(Text(reason.value, "dim"), MEANING[reason], "" if helps == "nothing" else helps)
    return table
