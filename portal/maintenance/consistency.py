"""Compares database and storage, both ways: `portal doctor --deep`.

It reports what differs, and repairs what can be without losing anything: what is missing of a
ready video is made again (`video_files`), what nothing refers to is removed once it is a day old.
A portal may go on working meanwhile: what looks wrong is looked at again before it is reported.
Jobs, leases and abandoned uploads are not compared: recovery and the janitor see to those.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from uuid import UUID

from portal.config import Config
from portal.database.connection import fetch_rows, rows_by_key, server_time
from portal.database.models import Video
from portal.maintenance.janitor import DAY_S, PERIOD_S, Cutoffs, recorded_multiparts
from portal.maintenance.video_files import (
    Difference,
    find_defects,
    make_again,
    remove_unused,
    unused_objects,
)
from portal.processing.removal import remove_below
from portal.processing.sources import holds_source, identify
from portal.queue.app import Queue
from portal.storage.bucket import Storage, entries_of, objects_below
from portal.storage.calls import ListingRefused, ObjectMissing
from portal.storage.objects import OUTPUT_FOLDER, UPLOAD_FOLDER, StoredObject, output_root
from portal.videos.reading import parse_video_id

MAX_EXAMPLES = 10
PAGE = 1000
TOO_YOUNG = "not yet: it is younger than a day, and may be someone's work in progress"
UPLOAD_AGAIN = "can't be repaired: upload the file again and delete this video"

VIDEOS = "SELECT id::text AS key FROM videos WHERE id > %s ORDER BY id LIMIT %s"
IS_VIDEO_KNOWN = """
SELECT 1 FROM videos WHERE id = %s
UNION ALL SELECT 1 FROM deletions WHERE video_id = %s
UNION ALL SELECT 1 FROM tombstones WHERE video_id = %s
"""
IS_KEY_KNOWN = """
SELECT 1 FROM uploads WHERE key = %s
UNION ALL SELECT 1 FROM deletions WHERE storage_key = %s
UNION ALL SELECT 1 FROM tombstones WHERE storage_key = %s
"""


@dataclass(slots=True)
class DifferenceCount:
    """How many differences of a kind there are; `left` of them are not repaired."""

    count: int = 0
    left: int = 0
    examples: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """What was found, counted by kind: memory does not depend on how much that is."""

    fix: bool
    counts: dict[Difference, DifferenceCount] = field(default_factory=dict)

    @property
    def left(self) -> int:
        return sum(found.left for found in self.counts.values())

    def add(self, kind: Difference, subject: str, why_left: str) -> None:
        """Count a difference; `why_left` is empty for one that was repaired."""
        found = self.counts.setdefault(kind, DifferenceCount())
        found.count += 1
        found.left += not self.fix or bool(why_left)
        if len(found.examples) < MAX_EXAMPLES:
            outcome = f": {why_left or 'repaired'}" if self.fix else ""
            found.examples.append(subject + outcome)


@dataclass(frozen=True, slots=True)
class _Comparison:
    storage: Storage
    queue: Queue
    report: Report
    cutoffs: Cutoffs
    now: datetime
    accepts_sources: bool

    def is_young(self, stored: StoredObject) -> bool:
        """Whether somebody may still be writing what belongs to this object."""
        return stored.written_at >= self.now - timedelta(seconds=DAY_S)


async def compare(
    config: Config,
    *,
    storage: Storage,
    queue: Queue,
    fix: bool = False,
    accepts_sources: bool = False,
    now: datetime | None = None,
) -> Report:
    """Compare, and repair if wanted, with a queue that is open.

    With `accepts_sources` restored files of the right size are taken for the same. `now` is the
    database's time unless a test says so.
    """
    now = now or await server_time()
    cutoffs = Cutoffs.at(now, config)
    run = _Comparison(storage, queue, Report(fix), cutoffs, now, accepts_sources)
    async for row in rows_by_key(VIDEOS, page=PAGE):
        video_id = UUID(row["key"])
        await _check_source(video_id, run)
        await _check_files(video_id, run)
        await _check_unused(video_id, run)
    await _find_unknown_sources(run)
    await _find_unknown_output(run)
    await _find_unknown_multiparts(run)
    return run.report


async def _check_source(video_id: UUID, run: _Comparison) -> None:
    video = await Video.get_or_none(id=video_id)
    if video is None or await holds_source(video, run.storage):
        return
    subject = f"video {video_id}: {video.storage_key}"
    try:
        found = await identify(video.storage_key, run.storage)
    except ObjectMissing:
        run.report.add(Difference.SOURCE_MISSING, subject, UPLOAD_AGAIN)
        return
    if found.size_bytes != video.size_bytes:
        subject += f", {found.size_bytes:,} bytes instead of {video.size_bytes:,}"
        run.report.add(Difference.SOURCE_CHANGED, subject, UPLOAD_AGAIN)
        return
    # Storage gives restored objects other ETags; whether that is so only the operator knows.
    why_left = "after a restore, --accept-sources takes it for the same file"
    if run.report.fix and run.accepts_sources:
        await Video.filter(id=video_id, source_etag=video.source_etag).update(
            source_etag=found.etag
        )
        why_left = ""
    run.report.add(Difference.SOURCE_CHANGED, f"{subject}, another ETag", why_left)


async def _check_files(video_id: UUID, run: _Comparison) -> None:
    defects = await find_defects(video_id, run.storage)
    if defects:
        # Once more: it may have been published, completed or deleted while it was looked at.
        still = await find_defects(video_id, run.storage)
        defects = [defect for defect in defects if defect in still]
    if not defects:
        return
    why_left = ""
    if run.report.fix:
        why_left = await make_again(video_id, defects, storage=run.storage, queue=run.queue)
    for defect in defects:
        run.report.add(defect.kind, f"{output_root(video_id)} {defect}", why_left)


async def _check_unused(video_id: UUID, run: _Comparison) -> None:
    # The janitor, even a late one, has removed the output of superseded attempts by then.
    since = run.cutoffs.settled_since
    unused = await unused_objects(video_id, since - timedelta(seconds=2 * PERIOD_S), run.storage)
    for folder, found in groupby(unused, key=lambda stored: stored.key.rpartition("/")[0]):
        objects, why_left = list(found), ""
        if run.report.fix:
            why_left = await remove_unused(
                video_id, objects, settled_since=since, storage=run.storage
            )
        subject = f"{folder}/ ({len(objects):,} objects)"
        run.report.add(Difference.OBJECT_UNUSED, subject, why_left)


async def _find_unknown_sources(run: _Comparison) -> None:
    async for stored in objects_below(UPLOAD_FOLDER, run.storage):
        if not await fetch_rows(IS_KEY_KNOWN, *[stored.key] * 3):
            await _remove_unknown(stored, f"{stored.key} ({stored.size_bytes:,} bytes)", run)


async def _find_unknown_output(run: _Comparison) -> None:
    async for entry in entries_of(OUTPUT_FOLDER, run.storage):
        if isinstance(entry, StoredObject):
            await _remove_unknown(entry, entry.key, run)
            continue
        video_id = parse_video_id(entry.removeprefix(OUTPUT_FOLDER).removesuffix("/"))
        if video_id and await fetch_rows(IS_VIDEO_KNOWN, *[video_id] * 3):
            continue
        count, is_young = 0, False
        async for stored in objects_below(entry, run.storage):
            count, is_young = count + 1, is_young or run.is_young(stored)
        if run.report.fix and not is_young:
            await remove_below(entry, run.storage)
        if count:
            subject = f"{entry} ({count:,} objects)"
            run.report.add(Difference.OBJECT_UNUSED, subject, TOO_YOUNG if is_young else "")


async def _remove_unknown(stored: StoredObject, subject: str, run: _Comparison) -> None:
    is_young = run.is_young(stored)
    if run.report.fix and not is_young:
        await run.storage.delete(stored.key)
    run.report.add(Difference.OBJECT_UNUSED, subject, TOO_YOUNG if is_young else "")


async def _find_unknown_multiparts(run: _Comparison) -> None:
    """Unfinished uploads in parts whose keys this database never issued."""
    try:
        async for page in run.storage.multiparts.unfinished(UPLOAD_FOLDER):
            old = [it for it in page if it.begun_at < run.cutoffs.idle_since]
            known = await recorded_multiparts([it.key for it in old])
            for found in old:
                if found.key not in known:
                    if run.report.fix:
                        await run.storage.multiparts.abort(found.key, found.multipart_id)
                    subject = f"{found.key}, begun {found.begun_at:%Y-%m-%d %H:%M}"
                    run.report.add(Difference.MULTIPART_STALE, subject, "")
    except ListingRefused:
        return
