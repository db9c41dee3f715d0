"""Which request a job goes back to: part of the job's arguments, shown by the worker's logs.

A job that another job puts into the queue has that one's cause. Jobs of before there were causes,
and those that replace a lost one, have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from portal.telemetry import spans
from portal.telemetry.logs import current_fields, log_context

if TYPE_CHECKING:
    from procrastinate.types import JSONDict

REQUEST_ID = "request_id"


def current_cause() -> JSONDict:
    """The id of the request at hand, and where its trace goes on when there is one."""
    cause: JSONDict = {**spans.carrier()}
    if request_id := current_fields().get(REQUEST_ID):
        cause[REQUEST_ID] = request_id
    return cause


@contextmanager
def caused_work(name: str, cause: Mapping[str, str] | None, **fields: Any) -> Iterator[None]:
    """Work on a job: its logs carry these fields and the request's id, its spans the trace."""
    cause = cause or {}
    if REQUEST_ID in cause:
        fields = {REQUEST_ID: cause[REQUEST_ID], **fields}
    with log_context(**fields), spans.continued(name, cause, **fields):
        yield
