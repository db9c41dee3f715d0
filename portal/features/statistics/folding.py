"""The fold: moves reports from the inbox into viewers' days, and their changes into the sums.

One transaction removes reports from the inbox, updates the viewers' days, and adds the same changes
to the sums, so a killed process neither loses a report nor counts it twice. What named viewers
watched is added in the same transaction (`named_viewers`). One process folds at a time.

A viewer is a session of a visitor's player with a video on one day. Anyone can make up sessions, so
an hour brings at most `MAX_OF_VIDEO` new viewers of a video from one network, and `MAX_OF_ALL` of
all videos.
"""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, timedelta
from operator import itemgetter
from typing import NamedTuple
from uuid import UUID

from portal.config import Config
from portal.database.connection import Row, execute, fetch_rows, rows_json, transaction
from portal.features.statistics import named_viewers, periods
from portal.features.statistics.cmcd import Device, Place, record_of
from portal.features.statistics.figures import COUNTS, LISTS, OTHER, Changes, Counts, SumsKey
from portal.features.statistics.films import Film, fetch_films
from portal.features.statistics.viewers import SessionState, ViewerDay, add_records

logger = logging.getLogger(__name__)

FOLD_EVERY_S = 5.0
# Reports in one transaction, a fraction of a second of processor time. Their records are limited,
# too, because the event loop stands still while rows are received.
CHUNK = 250
CHUNK_BYTES = 1_000_000
KEEP_VIEWERS_DAYS = 30
# Sites of one video and day, besides that of `OTHER` sites.
MAX_SITES = 20
# New viewers that an hour may bring from one network.
MAX_OF_VIDEO = 100
MAX_OF_ALL = 800
# Limits of a wider network of IPv6, as a multiple of the next narrower one's.
WIDER_NETWORK_FACTOR = 4
# Any number that no other user of the database picks.
LOCK_ID = 7_306_815_041

# A fold waits with locks on other videos, so it gives up and is repeated.
LIMIT_WAITS = "SET LOCAL lock_timeout = '500ms'"
LOCK = "SELECT pg_try_advisory_xact_lock(%s) AS is_held"
TAKE = """
DELETE FROM playback_inbox WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM (
    SELECT ctid, sum(octet_length(records)) OVER (ORDER BY received_at, ctid)
                 - octet_length(records) AS bytes_before
    FROM playback_inbox ORDER BY received_at, ctid LIMIT %s
  ) AS oldest WHERE bytes_before < %s
)) RETURNING *, visitor || session AS viewer
"""
VIEWERS = """
SELECT viewer_days.* FROM viewer_days
JOIN jsonb_to_recordset(%s) AS key (day date, video_id uuid, viewer bytea)
USING (day, video_id, viewer)
"""
SITES = """
SELECT day, video_id, array_agg(value) AS sites FROM video_days
JOIN jsonb_to_recordset(%s) AS key (day date, video_id uuid) USING (day, video_id)
WHERE kind = 'site' GROUP BY day, video_id
"""
NETWORKS = """
SELECT hour, network, viewers FROM network_hours
JOIN jsonb_to_recordset(%s) AS key (hour timestamptz, network bytea) USING (hour, network)
"""
WRITE_NETWORKS = """
INSERT INTO network_hours SELECT * FROM jsonb_populate_recordset(NULL::network_hours, %s)
ON CONFLICT (hour, network) DO UPDATE SET viewers = excluded.viewers
"""
WRITE_VIEWERS = """
INSERT INTO viewer_days
SELECT * FROM jsonb_populate_recordset(NULL::viewer_days, %s)
ON CONFLICT (day, video_id, viewer) DO UPDATE SET
  first_at = excluded.first_at, last_at = excluded.last_at, watch_ms = excluded.watch_ms,
  plays = excluded.plays, seen = excluded.seen, startup_ms = excluded.startup_ms,
  stalls = excluded.stalls, failures = excluded.failures, heights = excluded.heights,
  session = excluded.session
"""
# A list without changes is NULL.
ADD_LIST = """CASE WHEN excluded.{name} IS NULL THEN video_days.{name} ELSE (
  SELECT array_agg(coalesce(old, 0) + added ORDER BY number)
  FROM unnest(video_days.{name}, excluded.{name}) WITH ORDINALITY AS pair (old, added, number)
) END"""
WRITE_CHANGES = f"""
INSERT INTO video_days
SELECT * FROM jsonb_populate_recordset(NULL::video_days, %s)
ON CONFLICT (video_id, kind, day, value) DO UPDATE SET
  {", ".join(f"{name} = video_days.{name} + excluded.{name}" for name in COUNTS)},
  {", ".join(f"{name} = {ADD_LIST.format(name=name)}" for name in LISTS)}
"""  # noqa: S608 - put together from constants
DELETE_VIEWERS = "DELETE FROM viewer_days WHERE day < %s"
DELETE_NETWORKS = "DELETE FROM network_hours WHERE hour < now() - interval '1 day'"


