"""A collector of traces, as OpenTelemetry's protocol has it: OTLP over HTTP, in protobuf."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True)
class Span:
    """What a process told about one span."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, str]


@dataclass
class Collector:
    """All spans received so far."""

    address: str
    spans: list[Span] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def settings(self) -> dict[str, str]:
        """What makes a process send its spans here, soon."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.address, "OTEL_BSP_SCHEDULE_DELAY": "200"}

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def line_of(self, span: Span) -> list[str]:
        """The names of a span and of those around it, the innermost first."""
        by_id = {each.span_id: each for each in self.spans}
        found = [span.name]
        while span.parent_id in by_id:
            span = by_id[span.parent_id]
            found.append(span.name)
        return found

    async def take(self, request: web.Request) -> web.Response:
        # Unpacked by aiohttp, if it came packed.
        message = ExportTraceServiceRequest.FromString(await request.read())
        self.texts.append(str(message))
        for resource in message.resource_spans:
            service = _values(resource.resource.attributes).get("service.name", "")
            self.spans += [
                Span(
                    service=service,
                    name=span.name,
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    parent_id=span.parent_span_id.hex(),
                    attributes=_values(span.attributes),
                )
                for scope in resource.scope_spans
                for span in scope.spans
            ]
        body = ExportTraceServiceResponse().SerializeToString()
        return web.Response(body=body, content_type="application/x-protobuf")


def _values(attributes: Iterable[Any]) -> dict[str, str]:
    return {it.key: it.value.string_value for it in attributes}


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    """Run a collector."""
    app = web.Application(client_max_size=64 * 1024**2)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    collector = Collector("")
    app.router.add_post("/v1/traces", collector.take)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        collector.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield collector
    finally:
        await runner.cleanup()
