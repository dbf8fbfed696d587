"""`perfquarry review`: the review queue as a local web page, and its decisions as Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perfquarry.data.errors import InputError
from perfquarry.data.home import home_of
from perfquarry.data.output import put
from perfquarry.flows.commands.shared import Asked, Json, MadeWith, app, with_options

Writer = Annotated[str | None, typer.Option(help="Who writes further tests for what is sent back: openai:MODEL, …")]


@app.command(example="review --reviewer ada --reviewer grace")
@with_options("judge", "budget_usd", "home", "jobs", "settings", workloads=MadeWith, llm=Writer)
def review(
    options: Asked,
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
    as_json: Json = False,
) -> None:
    """Review candidates in the browser: accept, reject, send back; every decision is logged."""
    import uvicorn

    from perfquarry.curation.review.app import create_app
    from perfquarry.curation.review.send_back import SendBackRunner
    from perfquarry.curation.review.serving import Bind, announce, bound, guard_of, open_desk
    from perfquarry.curation.review.transfer import transfer
    from perfquarry.flows.run import Run
    from perfquarry.flows.sources import SOURCES

    if export_to or log_to or import_from:
        put(transfer(home_of(options.keywords["home"]), export_to, log_to, import_from), as_json=as_json)
        return
    again = [(name, options.keywords[name]) for name in ("settings", "judge", "workloads", "llm", "budget_usd")]
    given = [(f"--{name.replace('_', '-')}", str(value)) for name, value in again if value is not None]
    bind = Bind(host, port, tuple(reviewer or ()), tuple(allow_host or ()))
    chosen = options(repo="")
    home = chosen.place
    guard = guard_of(home, bind)
    workloads = [name for name in SOURCES if name != "generated" or chosen.settings.generate.generated.model]
    runner = SendBackRunner(
        home,
        chosen.jobs,
        lambda repo: Run(chosen.model_copy(update={"repo": repo})),
        workloads,
        [part for pair in given for part in pair],
        dict(_pair(text) for text in source or []),
    )
    with bound(bind) as listener:
        limit = chosen.settings.select.min_gain / 2 if near else None
        desk = open_desk(home, runner, required=required, near=limit)
        announce(bind, listener.getsockname()[1], guard, as_json=as_json)
        config = uvicorn.Config(create_app(desk, guard), log_level="warning", server_header=False, ws="none")
        uvicorn.Server(config).run(sockets=[listener])


def _pair(text: str) -> tuple[str, str]:
    name, found, place = text.partition("=")
    if not found or not name or not place:
        raise InputError(f"--source {text!r}: NAME=PATH|URL is wanted")
    return name, place
