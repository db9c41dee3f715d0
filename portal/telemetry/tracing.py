"""Traces by OpenTelemetry, when its standard variables ask for them; `spans.py` is what code uses.

Requests, database statements and calls to storage are traced by the project's own libraries. They
come with the extra `otel` and are imported only when wanted, so that nothing is paid otherwise.
Limits: spans leave by OTLP over HTTP; queries of addresses, headers and the values in statements
are left out, since they may be secret.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar, cast

from portal.config import is_tracing_wanted
from portal.telemetry import spans

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import Sampler
    from yarl import URL

# A collector that is away must not hold up the end of a process.
FLUSH_TIMEOUT_S = 1.5

App = TypeVar("App", bound=Callable[..., Any])

_providers: list[TracerProvider] = []


def start(service: str) -> None:
    """Trace this process from now on, if that is wanted; connections must be made afterwards."""
    if not is_tracing_wanted(os.environ):
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.instrumentation.aiohttp_client import AioHttpClientInstrumentor
    from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    if "service.name=" not in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        os.environ.setdefault("OTEL_SERVICE_NAME", f"portal-{service}")
    provider = TracerProvider(shutdown_on_exit=False)
    provider.sampler = _rooted(provider.sampler)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    PsycopgInstrumentor().instrument(tracer_provider=provider)
    # botocore's own is of no use here: calls to storage go through aiohttp.
    AioHttpClientInstrumentor().instrument(tracer_provider=provider, url_filter=_without_query)
    _providers[:] = [provider]
    spans.collect(provider.get_tracer("portal"))


def traced(app: App, *, excluded_urls: str) -> App:
    """The ASGI app, its requests traced if this process is.

    `excluded_urls` are regular expressions, separated by commas.
    """
    if not _providers:
        return app
    from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware

    wrapped: Any = OpenTelemetryMiddleware(
        app,
        excluded_urls=excluded_urls,
        # The route is told later, by `spans.describe`.
        default_span_details=lambda scope: (scope.get("method", "HTTP"), {}),
        tracer_provider=_providers[0],
        exclude_spans=["receive", "send"],
    )
    return cast("App", wrapped)


async def flush() -> None:
    """Send what was not sent yet, if the collector takes it soon."""
    for provider in _providers:
        # It keeps no time limit of its own; a daemon thread does not hold the exit up.
        sending = Thread(target=provider.force_flush, daemon=True)
        sending.start()
        await asyncio.to_thread(sending.join, FLUSH_TIMEOUT_S)


def _without_query(url: URL) -> str:
    return str(url.with_query(None).with_user(None))


def _rooted(sampler: Sampler) -> Sampler:
    """As `sampler`, but no trace begins with a statement or a call outside of a request or job.

    Workers poll the queue all the time.
    """
    from opentelemetry.sdk.trace import sampling
    from opentelemetry.trace import SpanKind, get_current_span

    class Rooted(sampling.Sampler):
        def should_sample(
            self,
            parent_context: Any,
            trace_id: int,
            name: str,
            kind: Any = None,
            *rest: Any,
            **more: Any,
        ) -> sampling.SamplingResult:
            parent = get_current_span(parent_context).get_span_context()
            if kind is SpanKind.CLIENT and not parent.is_valid:
                return sampling.SamplingResult(sampling.Decision.DROP)
            return sampler.should_sample(parent_context, trace_id, name, kind, *rest, **more)

        def get_description(self) -> str:
            return f"Rooted{{{sampler.get_description()}}}"

    return Rooted()
