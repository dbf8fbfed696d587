"""The command line: `perfquarry`. Exit codes: 0 done, 1 the work failed, 2 bad usage or input."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from typer.models import CommandInfo, TyperInfo

import perfquarry
from perfquarry.curation import Format, Mode
from perfquarry.data.errors import InputError, PerfquarryError
from perfquarry.flows.options import Options, default_jobs, home_of, seconds_of, settings_from
from perfquarry.llm import By

COMMANDS: tuple[str, ...] = (
    "count",
    "evaluate",
    "exchange",
    "pulls",
    "recipe",
    "release",
    "revalidate",
    "review",
    "schedule",
    "screen",
    "status",
)
"""Modules of `flows.commands`, each of which registers its own commands; they import the rooms when called."""

GROUPS: dict[str, tuple[str, ...]] = {
    "Make tasks": (
        *("curate", "mine", "judge", "build", "generate", "measure", "select", "screen", "count"),
        *("pulls", "recipe", "exchange"),
    ),
    "Look": ("tasks", "show", "funnel", "workloads", "sampling", "statistics", "costs", "status", "ui"),
    "Review": ("review", "problems"),
    "Release": ("release", "export", "image", "revalidate", "stability"),
    "Evaluate": ("solve", "evaluate", "analyse", "leaderboard"),
    "Operate": ("doctor", "gc", "schedule", "worker"),
}
"""Commands as `--help` lists them."""

INTERRUPTED = 130
"""Exit code of Ctrl-C."""

STAGE_NAMES = ("mine", "judge", "build", "generate", "measure", "select", "screen", "count")

app = typer.Typer(
    name="perfquarry",
    help="Mines the history of repositories for performance improvements and turns them into verified tasks. "
    "First: [bold]perfquarry curate demo[/]",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"perfquarry {perfquarry.__version__}")
        raise typer.Exit


@app.callback()
def _whole(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


RepoArgument = Annotated[str, typer.Argument(help="Name in the registry, git URL, or local path.")]
SourceOption = Annotated[str | None, typer.Option(help="Clone from this path or URL instead of the registry's.")]
SinceOption = Annotated[datetime | None, typer.Option(help="Changes that reached the branch at or after this date.")]
UntilOption = Annotated[datetime | None, typer.Option(help="Changes that reached the branch before this date.")]
ChangesOption = Annotated[str | None, typer.Option(help="Only these head commits: SHA,SHA (unique prefixes will do).")]
ForOption = Annotated[
    str | None, typer.Option("--for", help="No further change is begun after so long: 90s, 30m, 2h, 1d.")
]
TasksOption = Annotated[int | None, typer.Option(min=1, help="End once the repository has N accepted tasks.")]
LimitOption = Annotated[
    int | None, typer.Option(min=1, help="This run is about the N most probable changes that are not finished.")
]
JudgeOption = Annotated[
    str, typer.Option(help="Who judges: heuristic, cascade, openai:MODEL, anthropic:MODEL, exchange:DIR, cassette:DIR.")
]
LlmOption = Annotated[
    str | None,
    typer.Option(help="Model for the judge cascade and for generated workloads: openai:MODEL, exchange:DIR, …"),
]
WorkloadsOption = Annotated[str, typer.Option(help="Sources, with commas: unit-test, asv, generated, replay.")]
BudgetOption = Annotated[float | None, typer.Option(min=0, help="Upper limit for model costs in USD.")]
HomeOption = Annotated[
    Path | None, typer.Option(help="Folder of the whole state.", show_default="PERFQUARRY_HOME or ./var")
]
JobsOption = Annotated[int | None, typer.Option(min=1, help="Builds and selections at once.", show_default="cores")]
SettingsOption = Annotated[
    Path | None, typer.Option(help="TOML file with settings: \\[resources], one table per stage.")
]
ServerOption = Annotated[bool, typer.Option("--server/--no-server", help="Record the run on a Prefect server.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print facts as JSON, nothing else.")]


def _aware(date: datetime | None) -> datetime | None:
    return date.replace(tzinfo=UTC) if date and date.tzinfo is None else date


def _parts(text: str | None) -> tuple[str, ...]:
    found = tuple(part.strip() for part in (text or "").split(",") if part.strip())
    if text is not None and not found:
        raise InputError("--changes names no commit: give hashes, SHA,SHA, or leave it out for all changes")
    return found


def _dates(since: datetime | None, until: datetime | None) -> tuple[datetime | None, datetime | None]:
    """Both dates as aware ones.

    Raises:
        InputError: no change can lie between them.
    """
    begin, end = _aware(since), _aware(until)
    if begin and begin > datetime.now(UTC):
        raise InputError(f"--since {begin:%Y-%m-%d} is in the future: no change is as new as that")
    if begin and end and begin >= end:
        raise InputError(f"--since {begin:%Y-%m-%d} is not before --until {end:%Y-%m-%d}: no change lies between them")
    return begin, end


def _work(name: str, options: Options, stages: Sequence[str], *, with_server: bool, as_json: bool) -> None:
    if not as_json:
        Console().print(f"{name:<9} {escape(options.repo)}, home {escape(options.home)}", highlight=False)
    from perfquarry.flows.work import work  # the rooms take seconds to import; --help and bad usage need none of them

    work(options, stages, with_server=with_server, as_json=as_json)


def _stage_command(name: str, stages: Sequence[str], text: str) -> None:
    def command(
        repo: RepoArgument,
        source: SourceOption = None,
        since: SinceOption = None,
        until: UntilOption = None,
        changes: ChangesOption = None,
        limit: LimitOption = None,
        budget: ForOption = None,
        tasks: TasksOption = None,
        judge: JudgeOption = "heuristic",
        workloads: WorkloadsOption = "unit-test",
        llm: LlmOption = None,
        budget_usd: BudgetOption = None,
        home: HomeOption = None,
        jobs: JobsOption = None,
        settings: SettingsOption = None,
        server: ServerOption = True,
        as_json: JsonOption = False,
    ) -> None:
        if tasks is not None and "select" not in stages:
            raise InputError(f"--tasks goes with curate: {name} accepts none")
        seconds = seconds_of(budget) if budget else None
        begin, end = _dates(since, until)
        options = Options(
            repo=repo,
            source=source,
            since=begin,
            until=end,
            changes=_parts(changes),
            limit=limit,
            home=str(home_of(home).root),
            jobs=jobs or default_jobs(),
            seconds=seconds,
            tasks=tasks,
            settings=settings_from(settings, judge, workloads, budget_usd, llm),
        )
        _work(name, options, stages, with_server=server, as_json=as_json)

    command.__doc__ = text
    app.command(name)(command)


_stage_command("curate", STAGE_NAMES, "All stages: from a repository's history to verified tasks.")
_stage_command("mine", STAGE_NAMES[:1], "Read the history into the table of changes.")
_stage_command("build", STAGE_NAMES[2:3], "Make both sides of the kept changes runnable.")
_stage_command("generate", STAGE_NAMES[3:4], "Find workloads that execute changed lines: unit tests and scripts.")
_stage_command("measure", STAGE_NAMES[4:5], "Time the workloads on both sides, which take turns on one core.")
_stage_command("select", STAGE_NAMES[5:6], "Decide which changes are verified improvements.")


@app.command()
def judge(
    repo: Annotated[str | None, typer.Argument(help="Name in the registry, git URL, or local path.")] = None,
    source: SourceOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    changes: ChangesOption = None,
    limit: LimitOption = None,
    judge: JudgeOption = "heuristic",
    workloads: WorkloadsOption = "unit-test",
    llm: LlmOption = None,
    budget_usd: BudgetOption = None,
    home: HomeOption = None,
    jobs: JobsOption = None,
    settings: SettingsOption = None,
    server: ServerOption = True,
    count_tokens: Annotated[bool, typer.Option("--count-tokens", help="Only tell what models would cost.")] = False,
    evaluate: Annotated[Path | None, typer.Option(help="Only compare with the labels of this Parquet file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="--evaluate: reliability plot to write (SVG).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Judge which changes improve performance."""
    if count_tokens and judge == "heuristic":
        judge = "cascade"
    if count_tokens and judge == "cascade":
        llm = llm or "exchange:nobody"
    if (repo is None) == (evaluate is None) or (plot and not evaluate):
        raise InputError("give a repository to judge, or --evaluate LABELS.parquet (with --plot FILE.svg)")
    begin, end = _dates(since, until)
    options = Options(
        repo=repo or "",
        source=source,
        since=begin,
        until=end,
        changes=_parts(changes),
        limit=limit,
        home=str(home_of(home).root),
        jobs=jobs or default_jobs(),
        settings=settings_from(settings, judge, workloads, budget_usd, llm),
    )
    if evaluate:
        from perfquarry.flows.judge_evaluation import report as evaluation

        evaluation(options, evaluate, plot, as_json=as_json)
    elif count_tokens:
        from perfquarry.flows.judge_tokens import report as tokens

        tokens(options, as_json=as_json)
    else:
        _work("judge", options, ["judge"], with_server=server, as_json=as_json)


