"""A local server that speaks GitHub's GraphQL and REST APIs: schema, cursors, ETags, limits, errors as they are.

Run as a program it prints its address: `python github_server.py PULLS [SHARE OF FAULTS]`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import jwt
from github_world import Place, World
from graphql import DocumentNode, GraphQLError, build_schema, execute_sync, parse, validate

from tests.loopback import serve

SCHEMA = build_schema((Path(__file__).parent / "github_schema.graphql").read_text())
FAULTS = ("502", "wrong", "cut", "reset", "secondary")
DOCUMENTATION = "https://docs.github.com/rest"


@dataclass
class Bucket:
    """Quota of one token for one resource."""

    remaining: int
    reset: float


@dataclass
class GithubServer:
    """`fault` names the fault of the n-th call, or None; `limit` is each token's quota for each resource."""

    world: World = field(default_factory=World)
    fault: Callable[[int], str | None] = lambda number: None
    tokens: tuple[str, ...] = ("token-one",)
    limit: int = 1_000_000
    window: float = 3600.0
    too_heavy: int = 101
    """Pages of so many pull requests end with a 502 after a while."""
    retry_after: str = "1"
    app_key: str = ""
    """The app's public key."""
    url: str = ""
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    """(token, method and path, status) of each."""
    faults: Counter[str] = field(default_factory=Counter)
    buckets: dict[tuple[str, str], Bucket] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def bucket(self, token: str, resource: str) -> Bucket:
        found = self.buckets.get((token, resource))
        if found is None or found.reset <= time.time():
            found = self.buckets[token, resource] = Bucket(self.limit, int(time.time() + self.window))
        return found

    def begin(self) -> str | None:
        with self._lock:
            name = self.fault(len(self.calls))
            self.calls.append(("", "", ""))
            if name:
                self.faults[name] += 1
            return name

    def count(self, resource: str) -> int:
        return sum(resource in path for _, path, _ in self.calls)


@contextmanager
def serving(server: GithubServer) -> Iterator[GithubServer]:
    with serve(Handler, server_of=server) as server.url:
        yield server


@lru_cache(maxsize=64)
def parsed(text: str) -> DocumentNode | list[dict[str, Any]]:
    """The query, or GitHub's errors about it."""
    try:
        document = parse(text)
    except GraphQLError as error:
        return [error.formatted]
    errors = validate(SCHEMA, document)
    return [error.formatted for error in errors] or document


class NotFound(GraphQLError):
    def __init__(self, message: str) -> None:
        super().__init__(message)


class Root:
    """The query's root; lists are paged where the schema has connections."""

    def __init__(self, world: World) -> None:
        self._world = world

    def repository(self, info: Any, owner: str, name: str) -> Any:
        if f"{owner}/{name}".lower() != self._world.codebase.lower():
            raise NotFound(f"Could not resolve to a Repository with the name '{owner}/{name}'.")
        return Repository(self._world)

    def node(self, info: Any, id: str) -> Any:
        return self._world.by_id(id)


class Repository:
    def __init__(self, world: World) -> None:
        self._world = world
        self.nameWithOwner = world.codebase

    def pullRequest(self, info: Any, number: int) -> Any:
        return self._world.pull(number)

    def issueOrPullRequest(self, info: Any, number: int) -> Any:
        found = self._world.subject(number)
        if found is None:
            raise NotFound(f"Could not resolve to an issue or pull request with the number of {number}.")
        return found

    def pullRequests(self, info: Any, first: int, orderBy: Any, after: str | None = None) -> Any:
        assert orderBy == {"field": "UPDATED_AT", "direction": "ASC"}, "the order the server keeps"
        places = self._world.after(decoded(after) if after else None, first)
        edges = [{"cursor": encoded(place), "node": self._world.pull(place[1])} for place in places]
        more = bool(places) and places[-1] != self._world.last_place()
        info_of = {"hasNextPage": more, "endCursor": encoded(places[-1]) if places else None}
        return {"totalCount": len(self._world.numbers()), "pageInfo": info_of, "edges": edges}


