"""A collector of traces, as OpenTelemetry's protocol has it: OTLP over HTTP, in protobuf."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from aiohttp import web
from http_server import listening
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as messages


class Span(NamedTuple):
    """What a process told about one span."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, str]


@dataclass
class Collector:
    """All spans received so far, and the messages they came in."""

    address: str = ""
    spans: list[Span] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def settings(self) -> dict[str, str]:
        """What makes a process send its spans here, soon."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.address, "OTEL_BSP_SCHEDULE_DELAY": "200"}

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def line_of(self, span: Span) -> list[str]:
        """The names of a span and of those around it, the innermost first."""
        around = [it for it in self.spans if it.span_id == span.parent_id]
        return [span.name, *(self.line_of(around[0]) if around else [])]

    async def take(self, request: web.Request) -> web.Response:
        message = messages.ExportTraceServiceRequest.FromString(await request.read())
        self.texts.append(str(message))
        for resource in message.resource_spans:
            service = _values(resource.resource.attributes).get("service.name", "")
            for span in (it for scope in resource.scope_spans for it in scope.spans):
                ids = (it.hex() for it in (span.trace_id, span.span_id, span.parent_span_id))
                self.spans.append(Span(service, span.name, *ids, _values(span.attributes)))
        body = messages.ExportTraceServiceResponse().SerializeToString()
        return web.Response(body=body, content_type="application/x-protobuf")


def _values(attributes: Iterable[Any]) -> dict[str, str]:
    return {it.key: it.value.string_value for it in attributes}


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    """Run a collector."""
    app, collector = web.Application(client_max_size=64 * 1024**2), Collector()
    app.router.add_post("/v1/traces", collector.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    async with listening(runner) as collector.address:
        yield collector
