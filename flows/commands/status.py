"""`perfquarry status`: what is done, what runs, what waits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(status)


def status(
    once: Annotated[bool, typer.Option("--once", help="Print the table once instead of keeping it fresh.")] = False,
    home: Annotated[
        Path | None, typer.Option(help="Folder of the whole state.", show_default="PERFQUARRY_HOME or ./var")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print facts as JSON, nothing else.")] = False,
) -> None:
    """Show each repository's stages, what runs now, the last run, and what is waited for."""
    from perfquarry.flows.options import home_of
    from perfquarry.flows.status import report

    report(home_of(home), once=once, as_json=as_json)
