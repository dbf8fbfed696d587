"""Spans reach an OTLP server when one is named, and only then."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.system.commands import command


class Collector(BaseHTTPRequestHandler):
    requests: list[tuple[str, ExportTraceServiceRequest]]

    def log_message(self, *_: Any) -> None:
        """Silent."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            import gzip

            body = gzip.decompress(body)
        self.requests.append((self.path, ExportTraceServiceRequest.FromString(body)))
        self.send_response(200)
        self.end_headers()


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, ExportTraceServiceRequest]]]]:
    handler = type("Bound", (Collector,), {"requests": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{http.server_address[1]}", handler.requests
        http.shutdown()
        thread.join()


def curate(home: Path, *stages: str, **environment: str) -> None:
    for stage in stages:
        subprocess.run(
            command(home, stage, "demo", "--no-server"),
            env={**os.environ, "NO_PROXY": "127.0.0.1", **environment},
            check=True,
            capture_output=True,
        )


def test_a_span_a_run_a_stage_and_a_batch(tmp_path: Path, collector: Any) -> None:
    url, requests = collector
    curate(tmp_path, "mine")
    assert requests == []
    curate(tmp_path, "judge", OTEL_EXPORTER_OTLP_ENDPOINT=url, OTEL_RESOURCE_ATTRIBUTES="team=a")
    assert {path for path, _ in requests} == {"/v1/traces"}
    resources = [resource for _, request in requests for resource in request.resource_spans]
    spans = {span.name: span for one in resources for scope in one.scope_spans for span in scope.spans}
    assert set(spans) == {"run", "judge", "batch"}
    assert spans["judge"].parent_span_id == spans["run"].span_id
    assert spans["batch"].parent_span_id == spans["judge"].span_id and not spans["run"].parent_span_id
    attributes = {one.key: one.value.string_value or one.value.int_value for one in spans["batch"].attributes}
    assert attributes == {"perfquarry.repository": "demo", "perfquarry.stage": "judge", "perfquarry.keys": 33}
    described = {one.key: one.value.string_value for one in resources[0].resource.attributes}
    assert described["service.name"] == "perfquarry" and described["team"] == "a"
