"""What `perfquarry review` says: where the page is, and what went to files and came from them."""

from __future__ import annotations

import json
import socket
from pathlib import Path

from perfquarry.curation.review.database import database_of
from perfquarry.curation.review.decisions import Decisions
from perfquarry.curation.review.guard import Guard, is_loopback
from perfquarry.curation.review.serving import Bind
from perfquarry.curation.review.transfer import export_decisions, export_log, import_decisions
from perfquarry.data.errors import InputError
from perfquarry.data.home import Home
from perfquarry.data.output import put, show


def transfer(
    home: Home, export_to: Path | None, log_to: Path | None, import_from: Path | None, *, as_json: bool
) -> None:
    """Adds what a file holds, then writes the decisions that stand, and the log.

    Raises:
        InputError: there is no such file, or it holds no decisions.
    """
    if import_from and not import_from.is_file():
        raise InputError(f"there is no file {import_from}: name one that --export wrote, such as decisions.parquet")
    engine = database_of(home)
    decisions = Decisions(engine)
    facts: dict[str, object] = {}
    lines = []
    if import_from:
        total, new = import_decisions(decisions, import_from)
        facts |= {"imported_from": str(import_from), "events": total, "new": new}
        lines.append(f"{import_from}: {total} events, {new} of them new")
    if export_to:
        exported = export_decisions(decisions, export_to)
        facts |= {"exported_to": str(export_to), "exported": exported}
        lines.append(f"{export_to}: {exported} decisions")
    if log_to:
        logged = export_log(decisions, log_to)
        facts |= {"log": str(log_to), "logged": logged}
        lines.append(f"{log_to}: {logged} events")
    engine.dispose()
    put(facts, lines, as_json=as_json)


def announce(bind: Bind, port: int, guard: Guard, *, as_json: bool) -> None:
    """Prints where the page is, and the links with which reviewers sign in."""
    shown = socket.gethostname() if bind.host in ("0.0.0.0", "::") else bind.host  # noqa: S104 - compared
    address = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/"
    reached = f"https://{bind.allowed[0]}/" if bind.allowed else address  # the proxy in front
    links = {name: f"{reached}sign-in?token={guard.token(name)}" for name in guard.reviewers} if guard.sign_in else {}
    if as_json:
        print(json.dumps({"address": address, "links": links}), flush=True)
        return
    show(f"Review: {address}   (Ctrl-C ends it)", *(f"{name}: {link}" for name, link in links.items()))
    if not is_loopback(bind.host):
        show("Tokens cross the network unencrypted unless a proxy in front adds TLS.")
