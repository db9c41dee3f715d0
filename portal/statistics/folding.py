"""The fold: moves reports from the inbox into viewers' days, and their changes into the sums.

One transaction removes reports from the inbox, updates the viewers' days, and adds the same changes
to the sums, so a killed process neither loses a report nor counts it twice. One process folds at a
time.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, timedelta
from operator import itemgetter
from typing import NamedTuple
from uuid import UUID

from portal.database.connection import Row, execute, fetch_rows, rows_json, transaction
from portal.statistics import periods
from portal.statistics.cmcd import Device, Place, record_of
from portal.statistics.figures import COUNTS, LISTS, Changes, Counts, SumsKey
from portal.statistics.films import Film, fetch_films
from portal.statistics.viewers import SessionState, ViewerDay, add_records

logger = logging.getLogger(__name__)

FOLD_EVERY_S = 5.0
# Reports in one transaction: a fraction of a second of processor time.
CHUNK = 2_000
KEEP_VIEWERS_DAYS = 30
# Sites of one video and day; viewers from further ones count as from `OTHER_SITES`.
MAX_SITES = 50
OTHER_SITES = "other"
# Any number that no other user of the database picks.
LOCK_ID = 7_306_815_041

# A fold waits with locks on other videos, so it gives up and is repeated.
LIMIT_WAITS = "SET LOCAL lock_timeout = '500ms'"
LOCK = "SELECT pg_try_advisory_xact_lock(%s) AS is_held"
TAKE = """
DELETE FROM playback_inbox WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM playback_inbox ORDER BY received_at LIMIT %s
)) RETURNING *
"""
VIEWERS = """
SELECT viewer_days.* FROM viewer_days
JOIN jsonb_to_recordset(%s) AS key (day date, video_id uuid, visitor bytea)
USING (day, video_id, visitor)
"""
SITES = """
SELECT day, video_id, array_agg(value) AS sites FROM video_days
JOIN jsonb_to_recordset(%s) AS key (day date, video_id uuid) USING (day, video_id)
WHERE kind = 'site' GROUP BY day, video_id
"""
WRITE_VIEWERS = """
INSERT INTO viewer_days
SELECT * FROM jsonb_populate_recordset(NULL::viewer_days, %s)
ON CONFLICT (day, video_id, visitor) DO UPDATE SET
  first_at = excluded.first_at, last_at = excluded.last_at, watch_ms = excluded.watch_ms,
  plays = excluded.plays, seen = excluded.seen, startup_ms = excluded.startup_ms,
  stalls = excluded.stalls, failures = excluded.failures, heights = excluded.heights,
  sessions = excluded.sessions
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


class ViewerKey(NamedTuple):
    """Key of a viewer's day."""

    day: date
    video_id: UUID
    visitor: bytes


@dataclass(frozen=True, slots=True)
class Folded:
    """Result of a fold: the viewers' days that changed, and the changes of sums."""

    viewers: Mapping[ViewerKey, ViewerDay]
    changes: Changes


async def fold_forever(ending: asyncio.Event) -> None:
    """Fold the inbox every few seconds, in every worker until it ends."""
    while not ending.is_set():
        try:
            while await fold_inbox() == CHUNK and not ending.is_set():
                pass
        except Exception:  # statistics must not end a worker
            fields = {"action": "fold_failed"}
            logger.warning("Reports were not folded", exc_info=True, extra=fields)
        await asyncio.sleep(FOLD_EVERY_S)


