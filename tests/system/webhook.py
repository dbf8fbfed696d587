"""A local server that speaks as a webhook does: what it was sent, and what it answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.loopback import serve

Answer = tuple[int, dict[str, str]]


@dataclass
class Webhook:
    """`script` answers the n-th message."""

    script: Callable[[int], Answer] = lambda number: (200, {})
    url: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Handler(BaseHTTPRequestHandler):
    webhook: Webhook

    def log_message(self, *_: Any) -> None:
        """Silent."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.webhook.lock:
            number = len(self.webhook.messages)
            self.webhook.messages.append(body)
            self.webhook.keys.append(self.headers["Idempotency-Key"])
        status, headers = self.webhook.script(number)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


@contextmanager
def serving(webhook: Webhook) -> Iterator[Webhook]:
    with serve(Handler, webhook=webhook) as url:
        webhook.url = f"{url}/services/SECRET42"
        yield webhook
