"""OpenTelemetry spans of runs, stages and batches, when OTEL_EXPORTER_OTLP_ENDPOINT (or ..._TRACES_...) says where to.

Without the variable nothing is imported, made or sent. Prefect's own spans are not sent:
our provider is not the global one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

_log = logging.getLogger("perfquarry.spans")
_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_tracer: Tracer | None = None


@contextmanager
def tracing() -> Iterator[None]:
    """Within it, spans are sent where the variables say; what waits is sent before it ends."""
    global _tracer
    if not any(os.environ.get(name) for name in _VARIABLES):
        yield
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        _log.warning("%s is set, but no span is sent: install perfquarry[otel]", _VARIABLES[0])
        yield
        return
    name = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "perfquarry"}
    provider = TracerProvider(resource=Resource.create(name), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    _tracer = provider.get_tracer("perfquarry")
    try:
        yield
    finally:
        _tracer = None
        provider.shutdown()


@contextmanager
def span(name: str, **attributes: str | int) -> Iterator[None]:
    """A span of what happens within it, below the span of the same context; an error that leaves it is recorded."""
    if _tracer is None:
        yield
        return
    prefixed = {f"perfquarry.{key}": value for key, value in attributes.items()}
    with _tracer.start_as_current_span(name, attributes=prefixed):
        yield


def span_failed(error: BaseException) -> None:
    """Marks the current span as failed by an error that does not leave it."""
    if _tracer is not None:
        from opentelemetry.trace import Status, StatusCode, get_current_span

        get_current_span().set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
