"""Who may use the page, and from where: names of hosts, sign-in, CSRF, headers.

Bound to this machine for one reviewer, nobody signs in. Else each reviewer has a token; the
link with it sets a cookie, and names in the log are those of the tokens.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import secrets
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from perfquarry.data.errors import InputError

COOKIE = "perfquarry_review"
"""Holds a reviewer's token, or a random word where nobody signs in: the CSRF token hangs on it."""
BODY_LIMIT = 64 * 1024
"""Bytes of a form."""
NAME = re.compile(r"[^\x00-\x1f\x7f~,;\"\\]{1,60}")

_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


_OF_PLOTS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
}
"""A plot has its colours for dark pages inside, and nothing else that acts."""


def secret_of(path: Path) -> bytes:
    """The secret of a home, made when it is first needed; deleting the file makes all tokens invalid."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        secret = path.read_bytes()
        if len(secret) < 32:
            raise InputError(f"{path} is no secret: delete it, and start again") from None
        return secret
    with os.fdopen(handle, "wb") as file:
        secret = secrets.token_bytes(32)
        file.write(secret)
    return secret


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what is bound to `host`."""
    return host in ("localhost", "::1") or host.startswith("127.")


def names_of(host: str) -> set[str]:
    """Names under which a browser may ask for what is bound to `host`."""
    if is_loopback(host):
        return {host, "localhost", "127.0.0.1", "::1"}
    if host not in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        return {host.lower()}
    addresses = (one.address.partition("%")[0] for every in psutil.net_if_addrs().values() for one in every)
    return {one.lower() for one in (*addresses, socket.gethostname(), socket.getfqdn(), "localhost")}


@dataclass(frozen=True)
class Guard:
    """Checks requests.

    `reviewers` may review; the first sits at this machine when nobody signs in (`sign_in` is false). `hosts` are names,
    without port, that the Host header may have.
    """

    secret: bytes
    reviewers: tuple[str, ...]
    hosts: frozenset[str]
    sign_in: bool

    def token(self, reviewer: str) -> str:
        """What signs a reviewer in: name and signature."""
        return f"{base64.urlsafe_b64encode(reviewer.encode()).decode().rstrip('=')}.{self._sign('reviewer', reviewer)}"

    def reviewer_of(self, token: str) -> str | None:
        """Whose token it is; None for a wrong one."""
        return next(
            (name for name in self.reviewers if hmac.compare_digest(token.encode(), self.token(name).encode())), None
        )

    def reviewer(self, request: Request) -> str | None:
        """Who asks; None when they have to sign in."""
        if not self.sign_in:
            return self.reviewers[0]
        return self.reviewer_of(request.cookies.get(COOKIE, ""))

    def csrf(self, session: str) -> str:
        """What forms of a session must carry."""
        return self._sign("csrf", session)

    def from_our_page(self, request: Request, given: str) -> bool:
        """Whether a form was sent by a page of ours: its token fits the cookie, and its origin is this host."""
        session = request.cookies.get(COOKIE, "")
        origin = request.headers.get("origin")
        ours = origin is None or origin.partition("://")[2] == request.headers.get("host")
        alien = request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
        return bool(session) and ours and not alien and hmac.compare_digest(given.encode(), self.csrf(session).encode())

    def _sign(self, kind: str, text: str) -> str:
        return hmac.new(self.secret, f"{kind}\n{text}".encode(), hashlib.sha256).hexdigest()


class Gate:
    """ASGI middleware: only known hosts (DNS rebinding), only short forms, the security headers on every answer."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self._app, self._hosts = app, frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or refuses it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers |= _OF_PLOTS if headers.get("content-type", "").startswith("image/svg") else {}
                headers.setdefault("cache-control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        length = headers.get("content-length", "" if scope["method"] not in ("GET", "HEAD") else "0")
        if _without_port(headers.get("host", "")) not in self._hosts:
            answer = PlainTextResponse("This host name is not served here (--allow-host NAME allows it).\n", 421)
            await answer(scope, receive, guarded)
        elif "\0" in scope["path"] or b"%00" in scope["query_string"]:
            await PlainTextResponse("No address here has such a character.\n", 400)(scope, receive, guarded)
        elif not length.isdecimal():
            await PlainTextResponse("The length of the form is missing.\n", 411)(scope, receive, guarded)
        elif (form := await _form(scope, receive, length)) is None:
            await PlainTextResponse("The form is too long.\n", 413, {"connection": "close"})(scope, receive, guarded)
        else:
            await self._app(scope, _again(form, receive), guarded)


async def _form(scope: Scope, receive: Receive, length: str) -> bytes | None:
    """The body, empty where none is read; None for one that says or shows that it is too long.

    What a request says of its length need not be true: with `Transfer-Encoding: chunked` it does not count.
    """
    if len(length) > len(str(BODY_LIMIT)) or int(length) > BODY_LIMIT:
        return None
    body, more = bytearray(), scope["method"] not in ("GET", "HEAD")
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > BODY_LIMIT or message["type"] == "http.disconnect":
            return None
    return bytes(body)


def _again(form: bytes, receive: Receive) -> Receive:
    """Gives a body that was read, then what else comes."""
    messages: list[Message] = [{"type": "http.request", "body": form, "more_body": False}]

    async def received() -> Message:
        return messages.pop() if messages else await receive()

    return received


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
