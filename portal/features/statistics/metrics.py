"""Metrics of playback for Prometheus: the sums of the library over all days."""

from prometheus_client import core

from portal.database.connection import Row, fetch_rows
from portal.features.statistics.figures import STARTUP_BOUNDS_S
from portal.features.statistics.reading import PLAYBACK
from portal.telemetry.metrics import buckets

# Every so many bounds of start-up times are exported.
STARTUP_STEP = 6
# Name, words and column of counters of playback.
PLAYBACK_COUNTERS = (
    ("views", "Views.", "views"),
    ("stalls", "Stalls of playback.", "stalls"),
    ("failures", "Failures of playback.", "failures"),
    ("records_ignored", "Records that repeat earlier ones or end impossible playback.", "ignored"),
)


async def read_metrics() -> list[core.Metric]:
    """Return what all viewers watched, and how well it played."""
    [sums] = await fetch_rows(PLAYBACK)
    return metrics_of(sums)


def metrics_of(sums: Row) -> list[core.Metric]:
    """Return the metrics of playback for the row that `PLAYBACK` reads.

    Its `startups` may be empty, which counts as none in each range.
    """
    metrics: list[core.Metric] = []
    for name, words, column in PLAYBACK_COUNTERS:
        counter = core.CounterMetricFamily(f"portal_playback_{name}", words)
        counter.add_metric([], sums[column])
        metrics.append(counter)
    watched = core.CounterMetricFamily("portal_playback_watch_seconds", "Time spent watching.")
    watched.add_metric([], sums["watch_ms"] / 1000)
    bounds = [f"{bound_s:.3g}" for bound_s in STARTUP_BOUNDS_S]
    ranges = buckets(bounds, sums["startups"] or [0] * (len(bounds) + 1))
    histogram = core.HistogramMetricFamily(
        "portal_playback_startup_seconds", "Time from the press of play to the first frame."
    )
    exported = [*ranges[:-1:STARTUP_STEP], ranges[-1]]
    histogram.add_metric([], exported, sum_value=None)
    return [*metrics, watched, histogram]
