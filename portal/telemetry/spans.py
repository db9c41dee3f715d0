"""Spans of a trace, for code that must not care whether anyone collects them.

Without `collect`, which `tracing.py` calls when the process is traced, everything here does
nothing. The interface behind is OpenTelemetry's.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

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


def continued(
    name: str, carrier: Mapping[str, str], **attributes: Value
) -> AbstractContextManager[object]:
    """As `span`, but in the trace that another process wrote to `carrier`."""
    if not _tracers:
        return nullcontext()
    from opentelemetry.propagate import extract
    from opentelemetry.trace import SpanKind

    return _tracers[0].start_as_current_span(
        name, context=extract(carrier), kind=SpanKind.CONSUMER, attributes=attributes
    )


def carrier() -> dict[str, str]:
    """The current trace for `continued` (W3C Trace Context); empty without one."""
    fields: dict[str, str] = {}
    if _tracers:
        from opentelemetry.propagate import inject

        inject(fields)
    return fields


def describe(name: str, **attributes: Value) -> None:
    """Rename the current span, and add attributes that were not known when it began."""
    if _tracers:
        from opentelemetry.trace import get_current_span

        current = get_current_span()
        current.update_name(name)
        current.set_attributes(attributes)