def encoded(place: Place) -> str:
    return base64.b64encode(b"cursor:v2:" + json.dumps(place).encode()).decode()


def decoded(cursor: str) -> Place:
    updated, number = json.loads(base64.b64decode(cursor).removeprefix(b"cursor:v2:"))
    return updated, number


def resolve(source: Any, info: Any, **arguments: Any) -> Any:
    """Fields of dicts; lists of those that the schema calls connections are paged."""
    if not isinstance(source, dict):
        value = getattr(source, info.field_name)
        return value(info, **arguments) if callable(value) else value
    value = source.get(info.field_name)
    kind = str(info.return_type).rstrip("!")
    if kind.endswith("Connection") and isinstance(value, list):
        first = arguments.get("first")
        assert first is not None and 1 <= first <= 100, "You must provide a `first` value from 1 to 100"
        start = int(arguments.get("after") or 0)
        end = min(start + first, len(value))
        page = {"hasNextPage": end < len(value), "endCursor": str(end)}
        return {"totalCount": len(value), "pageInfo": page, "nodes": value[start:end]}
    return value


class Handler(BaseHTTPRequestHandler):
    server_of: GithubServer
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16

    def log_message(self, *_: Any) -> None:
        """Silent."""

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if installation := re.fullmatch(r"/app/installations/(\d+)/access_tokens", self.path):
            self.installation_token(installation[1])
        elif self.path == "/graphql":
            self.guarded("graphql", lambda: self.graphql(json.loads(data)))
        else:
            self.say(404, {"message": "Not Found", "documentation_url": DOCUMENTATION, "status": "404"})

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        found = re.fullmatch(r"/repos/([^/]+/[^/]+)/(pulls|issues|installation)", parts.path)
        if not found or found[1].lower() != self.server_of.world.codebase.lower():
            self.guarded("core", lambda: (404, {"message": "Not Found", "documentation_url": DOCUMENTATION}))
        elif found[2] == "installation":
            jwt.decode(self.token(), self.server_of.app_key, algorithms=["RS256"])
            self.say(200, {"id": 77, "app_id": 5, "account": {"login": "owner"}})
        else:
            self.guarded("core", lambda: self.listing(found[2], dict(parse_qsl(parts.query))))

    def handle(self) -> None:
        with suppress(ConnectionResetError, BrokenPipeError):  # the client was killed
            super().handle()

    def token(self) -> str:
        return self.headers.get("Authorization", "").partition(" ")[2]

    def installation_token(self, number: str) -> None:
        claims = jwt.decode(self.token(), self.server_of.app_key, algorithms=["RS256"])
        assert claims["iss"] == "5" and number == "77", (claims, number)
        self.server_of.tokens += ("ghs_installation",)
        self.say(201, {"token": "ghs_installation", "expires_at": "2099-01-01T00:00:00Z", "permissions": {}})

    def guarded(self, resource: str, work: Callable[[], tuple[int, Any]]) -> None:
        """Faults, keys and quotas before the work itself."""
        server = self.server_of
        fault = server.begin()
        place = len(server.calls) - 1
        if self.token() not in server.tokens:
            self.say(401, {"message": "Bad credentials", "documentation_url": DOCUMENTATION, "status": "401"})
            return
        bucket = server.bucket(self.token(), resource)
        self.limits = {
            "X-RateLimit-Limit": str(server.limit), "X-RateLimit-Reset": str(int(bucket.reset)),
            "X-RateLimit-Resource": resource, "X-RateLimit-Remaining": str(max(0, bucket.remaining - 1)),
        }  # fmt: skip
        if fault and self.faulty(fault, resource):
            server.calls[place] = (self.token(), f"{resource} {self.path}", fault)
            return
        if bucket.remaining <= 0:
            status, value = self.exceeded(resource)
        else:
            status, value = work()
            bucket.remaining -= status != 304
        server.calls[place] = (self.token(), f"{resource} {self.path}", str(status))
        self.say(status, value, cut=fault == "cut")

    def exceeded(self, resource: str) -> tuple[int, Any]:
        self.limits["X-RateLimit-Remaining"] = "0"
        message = "API rate limit exceeded for user ID 1."
        if resource == "graphql":
            return 200, {"errors": [{"type": "RATE_LIMITED", "message": message}]}
        return 403, {"message": message, "documentation_url": DOCUMENTATION, "status": "403"}

    def faulty(self, fault: str, resource: str) -> bool:
        if fault == "502":
            page = b"<!DOCTYPE html><html><head><title>Unicorn! &middot; GitHub</title></head></html>"
            self.send(502, page, {"Content-Type": "text/html"})
        elif fault == "wrong":
            text = "Something went wrong while executing your query. Please include `0C9A` when reporting this issue."
            self.say(200, {"data": None, "errors": [{"message": text}]} if resource == "graphql" else {"message": text})
        elif fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
        elif fault in ("secondary", "429"):
            self.limits["Retry-After"] = self.server_of.retry_after
            text = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
            self.say(429 if fault == "429" else 403, {"message": text, "documentation_url": DOCUMENTATION})
        else:
            return False
        return True

    def graphql(self, body: dict[str, Any]) -> tuple[int, Any]:
        document = parsed(body["query"])
        if isinstance(document, list):
            return 200, {"errors": document}
        if body["variables"].get("size", 0) >= self.server_of.too_heavy:
            return 502, {"data": None, "errors": [{"message": "Something went wrong: a timeout"}]}
        done = execute_sync(
            SCHEMA, document, Root(self.server_of.world), field_resolver=resolve, variable_values=body["variables"]
        )
        answer: dict[str, Any] = {"data": done.data}
        if done.errors:
            answer["errors"] = [self.error(error) for error in done.errors]
        return 200, answer

    @staticmethod
    def error(error: GraphQLError) -> dict[str, Any]:
        if not isinstance(error.original_error or error, NotFound):
            raise error
        return {"type": "NOT_FOUND", **error.formatted}

    def listing(self, what: str, options: dict[str, str]) -> tuple[int, Any]:
        world = self.server_of.world
        rows = [(at, number) for at, number in world.newest() if what == "issues" or number not in world.issues]
        if options.get("direction") == "asc":
            rows.reverse()
        rows = [row for row in rows if row[0] >= options.get("since", "")]
        size, page = int(options.get("per_page", 30)), int(options.get("page", 1))
        shown = [
            {"number": number, "updated_at": at, "title": (world.subject(number) or {})["title"]}
            for at, number in rows[(page - 1) * size : page * size]
        ]
        if page * size < len(rows):
            query = "&".join(f"{name}={value}" for name, value in {**options, "page": str(page + 1)}.items())
            self.limits["Link"] = f'<{self.server_of.url}{urlsplit(self.path).path}?{query}>; rel="next"'
        digest = hashlib.sha256(json.dumps([shown, self.token()]).encode()).hexdigest()
        self.limits["ETag"] = f'W/"{digest}"'
        if self.headers.get("If-None-Match") == f'W/"{digest}"':
            self.limits["X-RateLimit-Remaining"] = str(self.server_of.bucket(self.token(), "core").remaining)
            return 304, None
        return 200, shown

    def say(self, status: int, value: Any, *, cut: bool = False) -> None:
        data = b"" if value is None else json.dumps(value).encode()
        limits = getattr(self, "limits", {})
        self.send(status, data, {"Content-Type": "application/json; charset=utf-8", **limits}, cut=cut)

    def send(self, status: int, data: bytes, headers: dict[str, str], *, cut: bool = False) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if cut else data)
            self.wfile.flush()
            self.close_connection = self.close_connection or cut


def main(count: int, share: float) -> None:
    chance = random.Random(1)
    server = GithubServer(World(count), fault=lambda number: chance.choice(FAULTS) if chance.random() < share else None)
    with serving(server):
        print(server.url, flush=True)
        for _ in sys.stdin:  # each line asks for the counts so far; the end of the input ends it
            print(json.dumps({"calls": len(server.calls), "faults": dict(server.faults)}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0)
