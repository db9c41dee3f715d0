"""Compares database and storage, both ways: `portal doctor --deep`.

It reports what differs, and repairs what can be without losing anything: what is missing of a
ready video is made again (`video_files`), what nothing refers to is removed once it is a day old.
A portal may go on working meanwhile: what looks wrong is looked at again before it is reported.
Jobs, leases and abandoned uploads are not compared: recovery and the janitor see to those.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from portal.config import Config
from portal.database.connection import fetch_rows, rows_by_key, server_time
from portal.database.models import Attempt, Video
from portal.maintenance.janitor import DAY_S, PERIOD_S, Cutoffs, is_settled
from portal.maintenance.video_files import Difference, find_defects, make_again
from portal.processing.outputs import unused_below, used_folders
from portal.processing.removal import remove_below
from portal.processing.sources import holds_source, identify
from portal.queue.app import Queue
from portal.storage.bucket import Storage, entries_of, objects_below
from portal.storage.calls import ObjectMissing
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
    async for stored in objects_below(UPLOAD_FOLDER, storage):
        if not await fetch_rows(IS_KEY_KNOWN, *[stored.key] * 3):
            await _report_unused(stored.key, run)
    async for entry in entries_of(OUTPUT_FOLDER, storage):
        key = entry.key if isinstance(entry, StoredObject) else entry
        known_as = parse_video_id(key.removeprefix(OUTPUT_FOLDER).removesuffix("/"))
        if not known_as or not await fetch_rows(IS_VIDEO_KNOWN, *[known_as] * 3):
            await _report_unused(key, run)
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
    since = run.cutoffs.settled_since - timedelta(seconds=2 * PERIOD_S)
    video = await Video.get_or_none(id=video_id)
    if video is None or not await is_settled(video_id, since):
        return
    used = await used_folders(video, run.storage)
    # An attempt that is open may yet be published; the janitor closes it first.
    if used is None or await Attempt.filter(video_id=video_id, outcome=None).exists():
        return
    root = output_root(video_id)
    for folder in [it async for it in entries_of(root, run.storage) if isinstance(it, str)]:
        number = folder.removeprefix(root).rstrip("/")
        if number.isdecimal():
            async for prefix in unused_below(video, int(number), used, run.storage):
                await _report_unused(prefix, run)


async def _report_unused(prefix: str, run: _Comparison) -> None:
    """Report, and remove once nobody may still be writing there, what nothing refers to."""
    is_folder = prefix.endswith("/")
    count, size_bytes, is_young = 0, 0, False
    async for stored in objects_below(prefix, run.storage):
        if is_folder or stored.key == prefix:
            count, size_bytes = count + 1, size_bytes + stored.size_bytes
            is_young |= stored.written_at >= run.now - timedelta(seconds=DAY_S)
    if run.report.fix and not is_young:
        if is_folder:
            await remove_below(prefix, run.storage)
        else:
            await run.storage.delete(prefix)
    if count:
        subject = f"{prefix} ({count:,} objects, {size_bytes:,} bytes)"
        run.report.add(Difference.OBJECT_UNUSED, subject, TOO_YOUNG if is_young else "")
