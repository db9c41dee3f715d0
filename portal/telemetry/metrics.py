"""Counters of a web process for Prometheus: requests and uploads.

Labels have few values: the rule of a route, never a path. Several web processes write their figures
to files in the folder that `FOLDER_VARIABLE` names, and each of them returns the figures of all.
"""

import os
from collections.abc import Iterable, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.multiprocess import MultiProcessCollector

# Environment variable that prometheus_client reads when it is imported.
FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"})
# Label of requests that match no route.
UNMATCHED = "unmatched"
# Label of requests whose client left before the response.
UNANSWERED = "none"
BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

_registry = CollectorRegistry()
_requests = Counter(
    "portal_http_requests", "Requests answered.", ("method", "route", "status"), registry=_registry
)
_durations = Histogram(
    "portal_http_request_duration_seconds",
    "Time from a request's head to the end of its answer.",
    ("method", "route"),
    buckets=BOUNDS_S,
    registry=_registry,
)
_in_flight = Gauge(
    "portal_http_requests_in_flight",
    "Requests being answered.",
    multiprocess_mode="livesum",
    registry=_registry,
)
_uploads = Counter(
    "portal_uploads",
    "Uploads by what happened to them: an address was issued, one in parts was started or "
    "completed, one was discarded, a video was made of one.",
    ("event",),
    registry=_registry,
)
_uploaded_bytes = Counter(
    "portal_uploaded_bytes", "Bytes of the files that videos were made of.", registry=_registry
)
_reports = Counter(
    "portal_playback_reports",
    "Sessions in the reports of players, by what happened to them.",
    ("outcome",),
    registry=_registry,
)

UPLOAD_ISSUED = _uploads.labels("issued")
UPLOAD_STARTED = _uploads.labels("started")
UPLOAD_COMPLETED = _uploads.labels("completed")
UPLOAD_DISCARDED = _uploads.labels("discarded")
_upload_published = _uploads.labels("published")


def begin_request() -> None:
    """Count a request in flight."""
    _in_flight.inc()


def end_request(method: str, route: str | None, status: int | None, duration_s: float) -> None:
    """Count and time an answered request, or one whose client has left (no status)."""
    _in_flight.dec()
    labels = (method if method in METHODS else "other", route or UNMATCHED)
    _requests.labels(*labels, str(status or UNANSWERED)).inc()
    _durations.labels(*labels).observe(duration_s)


def count_published(size_bytes: int) -> None:
    """Count a video that was published from an uploaded file."""
    _upload_published.inc()
    _uploaded_bytes.inc(size_bytes)


def count_reports(outcome: str, sessions: int) -> None:
    """Count sessions in reports of players, or lines that are unreadable."""
    if sessions:
        _reports.labels(outcome).inc(sessions)


def process_registry() -> CollectorRegistry:
    """Return the figures of this process, or of all web processes if there are several."""
    if FOLDER_VARIABLE not in os.environ:
        return _registry
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry


if FOLDER_VARIABLE not in os.environ:
    # Memory, CPU time and open files make sense for a single process only.
    ProcessCollector(registry=_registry)


def buckets(bounds: Iterable[str], counts: Sequence[int]) -> list[tuple[str, float]]:
    """Return the buckets of a histogram, which count all values up to their bound.

    `counts` are those of the ranges between the bounds, the last one of values beyond them.
    """
    return list(zip([*bounds, "+Inf"], map(float, accumulate(counts)), strict=True))
