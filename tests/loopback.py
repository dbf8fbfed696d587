"""HTTP servers of tests, in a thread of the test's process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def serve(handler: type[BaseHTTPRequestHandler], **bound: Any) -> Iterator[str]:
    """The address of a server on a free port of the loopback; `bound` become attributes of its handlers."""
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (handler,), bound)) as http:
        http.daemon_threads = True
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_address[1]}"
        finally:
            http.shutdown()
            thread.join()
