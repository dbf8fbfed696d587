"""`perfquarry review`: the review queue as a local web page, and its decisions as Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perfquarry.flows.commands.shared import (
    Budget,
    HomeFolder,
    Jobs,
    Json,
    Judge,
    MadeWith,
    SettingsFile,
    options_of,
)
from perfquarry.flows.homes import home_of


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
            list[str] | None, typer.Option(help="Further host name that the page answers to.")
        ] = None,
        source: Annotated[
            list[str] | None, typer.Option(help="NAME=PATH|URL: clone a repository from here when it is sent back.")
        ] = None,
        export_to: Annotated[
            Path | None, typer.Option("--export", help="Only write the decisions that stand (Parquet).")
        ] = None,
        log_to: Annotated[Path | None, typer.Option("--export-log", help="Only write the whole log.")] = None,
        import_from: Annotated[
            Path | None, typer.Option("--import", help="Only add the contents of a file of either kind.")
        ] = None,
        judge: Judge = "heuristic",
        workloads: MadeWith = "unit-test",
        llm: Annotated[
            str | None, typer.Option(help="Model that writes further tests for what is sent back: openai:MODEL, …")
        ] = None,
        budget_usd: Budget = None,
        home: HomeFolder = None,
        jobs: Jobs = None,
        settings: SettingsFile = None,
        as_json: Json = False,
    ) -> None:
        """Review candidates in the browser: accept, reject, send back; every decision is logged."""
        place = home_of(home)
        from perfquarry.flows.review import Bind, serve, transfer

        if export_to or log_to or import_from:
            transfer(place, export_to, log_to, import_from, as_json=as_json)
            return
        options = options_of(
            "",
            home=home,
            settings=settings,
            jobs=jobs,
            judge=judge,
            workloads=workloads,
            llm=llm,
            budget_usd=budget_usd,
        )
        given: dict[str, object] = {"--settings": settings, "--judge": judge, "--workloads": workloads}
        given |= {"--llm": llm, "--budget-usd": budget_usd}
        arguments = [part for name, value in given.items() if value is not None for part in (name, str(value))]
        bind = Bind(host, port, tuple(reviewer or ()), tuple(allow_host or ()))
        serve(options, arguments, bind, source or [], required=required, near=near, as_json=as_json)
