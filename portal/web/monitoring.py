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
from functools import partial
from hmac import compare_digest
from itertools import chain, product
from pathlib import Path

from prometheus_client import core
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector
from quart import Blueprint, Response, jsonify, request

from portal.concurrency import CachedValue
from portal.database.connection import Row, fetch_rows
from portal.database.models import Outcome, VideoStatus
from portal.errors import NotFound, StorageDenied
from portal.features import FEATURES
from portal.films.attempts import DURATION_BOUNDS_S
from portal.http.auth import Policy, policy
from portal.http.composition import web_context
from portal.queue.jobs import QUEUES
from portal.telemetry.metrics import buckets, process_registry
from portal.videos.feature import Feature
from portal.videos.progress import read_figures

logger = logging.getLogger(__name__)

blueprint = Blueprint("monitoring", __name__)

Rows = Sequence[Row]

CHECK_TIMEOUT_S = 3
NEEDED = ("database", "storage")
# Last states that this process saw, so that only changes are logged.
_states = dict.fromkeys(NEEDED, "ok")
FIGURES_MAX_AGE_S = 5.0
FIGURES_TIMEOUT_S = 3.0


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


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of the service: `rows` by the names of `read_figures`, and metrics of features."""

    rows: Mapping[str, Rows]
    of_features: Sequence[core.Metric]


async def _read_figures(features: Iterable[Feature]) -> Figures:
    metrics = [await feature.read_metrics() for feature in features if feature.read_metrics]
    return Figures(await read_figures(), list(chain.from_iterable(metrics)))


def _cached_figures() -> CachedValue[Figures]:
    return CachedValue(partial(_read_figures, FEATURES))


async def _figures() -> Figures | None:
    """Return the figures of the service; None while the database does not answer.

    The read continues in the background after a timeout: psycopg waits for the server to confirm
    that a query is cancelled, which a frozen server never does.
    """
    try:
        async with asyncio.timeout(FIGURES_TIMEOUT_S):
            return await web_context().shared(_cached_figures).get(max_age_s=FIGURES_MAX_AGE_S)
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

    def __init__(self, figures: Figures | None) -> None:
        self._figures = figures

    def collect(self) -> Iterator[core.Metric]:
        """Yield the metrics of the figures."""
        up = core.GaugeMetricFamily("portal_up", "Whether the part answers.", labels=("part",))
        up.add_metric(["database"], float(self._figures is not None))
        yield up
        if self._figures is None:
            return
        rows = self._figures.rows
        for gauge in GAUGES:
            yield gauge.metric(rows[gauge.rows])
        yield from _attempts(rows["totals"])
        yield from self._figures.of_features


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


def _transcodes(rows: Rows) -> Iterator[core.Metric]:
    """Yield the durations of published attempts and of their media, whose ratio is the speed."""
    durations = core.HistogramMetricFamily(
        "portal_transcode_duration_seconds", "Time that transcodes took."
    )
    counts = [0] * (len(DURATION_BOUNDS_S) + 1)
    for row in rows:
        counts[min(row["duration_range"], len(DURATION_BOUNDS_S))] += row["attempts"]
    ranges = buckets(map(str, DURATION_BOUNDS_S), counts)
    durations.add_metric([], ranges, sum_value=sum(row["duration_s"] for row in rows))
    yield durations
    media = core.CounterMetricFamily(
        "portal_transcode_media_seconds", "Duration of the transcoded media."
    )
    media.add_metric([], sum(row["media_s"] for row in rows))
    yield media
