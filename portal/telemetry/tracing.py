"""Traces by OpenTelemetry, when its standard variables ask for them (`start`).

Code that is traced calls `span` and needs not care whether anyone collects: in a process that is
not traced everything here does nothing but hand the request's id on. The packages come with the
extra `otel` and are imported only when wanted, so that nothing is paid otherwise.

Requests, database statements and calls to storage are traced by OpenTelemetry's own libraries.
The trace context of a job is an argument of the job that names the request behind it. A job that
another job puts into the queue has that one's context. Jobs of old releases, and those that replace
a lost one, have none.

Limits: spans leave by OTLP over HTTP; queries of addresses, headers and the values in statements
are left out, since they may be secret.
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
    from opentelemetry.trace import Span, Tracer
    from yarl import URL

REQUEST_ID = "request_id"
# A collector that is away must not hold up the end of a process.
FLUSH_TIMEOUT_S = 1.5

App = TypeVar("App", bound=Callable[..., Any])

# Of a process that is traced.
_providers: list[TracerProvider] = []
_tracers: list[Tracer] = []


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
    _providers[:], _tracers[:] = [provider], [provider.get_tracer("portal")]


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
        # The route is told later, by `describe`.
        default_span_details=lambda scope: (scope.get("method", "HTTP"), {}),
        server_request_hook=_drop_query,
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


def span(name: str, **attributes: str | float) -> AbstractContextManager[object]:
    """A span around what happens inside; a child of the current one."""
    if not _tracers:
        return nullcontext()
    return _tracers[0].start_as_current_span(name, attributes=attributes)


def describe(name: str, **attributes: str | float) -> None:
    """Rename the current span, and add attributes that were not known when it began."""
    if _tracers:
        from opentelemetry.trace import get_current_span

        current = get_current_span()
        current.update_name(name)
        current.set_attributes(attributes)


def current_trace_context() -> dict[str, Any]:
    """The id of the current request, and the W3C trace context when there is a trace."""
    context: dict[str, Any] = {}
    if _tracers:
        from opentelemetry.propagate import inject

        inject(context)
    if request_id := current_fields().get(REQUEST_ID):
        context[REQUEST_ID] = request_id
    return context


@contextmanager
def traced_job(name: str, context: Mapping[str, str] | None, **fields: Any) -> Iterator[None]:
    """Run a job: its logs carry these fields and the request's id, its spans continue the trace."""
    context = context or {}
    if REQUEST_ID in context:
        fields = {REQUEST_ID: context[REQUEST_ID], **fields}
    with log_context(**fields):
        if not _tracers:
            yield
            return
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind

        with _tracers[0].start_as_current_span(
            name, context=extract(context), kind=SpanKind.CONSUMER, attributes=fields
        ):
            yield


def _drop_query(request: Span, scope: object) -> None:
    """Of a request, by the old and the new names of OpenTelemetry's attributes."""
    given = getattr(request, "attributes", None) or {}
    told = {"http.url": str(given.get("http.url")).partition("?")[0], "url.query": ""}
    request.set_attributes({name: told[name] for name in told.keys() & given.keys()})


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
