"""The trace context of a job: an argument of the job that names the request behind it.

A job that another job puts into the queue has that one's context. Jobs of old releases, and those
that replace a lost one, have none.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from portal.telemetry import spans
from portal.telemetry.logs import current_fields, log_context

REQUEST_ID = "request_id"


def current_trace_context() -> dict[str, Any]:
    """The id of the current request, and the W3C trace context when there is a trace."""
    context: dict[str, Any] = {**spans.carrier()}
    if request_id := current_fields().get(REQUEST_ID):
        context[REQUEST_ID] = request_id
    return context


@contextmanager
def traced_job(name: str, context: Mapping[str, str] | None, **fields: Any) -> Iterator[None]:
    """Run a job: its logs carry these fields and the request's id, its spans continue the trace."""
    context = context or {}
    if REQUEST_ID in context:
        fields = {REQUEST_ID: context[REQUEST_ID], **fields}
    with log_context(**fields), spans.continued(name, context, **fields):
        yield
