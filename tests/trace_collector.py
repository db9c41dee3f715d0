"""Collector of traces by OTLP over HTTP, in protobuf."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from aiohttp import web
from http_server import listening
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as messages


class Span(NamedTuple):
    """A span that a process exported."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, str]


@dataclass
class Collector:
    """Received spans, and the texts of their messages."""

    address: str = ""
    spans: list[Span] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def settings(self) -> dict[str, str]:
        """Return the settings for a process to export its spans here, soon."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.address, "OTEL_BSP_SCHEDULE_DELAY": "200"}

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def line_of(self, span: Span) -> list[str]:
        """Return the names of a span and its ancestors, the innermost first."""
        parents = [parent for parent in self.spans if parent.span_id == span.parent_id]
        return [span.name, *(self.line_of(parents[0]) if parents else [])]

    async def take(self, request: web.Request) -> web.Response:
        message = messages.ExportTraceServiceRequest.FromString(await request.read())
        self.texts.append(str(message))
        for resource in message.resource_spans:
            service = _values(resource.resource.attributes).get("service.name", "")
            for span in (span for scope in resource.scope_spans for span in scope.spans):
                ids = [part.hex() for part in (span.trace_id, span.span_id, span.parent_span_id)]
                self.spans.append(Span(service, span.name, *ids, _values(span.attributes)))
        body = messages.ExportTraceServiceResponse().SerializeToString()
        return web.Response(body=body, content_type="application/x-protobuf")


def _values(attributes: Iterable[Any]) -> dict[str, str]:
    return {attribute.key: attribute.value.string_value for attribute in attributes}


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    """Run a collector."""
    app = web.Application(client_max_size=64 * 1024**2)
    collector = Collector()
    app.router.add_post("/v1/traces", collector.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    async with listening(runner) as collector.address:
        yield collector
