"""Figures of the service as a whole for Prometheus, read from the database when asked for.

Queue, videos, failures, transcodes and leases belong to no process and outlive all of them, and
workers answer no requests. What was read is kept for a few seconds, however often someone asks. A
database that does not answer in time is itself a figure.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from portal.concurrency import CachedValue
from portal.database.states import Outcome, VideoStatus
from portal.processing.attempts import DURATION_BOUNDS_S
from portal.queue.enqueue import PREPARE_QUEUE, SIDE_QUEUE, TRANSCODE_QUEUE
from portal.videos.metrics_rows import Figures, Rows, read_figures

logger = logging.getLogger(__name__)

KEPT_S = 5.0
TIMEOUT_S = 3.0
QUEUES = (PREPARE_QUEUE, TRANSCODE_QUEUE, SIDE_QUEUE)
JOB_STATES = ("waiting", "scheduled", "running")
OLDEST_WORDS = "Time since the oldest unfinished job was asked for."


class ServiceFigures:
    """Reads the figures: at most every few seconds, and never twice at once."""

    def __init__(self) -> None:
        self._figures = CachedValue(_read)

    async def read(self) -> Figures | None:
        """The figures, at most `KEPT_S` old; None while the database does not answer."""
        # It goes on by itself, for it can't always be ended in time: psycopg waits for the
        # server's word that a query is cancelled, and a frozen one says nothing.
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await self._figures.get(max_age_s=KEPT_S)
        except TimeoutError:
            logger.warning("No figures in time", extra={"action": "metrics"})
            return None


class FiguresCollector(Collector):
    """Turns figures into metrics."""

    def __init__(self, figures: Figures | None) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        parts = {("database",): float(self._figures is not None)}
        yield _gauge("portal_up", "Whether the part answers.", ("part",), parts)
        if self._figures is not None:
            yield from _jobs(self._figures.jobs)
            yield from _videos(self._figures)
            yield _leases(self._figures.leases)
            yield from _attempts(self._figures.totals)


async def _read() -> Figures | None:
    try:
        return await read_figures(QUEUES)
    except Exception as exc:  # noqa: BLE001  # whatever it is, there are no figures
        logger.warning("No figures: %s", type(exc).__name__, extra={"action": "metrics"})
        return None


def _jobs(rows: Rows) -> Iterator[Metric]:
    """Every queue and state has a value, so that a rule may rely on it."""
    found = {(row["queue"], row["state"]): row for row in rows}
    every = {it: found.get(it, {}) for it in product(QUEUES, JOB_STATES)}
    counts = {it: row.get("jobs") for it, row in every.items()}
    ages = {it: row.get("oldest_s") for it, row in every.items()}
    yield _gauge("portal_jobs", "Unfinished jobs.", ("queue", "state"), counts)
    yield _gauge("portal_jobs_oldest_seconds", OLDEST_WORDS, ("queue", "state"), ages)


def _videos(figures: Figures) -> Iterator[Metric]:
    found = {row["status"]: row["videos"] for row in figures.videos}
    values = {(status.value,): found.get(status) for status in VideoStatus}
    yield _gauge("portal_videos", "Videos.", ("status",), values)
    failed = {(row["code"],): row["videos"] for row in figures.failures}
    yield _gauge("portal_videos_failed", "Failed videos by reason.", ("code",), failed)


def _leases(rows: Rows) -> Metric:
    found = {row["state"]: row["leases"] for row in rows}
    values = {(state,): found.get(state) for state in ("live", "expired")}
    words = "Attempts under way, by their lease."
    return _gauge("portal_worker_leases", words, ("state",), values)


def _gauge(
    name: str, words: str, labels: Sequence[str], values: Mapping[Any, float | None]
) -> Metric:
    family = GaugeMetricFamily(name, words, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value or 0.0)
    return family


def _attempts(rows: Rows) -> Iterator[Metric]:
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        counts[row["outcome"], row["error_code"]] += row["attempts"]
    labels, words = ("outcome", "code"), "Attempts to transcode that ended."
    ended = CounterMetricFamily("portal_attempts", words, labels=labels)
    for label_values, attempts in sorted(counts.items()):
        ended.add_metric(label_values, attempts)
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