class ViewerKey(NamedTuple):
    """Key of a viewer's day. A viewer is a visitor and a session."""

    day: date
    video_id: UUID
    viewer: bytes


class NetworkKey(NamedTuple):
    """Key of the viewers that an hour brought from a network, or to one video from there."""

    hour: datetime
    network: bytes


@dataclass(frozen=True, slots=True)
class Folded:
    """Result of a fold, as rows in JSON: changed viewers and networks, and changes of sums.

    `named_viewers` are changes of what viewers have watched whose names are known.
    """

    viewers: str
    networks: str
    changes: str
    named_viewers: str


async def fold_forever(ending: asyncio.Event) -> None:
    """Fold the inbox every few seconds, in every worker until it ends."""
    while not ending.is_set():
        try:
            while await fold_inbox() and not ending.is_set():
                pass
        except Exception:  # statistics must not end a worker
            fields = {"action": "fold_failed"}
            logger.warning("Reports were not folded", exc_info=True, extra=fields)
        await asyncio.sleep(FOLD_EVERY_S)


async def fold_inbox() -> int:
    """Move some reports from the inbox into the sums, in one transaction.

    Return the number of reports; 0 if the inbox is empty or another process folds it. Raises
    `LockNotAvailable` if another transaction holds one of the videos for long.
    """
    async with transaction():
        await execute(LIMIT_WAITS)
        [lock] = await fetch_rows(LOCK, LOCK_ID)
        if not lock["is_held"]:
            return 0
        await periods.begin_day()
        reports = await fetch_rows(TAKE, CHUNK, CHUNK_BYTES)
        if not reports:
            return 0
        keys = {_viewer_key(report) for report in reports}
        days = {(key.day, key.video_id) for key in keys}
        limits = {key for report in reports for key in _network_limits(report)}
        films = await fetch_films({key.video_id for key in keys}, is_locked=True)
        viewers = await fetch_rows(VIEWERS, rows_json(key._asdict() for key in keys))
        sites = await fetch_rows(SITES, rows_json({"day": day, "video_id": id} for day, id in days))
        networks = await fetch_rows(NETWORKS, rows_json(key._asdict() for key in limits))
        # A thread, because reports may have many records.
        folded = await asyncio.to_thread(
            fold, reports, films=films, viewers=viewers, sites=sites, networks=networks
        )
        await execute(WRITE_VIEWERS, folded.viewers)
        await execute(WRITE_NETWORKS, folded.networks)
        await execute(WRITE_CHANGES, folded.changes)
        await periods.add_changes(folded.changes)
        await execute(named_viewers.ADD_CHANGES, folded.named_viewers)
    return len(reports)


