"""Health checks and metrics: `/healthz`, `/readyz`, and `/metrics` for Prometheus.

Figures about the queue, videos, failures, transcodes and leases belong to no process, and workers
serve no requests, so these figures are read from the database, at most every few seconds. A metric
also reports a database that does not answer in time.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hmac import compare_digest
from itertools import accumulate, product
from pathlib import Path

from prometheus_client import core
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector
from quart import Blueprint, Response, jsonify, request

from portal.database.connection import Row, fetch_rows
from portal.database.models import Outcome, VideoStatus
from portal.errors import NotFound, StorageDenied
from portal.processing.attempts import DURATION_BOUNDS_S
from portal.queue.jobs import QUEUES
from portal.statistics.figures import STARTUP_BOUNDS_S
from portal.telemetry.metrics import process_registry
from portal.web.auth import Policy, policy
from portal.web.composition import web_context

logger = logging.getLogger(__name__)

blueprint = Blueprint("monitoring", __name__)

Rows = Sequence[Row]

CHECK_TIMEOUT_S = 3
NEEDED = ("database", "storage")
# Last states that this process saw, so that only changes are logged.
_states = dict.fromkeys(NEEDED, "ok")
FIGURES_MAX_AGE_S = 5.0
FIGURES_TIMEOUT_S = 3.0
# Every so many bounds of start-up times are exported.
STARTUP_STEP = 6


@blueprint.get("/healthz")
@policy(Policy.ANYONE)
async def healthz() -> Response:
    """Return 200 as long as the process works; otherwise restart it."""
    return _uncached(status="ok")


@blueprint.get("/readyz")
@policy(Policy.ANYONE)
async def readyz() -> tuple[Response, int]:
    """Return 200 when database and storage are reachable, and 503 to have traffic sent elsewhere.

    Storage that refuses the portal's credentials is `denied`. Under `portal up`, a process that
    keeps failing is listed as `restarting`. Simultaneous requests share one check, so there is no
    rate limit.
    """
    parts = await web_context().readiness.get("readyz", _check)
    is_ready = all(parts[part] == "ok" for part in NEEDED)
    return _uncached(**parts), 200 if is_ready else 503


async def _check() -> dict[str, str]:
    context = web_context()
    database, storage, failing = await asyncio.gather(
        _state("database", fetch_rows("SELECT 1")),
        _state("storage", context.storage.check_bucket()),
        asyncio.to_thread(_failing_processes, context.config.failing_processes_file),
    )
    parts = dict.fromkeys(failing, "restarting")
    for part, state in zip(NEEDED, (database, storage), strict=True):
        if state != "unreachable" or part not in parts:
            parts[part] = state
    return parts


def _failing_processes(file: Path | None) -> list[str]:
    """Return the process names in the file of `portal up`, one per line."""
    try:
        return file.read_text().split() if file else []
    except OSError:
        return []


async def _state(part: str, check: Awaitable[object]) -> str:
    state = "ok"
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            # psycopg waits for the server to confirm that a query is cancelled.
            await asyncio.shield(check)
    except Exception as exc:  # noqa: BLE001  # on any error the part does not work
        state = "denied" if isinstance(exc, StorageDenied) else "unreachable"
        if _states[part] != state:
            logger.warning("The %s is %s: %r", part, state, exc, extra={"action": "readyz"})
    _states[part] = state
    return state


def _uncached(**members: str) -> Response:
    response = jsonify(**members)
    response.headers["Cache-Control"] = "no-store"
    return response


@blueprint.get("/metrics")
@policy(Policy.ANYONE)
async def metrics() -> Response:
    """Return the metrics of the web processes, and of the service if the database answers."""
    web = web_context()
    if not web.config.metrics:
        raise NotFound
    authorization = request.headers.get("Authorization", "")
    expected = f"Bearer {web.config.metrics_token}"
    if web.config.metrics_token and not compare_digest(authorization.encode(), expected.encode()):
        headers = {"WWW-Authenticate": 'Bearer realm="metrics"'}
        return Response("Send METRICS_TOKEN as a bearer token.\n", 401, headers)
    figures = await _figures()
    # The registry of several web processes reads files, hence the threads.
    text = await asyncio.to_thread(generate_latest, process_registry())
    text += await asyncio.to_thread(generate_latest, FiguresCollector(figures))
    response = Response(text, content_type=CONTENT_TYPE_PLAIN_0_0_4)
    response.headers["Cache-Control"] = "no-store"
    return response


async def _figures() -> Mapping[str, Rows] | None:
    """Return the figures of the service; None while the database does not answer.

    The read continues in the background after a timeout: psycopg waits for the server to confirm
    that a query is cancelled, which a frozen server never does.
    """
    try:
        async with asyncio.timeout(FIGURES_TIMEOUT_S):
            return await web_context().figures.get(max_age_s=FIGURES_MAX_AGE_S)
    except Exception as exc:  # noqa: BLE001  # on any error there are no figures
        logger.warning(
            "Metrics without the service's figures: %s",
            type(exc).__name__,
            extra={"action": "metrics"},
        )
        return None


@dataclass(frozen=True, slots=True)
class Gauge:
    """Gauge metric with a value for each row of a query, and 0 for the other label values."""

    name: str
    words: str
    rows: str
    value: str
    labels: tuple[str, ...]
    label_values: Sequence[tuple[str, ...]] = ()

    def metric(self, rows: Rows) -> core.Metric:
        """Return the metric of these rows."""
        family = core.GaugeMetricFamily(self.name, self.words, labels=self.labels)
        values = {tuple(row[label] for label in self.labels): row[self.value] for row in rows}
        for key in values | dict.fromkeys(self.label_values):
            family.add_metric(key, values.get(key) or 0.0)
        return family


# Name, words and column of counters of playback.
PLAYBACK_COUNTERS = (
    ("views", "Views.", "views"),
    ("stalls", "Stalls of playback.", "stalls"),
    ("failures", "Failures of playback.", "failures"),
    ("records_ignored", "Records that repeat earlier ones or end impossible playback.", "ignored"),
)
JOBS = tuple(product(QUEUES, ("waiting", "scheduled", "running")))
STATUSES = tuple((status.value,) for status in VideoStatus)
# Gauges of the service. All label values are exported, so that alerting rules can rely on them.
GAUGES = (
    Gauge("portal_jobs", "Unfinished jobs.", "jobs", "jobs", ("queue", "state"), JOBS),
    Gauge(
        "portal_jobs_oldest_seconds",
        "Time since the oldest job was enqueued.",
        "jobs",
        "oldest_s",
        ("queue", "state"),
        JOBS,
    ),
    Gauge("portal_videos", "Videos.", "videos", "videos", ("status",), STATUSES),
    Gauge("portal_videos_failed", "Failed videos by reason.", "failures", "videos", ("code",)),
    Gauge(
        "portal_worker_leases",
        "Attempts in progress, by the state of their lease.",
        "leases",
        "leases",
        ("state",),
        (("live",), ("expired",)),
    ),
)


class FiguresCollector(Collector):
    """Collector of the service's figures, or of their absence."""

    def __init__(self, figures: Mapping[str, Rows] | None) -> None:
        self._figures = figures

    def collect(self) -> Iterator[core.Metric]:
        """Yield the metrics of the figures."""
        up = core.GaugeMetricFamily("portal_up", "Whether the part answers.", labels=("part",))
        up.add_metric(["database"], float(self._figures is not None))
        yield up
        if self._figures is None:
            return
        for gauge in GAUGES:
            yield gauge.metric(self._figures[gauge.rows])
        yield from _attempts(self._figures["totals"])
        yield from _playback(self._figures["playback"][0])


