"""Spans of a trace, for code that must not care whether anyone collects them.

Without `collect`, which `tracing.py` calls when the process is traced, everything here does
nothing but hand the request's id on. The interface behind is OpenTelemetry's.

The trace context of a job is an argument of the job that names the request behind it. A job that
another job puts into the queue has that one's context. Jobs of old releases, and those that replace
a lost one, have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from portal.telemetry.logs import current_fields, log_context

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

REQUEST_ID = "request_id"
Value = str | int | float | bool

_tracers: list[Tracer] = []


def collect(tracer: Tracer) -> None:
    """Make all spans of this process with `tracer` from now on."""
    _tracers[:] = [tracer]


def span(name: str, **attributes: Value) -> AbstractContextManager[object]:
    """A span around what happens inside; a child of the current one."""
    if not _tracers:
        return nullcontext()
    return _tracers[0].start_as_current_span(name, attributes=attributes)


def describe(name: str, **attributes: Value) -> None:
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
