"""`perfquarry pulls`: pull requests and their issues, from GitHub or from git alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from perfquarry.data.settings import Settings
    from perfquarry.flows.pulls import Crawled, Summary


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(pulls)


def pulls(
    repo: Annotated[str, typer.Argument(help="Name in the registry, git URL, or local path.")],
    policy: Annotated[
        str | None, typer.Option(help="Why others fall: all, merged, labelled, sweperf, swebench.")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="From merge and squash commits alone; no key.")] = False,
    source: Annotated[str | None, typer.Option(help="Clone from this path or URL instead of the registry's.")] = None,
    home: Annotated[
        Path | None, typer.Option(help="Folder of the whole state.", show_default="PERFQUARRY_HOME or ./var")
    ] = None,
    settings: Annotated[Path | None, typer.Option(help="TOML file with settings: \\[pulls].")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print facts as JSON, nothing else.")] = False,
) -> None:
    """Read pull requests, their discussions and issues into the tables."""

    from rich.console import Console

    from perfquarry.flows.display import showing
    from perfquarry.flows.logs import log_to
    from perfquarry.flows.options import Options, home_of, settings_from
    from perfquarry.flows.pulls import crawl, reconstruct, summary
    from perfquarry.flows.run import Run
    from perfquarry.flows.runs import run_name

    chosen = _with_policy(settings_from(settings, "heuristic", "unit-test"), policy)
    options = Options(repo=repo, source=source, home=str(home_of(home).root), jobs=1, settings=chosen)
    run = Run.open(options.model_dump_json())
    console = Console(stderr=as_json)
    log_to(run.home.logs, console, run_name(f"{run.name}-pulls"), run.name)
    with showing(console, silent=as_json):
        crawled = reconstruct(run) if offline else crawl(run)
    counts = summary(run)
    if as_json:
        facts = {**counts.model_dump(mode="json"), "run": crawled.model_dump(mode="json")}
        print(json.dumps({**facts, "tables": str(run.home.tables)}, indent=2))
        return
    console.print(_told(crawled), highlight=False, markup=False, soft_wrap=True)
    console.print(_table(counts, policy))
    console.print(f"Parquet: {run.home.tables}/pulls/repo={run.name}/", highlight=False, markup=False, soft_wrap=True)


def _with_policy(settings: Settings, policy: str | None) -> Settings:
    from perfquarry.data.errors import InputError
    from perfquarry.data.settings import PullSettings
    from perfquarry.miners.pulls.policies import POLICIES

    if policy is None:
        return settings
    if policy not in POLICIES:
        raise InputError(f"unknown policy {policy!r}: known are {', '.join(POLICIES)}")
    changed = PullSettings.model_validate({**settings.pulls.model_dump(), "policy": policy})
    return settings.model_copy(update={"pulls": changed})


def _told(crawled: Crawled) -> str:
    if crawled.unchanged:
        return f"nothing new at {crawled.source} ({crawled.calls.get('not_modified', 0)} answers 'not modified')"
    if not crawled.calls:
        return f"{crawled.pulls} pull requests from {crawled.source} in {crawled.seconds} s"
    made = crawled.calls.get("graphql", 0) + crawled.calls.get("rest", 0)
    told = f"{crawled.pulls} pull requests and {crawled.issues} issues from {crawled.source}: {made} calls"
    if crawled.calls_one_by_one > made:
        told += f", {crawled.calls_one_by_one / made:.0f} times fewer than one each"
    waits = f", {crawled.waited:.0f} s of these for rate limits" if crawled.waited else ""
    return f"{told}, {crawled.calls.get('retried', 0)} retried, in {crawled.seconds} s{waits}"


def _table(counts: Summary, policy: str | None) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    states = ", ".join(f"{count} {state}" for state, count in counts.states.items()) or "none"
    title = f"Pull requests of {counts.repository}: {states}"
    caption = f"{counts.issues} issues read; measurements quoted in {counts.with_results} discussions"
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left", box=SIMPLE_HEAD)
    table.add_column("policy")
    table.add_column("kept", justify="right")
    table.add_column("why the rest were rejected", overflow="fold")
    for name, reasons in counts.policies.items():
        if policy in (None, "off", "all", name):
            others = ", ".join(f"{reason} {count}" for reason, count in reasons.items() if reason != "kept")
            table.add_row(name, str(reasons.get("kept", 0)), others)
    return table