@app.command()
def tasks(repo: RepoArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the accepted tasks of a repository."""
    from perfquarry.flows import facts

    facts.tasks(home_of(home), repo, as_json=as_json)


@app.command()
def show(
    task_id: Annotated[str, typer.Argument(help="Task id, or the start of one, or of a head's hash.")],
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one task: targets, workloads, timings, and the decision in words."""
    from perfquarry.flows import facts

    facts.show(home_of(home), task_id, as_json=as_json)


@app.command()
def funnel(repo: RepoArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show how many changes each stage kept, and why the rest were rejected."""
    from perfquarry.flows import facts

    facts.funnel(home_of(home), repo, as_json=as_json)


@app.command()
def workloads(repo: RepoArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show how many workloads each source gave, and why the rest were rejected."""
    from perfquarry.flows import facts

    facts.workloads(home_of(home), repo, as_json=as_json)


@app.command()
def export(
    repo: RepoArgument,
    to: Annotated[Path, typer.Option(help="Parquet file to write; harbor: a folder.")],
    form: Annotated[Format, typer.Option("--format", help="Which columns; harbor: one folder per task.")] = "native",
    network: Annotated[str, typer.Option(help="harbor: no-network, or public where an engine cannot do that.")] = "",
    base_image: Annotated[str, typer.Option("--base", help="harbor: image to build on.")] = "",
    reviews: Annotated[
        Path | None, typer.Option(help="harbor: curators' decisions (Parquet); rejected tasks stay out.")
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the accepted tasks to one Parquet file, or as folders for Harbor."""
    from perfquarry.flows import facts

    if (network or base_image or reviews) and form != "harbor":
        raise InputError("--network, --base and --reviews are for --format harbor")
    if network not in ("", "no-network", "public"):
        raise InputError(f"unknown network {network!r}: no-network or public")
    facts.export(
        home_of(home), repo, to, form, as_json=as_json, network=network, base_image=base_image, reviews=reviews
    )


@app.command()
def stability(
    file: Annotated[Path, typer.Argument(help="JSON {'cases': \\[{'base': \\[s…], 'head': \\[s…]}…]} or Parquet.")],
    mode: Annotated[Mode, typer.Option(help="sweperf: the authors' filter and grid; full: ours.")] = "full",
    as_json: JsonOption = False,
) -> None:
    """Apply the stability filters to anybody's timings."""
    from perfquarry.flows import facts

    facts.stability(file, mode, as_json=as_json)


@app.command()
def costs(
    repo: Annotated[str | None, typer.Argument(help="Only of this repository.")] = None,
    by: Annotated[By, typer.Option(help="What is summed up.")] = "stage",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what models were asked, the tokens and the USD."""
    from perfquarry.flows.costs import report

    report(home_of(home), repo, by, as_json=as_json)


@app.command()
def sampling(repo: RepoArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show how many scripts models wrote in each round, how many were kept, and why the others were not."""
    from perfquarry.flows.sampling import report

    report(home_of(home), repo, as_json=as_json)


@app.command()
def doctor(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Tell what this machine lacks, and what that costs."""
    from perfquarry.flows.doctor import report

    report(home_of(home), as_json=as_json)


@app.command()
def gc(
    home: HomeOption = None,
    keep: Annotated[str | None, typer.Option(help="Keep so much: '5GiB'.", show_default="the disk budget")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Keep nothing but what is in use.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted; delete nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Free the disk of what can be made again: environments, trees, artifacts; the longest unused first."""
    from perfquarry.flows.gc import collect

    collect(home_of(home), "0" if everything else keep, dry_run=dry_run, as_json=as_json)


@app.command()
def image(
    task_id: Annotated[str, typer.Argument(help="Task id, or the start of one, or of a head's hash.")],
    to: Annotated[Path, typer.Option(help="Archive (tar) to write; `docker load` reads it.")],
    base_image: Annotated[str, typer.Option("--base", help="Image to build on.", show_default="our own")] = "",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the container image of a task's base to a file, and note its digest in the task."""
    from perfquarry.flows.images import export as export_image

    export_image(home_of(home), task_id, to, base_image, as_json=as_json)


@app.command()
def ui(home: HomeOption = None) -> None:
    """Open the local Prefect server's page, until Ctrl-C."""
    from perfquarry.flows.work import serve

    serve(home_of(home))


for _name in COMMANDS:
    importlib.import_module(f"perfquarry.flows.commands.{_name}").register(app)


def _grouped() -> None:
    """Puts the commands into their groups, in their order."""
    places = [(name, group) for group, names in GROUPS.items() for name in names]
    order, groups = [name for name, _ in places], dict(places)
    for registered in (app.registered_commands, app.registered_groups):
        registered.sort(key=lambda one: order.index(_name_of(one)))
        for one in registered:
            one.rich_help_panel = groups[_name_of(one)]


def _name_of(one: CommandInfo | TyperInfo) -> str:
    return str(one.name or getattr(one.callback, "__name__", ""))


_grouped()


def main() -> None:
    """Entry point: every error the program raises on purpose becomes one clear line and an exit code."""
    errors = Console(stderr=True)
    try:
        app(standalone_mode=True)
    except InputError as error:
        errors.print(f"[red]perfquarry:[/] {escape(str(error))}", highlight=False, markup=True, soft_wrap=True)
        sys.exit(2)
    except PerfquarryError as error:
        logging.getLogger("perfquarry").info("ended with an error", exc_info=error)
        errors.print(f"[red]perfquarry:[/] {escape(str(error))}", highlight=False, markup=True, soft_wrap=True)
        sys.exit(1)
    except (KeyboardInterrupt, SystemExit) as ended:  # typer makes an exit of Ctrl-C
        if isinstance(ended, SystemExit) and ended.code != INTERRUPTED:
            raise
        errors.print(
            "interrupted: what is done is kept; run the same command again to go on from here",
            highlight=False,
            soft_wrap=True,
        )
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
