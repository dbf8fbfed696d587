"""Where the review page is served, to whom, and what it works with."""

from __future__ import annotations

import getpass
import json
import socket
from dataclasses import dataclass

from perfquarry.curation.review.database import database_of
from perfquarry.curation.review.decisions import Decisions
from perfquarry.curation.review.guard import NAME, Guard, is_loopback, names_of, secret_of
from perfquarry.curation.review.index import Index
from perfquarry.curation.review.sending import Starter
from perfquarry.curation.review.service import ReviewService
from perfquarry.curation.review.tables import Tables
from perfquarry.data.errors import InputError
from perfquarry.data.home import Home
from perfquarry.data.output import show
from perfquarry.data.store import TableStore


@dataclass(frozen=True)
class Bind:
    """Where the page is served, and to whom."""

    host: str
    port: int
    reviewers: tuple[str, ...]
    allowed: tuple[str, ...]


def open_desk(home: Home, starter: Starter, *, required: int, near: float | None) -> ReviewService:
    """The queue of a home, in step with its tables."""
    engine, store = database_of(home), TableStore(home.tables)
    index = Index(engine, store, near=near)
    return ReviewService(index, Decisions(engine, required), Tables(home, store), starter)


def guard_of(home: Home, bind: Bind) -> Guard:
    """Who may use what is bound so: nobody signs in only where one reviewer sits at this machine, and no proxy.

    Raises:
        InputError: nobody is named, or a name cannot be one.
    """
    remote = not is_loopback(bind.host) or bool(bind.allowed)
    names = tuple(dict.fromkeys(name.strip() for name in bind.reviewers)) or (getpass.getuser(),)
    if bad := [name for name in names if not NAME.fullmatch(name)]:
        raise InputError(f"{bad[0]!r} cannot be a reviewer's name: 1 to 60 characters without quotes and commas")
    hosts = frozenset({*names_of(bind.host), *(name.lower() for name in bind.allowed)})
    return Guard(secret_of(home.root / "review" / "secret"), names, hosts, sign_in=remote or len(names) > 1)


def bound(bind: Bind) -> socket.socket:
    """What listens there.

    Raises:
        InputError: nothing can.
    """
    family = socket.AF_INET6 if ":" in bind.host else socket.AF_INET
    try:
        return socket.create_server((bind.host, bind.port), family=family)
    except OSError as error:
        raise InputError(
            f"cannot listen on {bind.host}:{bind.port}: {error.strerror or error}; choose another --port"
        ) from error


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