def fold(
    reports: Iterable[Row],
    *,
    films: Mapping[UUID, Film],
    viewers: Iterable[Row],
    sites: Iterable[Row],
    networks: Iterable[Row],
) -> Folded:
    """Add reports to the stored rows of viewers, and return what changes.

    `films` has no key for deleted videos, whose reports are dropped. `sites` and `networks` are the
    rows that limit the number of sites and of new viewers.
    """
    stored_viewers = {_viewer_key(row): _viewer(row) for row in viewers}
    counted_sites = {(row["day"], row["video_id"]): {*row["sites"]} for row in sites}
    counts = Counter(
        {NetworkKey(row["hour"], bytes(row["network"])): row["viewers"] for row in networks}
    )
    folded: dict[ViewerKey, ViewerDay] = {}
    changes = Changes()
    named = []
    for report in sorted(reports, key=itemgetter("received_at")):
        key = _viewer_key(report)
        if key.video_id not in films:
            continue
        records = [record_of(values) for values in json.loads(report["records"])]
        viewer = folded.get(key) or stored_viewers.get(key)
        if viewer is None:
            limits = _network_limits(report)
            if any(counts[network] >= limit for network, limit in limits.items()):
                changes.ignore(key.video_id, key.day, len(records))
                continue
            counts.update(limits.keys())
            names = counted_sites.setdefault((key.day, key.video_id), set())
            viewer = _new_viewer(report, site=_counted_site(report["site"], names))
            names.add(viewer.site)
        folded[key], ignored_count = add_records(
            viewer,
            records,
            received_at=report["received_at"],
            film=films[key.video_id],
        )
        changes.ignore(key.video_id, key.day, ignored_count)
        if report["named_viewer"] and folded[key].watch_ms:
            named.append(named_viewers.change_row(report, viewer, folded[key]))
    for key, viewer in folded.items():
        if before := stored_viewers.get(key):
            changes.add(key.video_id, key.day, before, sign=-1)
        changes.add(key.video_id, key.day, viewer, sign=1)
    return Folded(
        viewers=rows_json(_viewer_row(*item) for item in folded.items()),
        networks=rows_json({**key._asdict(), "viewers": count} for key, count in counts.items()),
        changes=rows_json(_sums_row(*item) for item in changes.sums.items()),
        named_viewers=rows_json(named),
    )


def _network_limits(report: Row) -> dict[NetworkKey, int]:
    """Return how many new viewers the networks of a report may bring in its hour."""
    hour = report["received_at"].replace(minute=0, second=0, microsecond=0)
    limits = {}
    factor = 1
    for network in map(bytes, report["networks"]):
        limits[NetworkKey(hour, network)] = MAX_OF_ALL * factor
        limits[NetworkKey(hour, network + report["video_id"].bytes)] = MAX_OF_VIDEO * factor
        factor *= WIDER_NETWORK_FACTOR
    return limits


def _counted_site(site: str, counted_sites: Collection[str]) -> str:
    """Return the name under which a site is counted: its own, or that of all further sites."""
    is_counted = not site or site in counted_sites or len(counted_sites) < MAX_SITES
    return site if is_counted else OTHER


async def delete_names(config: Config) -> None:
    """Delete viewers' names: all while `VIEWER_NAMES` is off, else after `KEEP_VIEWERS_DAYS`."""
    await execute(named_viewers.DELETE, KEEP_VIEWERS_DAYS if config.viewer_names else 0)


async def delete_old_viewers() -> None:
    """Delete viewers' days that are older than `KEEP_VIEWERS_DAYS`, and networks of past days.

    The sums stay.
    """
    await execute(DELETE_NETWORKS)
    await execute(DELETE_VIEWERS, datetime.now(UTC).date() - timedelta(days=KEEP_VIEWERS_DAYS))


def _viewer_key(row: Row) -> ViewerKey:
    return ViewerKey(row["day"], row["video_id"], bytes(row["viewer"]))


def _new_viewer(report: Row, *, site: str) -> ViewerDay:
    return ViewerDay(
        first_at=report["received_at"],
        last_at=report["received_at"],
        device=Device(report["device"]),
        place=Place(report["place"]),
        site=site,
    )


def _viewer(row: Row) -> ViewerDay:
    record, entered_ms = row["session"]
    return ViewerDay(
        first_at=row["first_at"],
        last_at=row["last_at"],
        device=Device(row["device"]),
        place=Place(row["place"]),
        site=row["site"],
        watch_ms=row["watch_ms"],
        plays=bytes(row["plays"]),
        seen=row["seen"],
        startup_ms=row["startup_ms"],
        stalls=row["stalls"],
        failures=row["failures"],
        heights={int(height): watched_ms for height, watched_ms in row["heights"].items()},
        session=SessionState(record_of(record), entered_ms),
    )


def _viewer_row(key: ViewerKey, viewer: ViewerDay) -> Row:
    columns = {field.name: getattr(viewer, field.name) for field in fields(viewer)}
    return {**key._asdict(), **columns}


def _sums_row(key: SumsKey, sums: Counts) -> Row:
    counts = {name: getattr(sums, name) for name in COUNTS}
    lists = {name: getattr(sums, name, ()) for name in LISTS}
    changed = {name: values if any(values) else None for name, values in lists.items()}
    return {**key._asdict(), **counts, **changed}