def _attempts(rows: Rows) -> Iterator[core.Metric]:
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        counts[row["outcome"], row["error_code"]] += row["attempts"]
    ended = core.CounterMetricFamily(
        "portal_attempts", "Attempts to transcode that ended.", labels=("outcome", "code")
    )
    for label_values, attempts in sorted(counts.items()):
        ended.add_metric(label_values, attempts)
    yield ended
    yield from _transcodes([row for row in rows if row["outcome"] == Outcome.PUBLISHED])


def _buckets(bounds: Iterable[str], counts: Sequence[int]) -> list[tuple[str, float]]:
    """Return the buckets of a histogram, which count all values up to their bound.

    `counts` are those of the ranges between the bounds, the last one of values beyond them.
    """
    return list(zip([*bounds, "+Inf"], map(float, accumulate(counts)), strict=True))


def _transcodes(rows: Rows) -> Iterator[core.Metric]:
    """Yield the durations of published attempts and of their media, whose ratio is the speed."""
    durations = core.HistogramMetricFamily(
        "portal_transcode_duration_seconds", "Time that transcodes took."
    )
    counts = [0] * (len(DURATION_BOUNDS_S) + 1)
    for row in rows:
        counts[min(row["duration_range"], len(DURATION_BOUNDS_S))] += row["attempts"]
    buckets = _buckets(map(str, DURATION_BOUNDS_S), counts)
    durations.add_metric([], buckets, sum_value=sum(row["duration_s"] for row in rows))
    yield durations
    media = core.CounterMetricFamily(
        "portal_transcode_media_seconds", "Duration of the transcoded media."
    )
    media.add_metric([], sum(row["media_s"] for row in rows))
    yield media


def _playback(sums: Row) -> Iterator[core.Metric]:
    """Yield what viewers watched, and how well it played."""
    for name, words, column in PLAYBACK_COUNTERS:
        counter = core.CounterMetricFamily(f"portal_playback_{name}", words)
        counter.add_metric([], sums[column])
        yield counter
    watched = core.CounterMetricFamily("portal_playback_watch_seconds", "Time spent watching.")
    watched.add_metric([], sums["watch_ms"] / 1000)
    yield watched
    bounds = [f"{bound_s:.3g}" for bound_s in STARTUP_BOUNDS_S]
    buckets = _buckets(bounds, sums["startups"] or [0] * (len(bounds) + 1))
    histogram = core.HistogramMetricFamily(
        "portal_playback_startup_seconds", "Time from the press of play to the first frame."
    )
    exported = [*buckets[:-1:STARTUP_STEP], buckets[-1]]
    histogram.add_metric([], exported, sum_value=None)
    yield histogram
