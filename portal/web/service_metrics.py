"""Figures of the service as a whole, for Prometheus: read from the database when asked for.

Queue, videos, failures, transcodes and leases belong to no process and outlive all of them, and
workers answer no requests. The queries are few and bounded, their answers kept for a few seconds
however often someone asks, and a database that does not answer in time is itself a figure.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from tortoise.connection import get_connection

from portal.database.models import Outcome, VideoStatus
from portal.database.totals import DURATION_BOUNDS_S
from portal.queue.enqueue import SIDE_QUEUE, TRANSCODE_QUEUE

logger = logging.getLogger(__name__)

KEPT_S = 5.0
TIMEOUT_S = 3.0
QUEUES = (TRANSCODE_QUEUE, SIDE_QUEUE)
JOB_STATES = ("waiting", "scheduled", "running")
Rows = Sequence[Mapping[str, Any]]

# Jobs that are done stay in the table; those that are not have an index of their own. A job's age
# counts from when it was asked for.
JOBS = """
WITH unfinished AS (
  SELECT id, queue_name AS queue,
         CASE WHEN status = 'doing' THEN 'running'
              WHEN scheduled_at > now() THEN 'scheduled' ELSE 'waiting' END AS state
  FROM procrastinate_jobs WHERE status IN ('todo', 'doing') AND queue_name = ANY (%s)
), counted AS (
  SELECT queue, state, count(*) AS jobs, min(id) AS oldest_id FROM unfinished GROUP BY queue, state
)
SELECT queue, state, jobs,
       (SELECT extract(epoch FROM now() - min(at))::float8 FROM procrastinate_events
        WHERE job_id = oldest_id AND type = 'deferred') AS oldest_s
FROM counted
"""
VIDEOS = "SELECT status, count(*) AS videos FROM videos GROUP BY status"
FAILURES = """
SELECT coalesce(failure_code, '') AS code, count(*) AS videos
FROM videos WHERE status = 'failed' GROUP BY 1
"""
LEASES = """
SELECT CASE WHEN lease_expires_at > now() THEN 'live' ELSE 'expired' END AS state,
       count(*) AS leases
FROM attempts WHERE outcome IS NULL GROUP BY 1
"""
TOTALS = """
SELECT outcome, error_code, duration_range, attempts, duration_s, media_s FROM attempt_totals
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Rows of the queries above, as of one moment."""

    jobs: Rows
    videos: Rows
    failures: Rows
    leases: Rows
    totals: Rows


class ServiceFigures:
    """Reads the figures: at most every few seconds, and never twice at once."""

    def __init__(self) -> None:
        self._figures: Figures | None = None
        self._good_until = 0.0
        self._reading: asyncio.Task[None] | None = None

    async def read(self) -> Figures | None:
        """The figures, at most `KEPT_S` old; None while the database does not answer."""
        if self._reading is None and monotonic() >= self._good_until:
            # A task, for it can't always be ended in time: psycopg waits for the server's word
            # that a query is cancelled, and a frozen one says nothing.
            self._reading = asyncio.create_task(self._refresh())
        if self._reading is not None:
            _, unanswered = await asyncio.wait({self._reading}, timeout=TIMEOUT_S)
            if unanswered:
                logger.warning("No figures in time", extra={"action": "metrics"})
                return None
        return self._figures

    async def _refresh(self) -> None:
        try:
            self._figures = await _read()
        except Exception as exc:  # noqa: BLE001  # whatever it is, there are no figures
            self._figures = None
            logger.warning("No figures: %s", type(exc).__name__, extra={"action": "metrics"})
        finally:
            self._good_until = monotonic() + KEPT_S
            self._reading = None


class FiguresCollector(Collector):
    """Turns figures into metrics."""

    def __init__(self, figures: Figures | None) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("portal_up", "Whether the part answers.", labels=["part"])
        up.add_metric(["database"], float(self._figures is not None))
        yield up
        if self._figures is not None:
            yield from _jobs(self._figures.jobs)
            yield from _videos(self._figures)
            yield _leases(self._figures.leases)
            yield from _attempts(self._figures.totals)


def service_registry(figures: Figures | None) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(FiguresCollector(figures))
    return registry


async def _read() -> Figures:
    database = get_connection("default")
    return Figures(
        jobs=await database.execute_query_dict(JOBS, [list(QUEUES)]),
        videos=await database.execute_query_dict(VIDEOS),
        failures=await database.execute_query_dict(FAILURES),
        leases=await database.execute_query_dict(LEASES),
        totals=await database.execute_query_dict(TOTALS),
    )


def _jobs(rows: Rows) -> Iterator[Metric]:
    """Every queue and state has a value, so that a rule may rely on it."""
    count = GaugeMetricFamily("portal_jobs", "Unfinished jobs.", labels=["queue", "state"])
    oldest = GaugeMetricFamily(
        "portal_jobs_oldest_seconds",
        "Time since the oldest unfinished job was asked for.",
        labels=["queue", "state"],
    )
    found = {(row["queue"], row["state"]): row for row in rows}
    for queue in QUEUES:
        for state in JOB_STATES:
            row = found.get((queue, state), {})
            count.add_metric([queue, state], row.get("jobs", 0))
            oldest.add_metric([queue, state], row.get("oldest_s") or 0.0)
    yield count
    yield oldest


def _videos(figures: Figures) -> Iterator[Metric]:
    videos = GaugeMetricFamily("portal_videos", "Videos.", labels=["status"])
    found = {row["status"]: row["videos"] for row in figures.videos}
    for status in VideoStatus:
        videos.add_metric([status], found.get(status, 0))
    yield videos
    failed = GaugeMetricFamily("portal_videos_failed", "Failed videos by reason.", labels=["code"])
    for row in figures.failures:
        failed.add_metric([row["code"]], row["videos"])
    yield failed


def _leases(rows: Rows) -> Metric:
    leases = GaugeMetricFamily(
        "portal_worker_leases",
        "Attempts under way, by their lease.",
        labels=["state"],
    )
    found = {row["state"]: row["leases"] for row in rows}
    for state in ("live", "expired"):
        leases.add_metric([state], found.get(state, 0))
    return leases


def _attempts(rows: Rows) -> Iterator[Metric]:
    ended = CounterMetricFamily(
        "portal_attempts", "Attempts to transcode that ended.", labels=["outcome", "code"]
    )
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        key = (row["outcome"], row["error_code"])
        counts[key] = counts.get(key, 0) + row["attempts"]
    for (outcome, code), attempts in sorted(counts.items()):
        ended.add_metric([outcome, code], attempts)
    yield ended
    yield from _transcodes([row for row in rows if row["outcome"] == Outcome.PUBLISHED])


def _transcodes(rows: Rows) -> Iterator[Metric]:
    """Of attempts that made what they were begun for; media over time is their speed."""
    durations = HistogramMetricFamily(
        "portal_transcode_duration_seconds", "Time that transcodes took."
    )
    counts = [0] * (len(DURATION_BOUNDS_S) + 1)
    for row in rows:
        counts[min(row["duration_range"], len(DURATION_BOUNDS_S))] += row["attempts"]
    bounds = [*map(str, DURATION_BOUNDS_S), "+Inf"]
    buckets = [(bound, float(sum(counts[: number + 1]))) for number, bound in enumerate(bounds)]
    durations.add_metric([], buckets, sum_value=sum(row["duration_s"] for row in rows))
    yield durations
    media = CounterMetricFamily("portal_transcode_media_seconds", "Length of what was transcoded.")
    media.add_metric([], sum(row["media_s"] for row in rows))
    yield media