async def fold_inbox() -> int:
    """Move up to `CHUNK` reports from the inbox into the sums, in one transaction.

    Return the number of reports; 0 if the inbox is empty or another process folds it. Raises
    `LockNotAvailable` if another transaction holds one of the videos for long.
    """
    async with transaction():
        await execute(LIMIT_WAITS)
        [lock] = await fetch_rows(LOCK, LOCK_ID)
        if not lock["is_held"]:
            return 0
        await periods.begin_day()
        reports = await fetch_rows(TAKE, CHUNK)
        if not reports:
            return 0
        keys = {_viewer_key(report) for report in reports}
        films = await fetch_films({key.video_id for key in keys}, is_locked=True)
        viewers = await fetch_rows(VIEWERS, rows_json(key._asdict() for key in keys))
        days = {(key.day, key.video_id) for key in keys}
        sites = await fetch_rows(SITES, rows_json({"day": day, "video_id": id} for day, id in days))
        folded = fold(
            reports,
            {_viewer_key(row): _viewer(row) for row in viewers},
            films=films,
            sites={(row["day"], row["video_id"]): row["sites"] for row in sites},
        )
        changed_viewers = rows_json(_viewer_row(*item) for item in folded.viewers.items())
        await execute(WRITE_VIEWERS, changed_viewers)
        changes = rows_json(_sums_row(*item) for item in folded.changes.sums.items())
        await execute(WRITE_CHANGES, changes)
        await periods.add_changes(changes)
    return len(reports)


def fold(
    reports: Iterable[Row],
    viewers: Mapping[ViewerKey, ViewerDay],
    *,
    films: Mapping[UUID, Film],
    sites: Mapping[tuple[date, UUID], Collection[str]],
) -> Folded:
    """Add reports to the stored days of their viewers, and return what changes.

    `reports` are rows of the inbox. `films` has no key for deleted videos, whose reports are
    dropped. `sites` has the referring sites that are counted already,
    by day and video, to limit their number.
    """
    folded: dict[ViewerKey, ViewerDay] = {}
    changes = Changes()
    counted_sites = {day: set(names) for day, names in sites.items()}
    for report in sorted(reports, key=itemgetter("received_at")):
        key = _viewer_key(report)
        if key.video_id not in films:
            continue
        viewer = folded.get(key) or viewers.get(key)
        if viewer is None:
            names = counted_sites.setdefault((key.day, key.video_id), set())
            viewer = _new_viewer(report, site=_counted_site(report["site"], names))
            names.add(viewer.site)
        folded[key], ignored_count = add_records(
            viewer,
            report["session"].hex(),
            [record_of(values) for values in report["records"]],
            received_at=report["received_at"],
            film=films[key.video_id],
        )
        changes.ignore(key.video_id, key.day, ignored_count)
    for key, viewer in folded.items():
        if before := viewers.get(key):
            changes.add(key.video_id, key.day, before, sign=-1)
        changes.add(key.video_id, key.day, viewer, sign=1)
    return Folded(folded, changes)


def _counted_site(site: str, counted_sites: Collection[str]) -> str:
    """Return the name under which a site is counted: its own, or that of all further sites."""
    is_counted = not site or site in counted_sites or len(counted_sites) < MAX_SITES
    return site if is_counted else OTHER_SITES


async def delete_old_viewers() -> None:
    """Delete viewers' days that are older than `KEEP_VIEWERS_DAYS`. Their sums stay."""
    await execute(DELETE_VIEWERS, datetime.now(UTC).date() - timedelta(days=KEEP_VIEWERS_DAYS))


def _viewer_key(row: Row) -> ViewerKey:
    return ViewerKey(row["day"], row["video_id"], bytes(row["visitor"]))


def _new_viewer(report: Row, *, site: str) -> ViewerDay:
    return ViewerDay(
        first_at=report["received_at"],
        last_at=report["received_at"],
        device=Device(report["device"]),
        place=Place(report["place"]),
        site=site,
    )


def _viewer(row: Row) -> ViewerDay:
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
        sessions={
            session_id: SessionState(record_of(values), entered_ms)
            for session_id, (values, entered_ms) in row["sessions"].items()
        },
    )


def _viewer_row(key: ViewerKey, viewer: ViewerDay) -> Row:
    columns = {field.name: getattr(viewer, field.name) for field in fields(viewer)}
    return {**key._asdict(), **columns}


def _sums_row(key: SumsKey, sums: Counts) -> Row:
    counts = {name: getattr(sums, name) for name in COUNTS}
    lists = {name: getattr(sums, name, ()) for name in LISTS}
    changed = {name: values if any(values) else None for name, values in lists.items()}
    return {**key._asdict(), **counts, **changed}
