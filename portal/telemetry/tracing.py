"""Traces by OpenTelemetry, when its standard variables ask for them; `spans.py` is what code uses.

Requests, database statements and calls to storage are traced by the project's own libraries. They
come with the extra `otel` and are imported only when wanted, so that nothing is paid otherwise.
Limits: spans leave by OTLP over HTTP; queries of addresses, headers and the values in statements
are left out, since they may be secret.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from threading import Thread
from typing import TYPE_CHECKING, Any, cast

from portal.telemetry import spans

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import Sampler
    from yarl import URL

    from portal.web.server.request_context import AsgiApp

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL = "http/protobuf"
PACKAGES = ("exporter.otlp.proto.http", *(f"instrumentation.{it}" for it in ("asgi", "psycopg")))
# Asked for all the time, and of no interest.
UNTRACED = "/healthz$,/readyz$,/metrics$,/static/"
# A collector that is away must not hold up the end of a process.
FLUSH_TIMEOUT_S = 1.5

_providers: list[TracerProvider] = []


def is_wanted(environ: Mapping[str, str]) -> bool:
    """Whether the environment asks for traces, as OpenTelemetry's specification has it."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip()
    return exporter != "none" and bool(exporter or _first(environ, ENDPOINTS))


def faults(environ: Mapping[str, str]) -> list[str]:
    """What is wrong with the variables, or missing for them."""
    found: list[str] = []
    if not is_wanted(environ):
        return found
    if (exporter := environ.get("OTEL_TRACES_EXPORTER", "").strip()) not in ("", "otlp"):
        found.append(f"OTEL_TRACES_EXPORTER={exporter!r}: choose one of otlp, none.")
    if (protocol := _first(environ, PROTOCOLS)) not in ("", PROTOCOL):
        found.append(f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol!r}: only {PROTOCOL} is supported.")
    if not _is_installed():
        found.append(
            "OTEL_TRACES_EXPORTER or OTEL_EXPORTER_OTLP_ENDPOINT asks for traces: install what "
            "they need with `pip install 'portal[otel]'`, or set OTEL_TRACES_EXPORTER=none."
        )
    return found


def start(service: str) -> None:
    """Trace this process from now on, if that is wanted; connections must be made afterwards."""
    if not is_wanted(os.environ):
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


def traced(app: AsgiApp) -> AsgiApp:
    """The app, its requests traced if this process is."""
    if not _providers:
        return app
    from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware

    wrapped: Any = OpenTelemetryMiddleware(
        app,
        excluded_urls=UNTRACED,
        # The route is told later, by `spans.describe`.
        default_span_details=lambda scope: (scope.get("method", "HTTP"), {}),
        tracer_provider=_providers[0],
        exclude_spans=["receive", "send"],
    )
    return cast("AsgiApp", wrapped)


async def flush() -> None:
    """Send what was not sent yet, if the collector takes it soon."""
    for provider in _providers:
        # It keeps no time limit of its own; a daemon thread does not hold the exit up.
        sending = Thread(target=provider.force_flush, daemon=True)
        sending.start()
        await asyncio.to_thread(sending.join, FLUSH_TIMEOUT_S)


def _first(environ: Mapping[str, str], names: Sequence[str]) -> str:
    return next((environ[name].strip() for name in names if environ.get(name, "").strip()), "")


def _is_installed() -> bool:
    try:
        return all(find_spec(f"opentelemetry.{name}") for name in PACKAGES)
    except ModuleNotFoundError:
        return False


def _without_query(url: URL) -> str:
    return str(url.with_query(None).with_user(None))


def _rooted(sampler: Sampler) -> Sampler:
    """As `sampler`, but no trace begins with a statement or a call that nobody's request made.

    Workers look into the queue all the time.
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
