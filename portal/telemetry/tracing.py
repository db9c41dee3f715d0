"""Traces by OpenTelemetry, if its standard environment variables ask for them (`start`).

Traced code calls `span` whether or not the process is traced; in an untraced process this module
only passes on the request's id. OpenTelemetry comes with the extra `otel` and is imported only for
traces.

OpenTelemetry's own libraries trace requests, database statements and calls to storage. The trace
context of a job is an argument of the job and names the request that caused it. A job enqueued by
another job has that job's context. Jobs that replace a lost one have none.

Limits: spans are exported by OTLP over HTTP. Query strings, headers and values in statements are
left out, since they may be secret.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar, cast

from portal.config import is_tracing_wanted
from portal.telemetry.logs import current_fields, log_context

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import Sampler
    from opentelemetry.trace import Span

REQUEST_ID = "request_id"
# Longest wait for the collector when the process ends.
FLUSH_TIMEOUT_S = 1.5

App = TypeVar("App", bound=Callable[..., Any])

# The provider of a traced process; otherwise empty.
_providers: list[TracerProvider] = []


def start(service: str) -> None:
    """Trace this process if the environment asks for it. Call this before opening connections."""
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
    # Calls to storage go through aiohttp, which OpenTelemetry's botocore library doesn't trace. The
    # paths of webhooks and of imports may contain secrets.
    AioHttpClientInstrumentor().instrument(
        tracer_provider=provider, url_filter=lambda url: str(url.origin())
    )
    _providers.append(provider)


def traced(app: App, *, excluded_urls: str) -> App:
    """Return the ASGI app with traced requests, or the same app in an untraced process.

    `excluded_urls` are regular expressions, separated by commas.
    """
    if not _providers:
        return app
    from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware

    wrapped: Any = OpenTelemetryMiddleware(
        app,
        excluded_urls=excluded_urls,
        # `describe` adds the route later.
        default_span_details=lambda scope: (scope.get("method", "HTTP"), {}),
        server_request_hook=_drop_query,
        tracer_provider=_providers[0],
        exclude_spans=["receive", "send"],
    )
    return cast("App", wrapped)


async def flush() -> None:
    """Send the remaining spans, for at most `FLUSH_TIMEOUT_S`."""
    for provider in _providers:
        # `force_flush` ignores its time limit. A daemon thread doesn't delay the exit.
        thread = Thread(target=provider.force_flush, daemon=True)
        thread.start()
        await asyncio.to_thread(thread.join, FLUSH_TIMEOUT_S)


def span(name: str, **attributes: str | float) -> AbstractContextManager[object]:
    """Return a context manager for a span, which is a child of the current span."""
    if not _providers:
        return nullcontext()
    tracer = _providers[0].get_tracer("portal")
    return tracer.start_as_current_span(name, attributes=attributes)


def describe(name: str, **attributes: str | float) -> None:
    """Rename the current span, and add attributes that were unknown when it began."""
    if _providers:
        from opentelemetry.trace import get_current_span

        current = get_current_span()
        current.update_name(name)
        current.set_attributes(attributes)


def current_trace_context() -> dict[str, Any]:
    """Return the id of the current request, and the W3C context of a traced process."""
    context: dict[str, Any] = {}
    if _providers:
        from opentelemetry.propagate import inject

        inject(context)
    if request_id := current_fields().get(REQUEST_ID):
        context[REQUEST_ID] = request_id
    return context


@contextmanager
def traced_job(name: str, context: Mapping[str, str] | None, **fields: Any) -> Iterator[None]:
    """Run a job: add the fields and request id to its logs, and its spans to the trace."""
    context = context or {}
    if REQUEST_ID in context:
        fields = {REQUEST_ID: context[REQUEST_ID], **fields}
    with log_context(**fields):
        if not _providers:
            yield
            return
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind

        tracer = _providers[0].get_tracer("portal")
        with tracer.start_as_current_span(
            name, context=extract(context), kind=SpanKind.CONSUMER, attributes=fields
        ):
            yield


def _drop_query(request: Span, scope: object) -> None:
    """Remove the query from a request's attributes, which have old or new names."""
    attributes = getattr(request, "attributes", None) or {}
    if "http.url" in attributes:
        request.set_attribute("http.url", str(attributes["http.url"]).partition("?")[0])
    if "url.query" in attributes:
        request.set_attribute("url.query", "")


def _rooted(sampler: Sampler) -> Sampler:
    """Return a sampler that also drops statements and calls outside of requests and jobs.

    Otherwise each poll of the queue would begin a trace.
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
            *arguments: Any,
            **options: Any,
        ) -> sampling.SamplingResult:
            parent = get_current_span(parent_context).get_span_context()
            if kind is SpanKind.CLIENT and not parent.is_valid:
                return sampling.SamplingResult(sampling.Decision.DROP)
            return sampler.should_sample(
                parent_context, trace_id, name, kind, *arguments, **options
            )

        def get_description(self) -> str:
            return f"Rooted{{{sampler.get_description()}}}"

    return Rooted()
