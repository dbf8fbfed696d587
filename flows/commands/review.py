"""`perfquarry review`: the review queue as a local web page, and its decisions as Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

JudgeOption = Annotated[str, typer.Option(help="The judge that the tasks were made with, as given to curate.")]
WorkloadsOption = Annotated[str, typer.Option(help="Sources that the tasks were made with, as given to curate.")]
LlmOption = Annotated[str | None, typer.Option(help="Who writes further tests for what is sent back: openai:MODEL, …")]
BudgetOption = Annotated[float | None, typer.Option(min=0, help="Upper limit for model costs in USD.")]
HomeOption = Annotated[
    Path | None, typer.Option(help="Folder of the whole state.", show_default="PERFQUARRY_HOME or ./var")
]
JobsOption = Annotated[int | None, typer.Option(min=1, help="Builds at once.", show_default="cores")]
SettingsOption = Annotated[Path | None, typer.Option(help="TOML file with the settings the tasks were made with.")]


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command()
    def review(
        host: Annotated[str, typer.Option(help="Address to bind to; others than 127.0.0.1 need tokens.")] = "127.0.0.1",
        port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8730,
        reviewer: Annotated[
            list[str] | None, typer.Option(help="Name of a curator; several times: each gets a link with a token.")
        ] = None,
        required: Annotated[int, typer.Option(min=1, max=2, help="Equal opinions that settle a candidate.")] = 1,
        near: Annotated[bool, typer.Option("--near", help="Rejected candidates near the threshold, too.")] = False,
        allow_host: Annotated[
            list[str] | None, typer.Option(help="Further host name under which the page may be asked for.")
        ] = None,
        source: Annotated[
            list[str] | None, typer.Option(help="NAME=PATH|URL: clone a repository from here when it is sent back.")
        ] = None,
        export_to: Annotated[
            Path | None, typer.Option("--export", help="Only write the decisions that stand (Parquet).")
        ] = None,
        log_to: Annotated[Path | None, typer.Option("--export-log", help="Only write the whole log.")] = None,
        import_from: Annotated[
            Path | None, typer.Option("--import", help="Only add what a file of either kind holds.")
        ] = None,
        judge: JudgeOption = "heuristic",
        workloads: WorkloadsOption = "unit-test",
        llm: LlmOption = None,
        budget_usd: BudgetOption = None,
        home: HomeOption = None,
        jobs: JobsOption = None,
        settings: SettingsOption = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print facts as JSON, nothing else.")] = False,
    ) -> None:
        """Review candidates in the browser: accept, reject, send back; every decision is logged."""
        from perfquarry.flows.options import Options, default_jobs, home_of, settings_from
        from perfquarry.flows.review import Bind, serve, transfer

        place = home_of(home)
        if export_to or log_to or import_from:
            transfer(place, export_to, log_to, import_from, as_json=as_json)
            return
        options = Options(
            repo="",
            home=str(place.root),
            jobs=jobs or default_jobs(),
            settings=settings_from(settings, judge, workloads, budget_usd, llm),
        )
        given: dict[str, object] = {"--settings": settings, "--judge": judge, "--workloads": workloads}
        given |= {"--llm": llm, "--budget-usd": budget_usd}
        arguments = [part for name, value in given.items() if value is not None for part in (name, str(value))]
        bind = Bind(host, port, tuple(reviewer or ()), tuple(allow_host or ()))
        serve(options, arguments, bind, source or [], required=required, near=near, as_json=as_json)
