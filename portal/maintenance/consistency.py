"""Comparison of database and storage, in both directions: `portal doctor --deep`.

The portal may work during the comparison: differences are looked at twice before they are reported.
Jobs, leases and abandoned uploads are not compared, because recovery and the janitor handle them.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from portal.config import Config
from portal.database.connection import fetch_rows, rows_by_key, server_time
from portal.database.models import Attempt, Version, Video
from portal.films.outputs import unused_below, used_folders
from portal.films.sources import holds_source, identify
from portal.maintenance.janitor import PERIOD_S, Cutoffs, is_settled
from portal.maintenance.video_files import Difference, enqueue_missing, find_defects
from portal.storage.bucket import Storage, entries_of, objects_below
from portal.storage.calls import ObjectMissing
from portal.storage.objects import OUTPUT_FOLDER, UPLOAD_FOLDER, StoredObject, output_root
from portal.videos.reading import parse_video_id

MAX_EXAMPLES = 10
PAGE = 1000

VIDEOS = "SELECT id::text AS key FROM videos WHERE id > %s ORDER BY id LIMIT %s"
IS_VIDEO_KNOWN = """
SELECT 1 FROM videos WHERE id = %s
UNION ALL SELECT 1 FROM deletions WHERE video_id = %s
UNION ALL SELECT 1 FROM tombstones WHERE video_id = %s
"""
IS_KEY_KNOWN = """
SELECT 1 FROM uploads WHERE key = %s
UNION ALL SELECT 1 FROM deletions WHERE %s = ANY(storage_keys)
UNION ALL SELECT 1 FROM tombstones WHERE storage_key = %s
"""


@dataclass(slots=True)
class DifferenceCount:
    """Number of differences of a kind, and of those for which no job was enqueued."""

    count: int = 0
    left: int = 0
    examples: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """Differences counted by kind, with at most `MAX_EXAMPLES` examples of each."""

    counts: dict[Difference, DifferenceCount] = field(default_factory=dict)

    @property
    def left(self) -> int:
        """Return the number of differences for which no job was enqueued."""
        return sum(tally.left for tally in self.counts.values())

    def add(self, kind: Difference, example: str, *, is_enqueued: bool = False) -> None:
        """Count a difference."""
        tally = self.counts.setdefault(kind, DifferenceCount())
        tally.count += 1
        tally.left += not is_enqueued
        if len(tally.examples) < MAX_EXAMPLES:
            tally.examples.append(f"{example}: job enqueued" if is_enqueued else example)


async def compare(
    config: Config,
    *,
    storage: Storage,
    fix: bool = False,
    now: datetime | None = None,
) -> Report:
    """Compare database and storage; with `fix` enqueue the jobs that make missing files again.

    `now` is the database's time by default.
    """
    report = Report()
    cutoffs = Cutoffs.at(now or await server_time(), config)
    # The janitor removes the output of superseded attempts before; two hours allow for a delay.
    settled_since = cutoffs.settled_since - timedelta(seconds=2 * PERIOD_S)
    async for row in rows_by_key(VIDEOS, page=PAGE):
        video_id = UUID(row["key"])
        await _check_source(video_id, report, storage)
        await _check_files(video_id, report, storage, fix=fix)
        await _check_unused(video_id, report, storage, settled_since)
    async for stored in objects_below(UPLOAD_FOLDER, storage):
        if not await fetch_rows(IS_KEY_KNOWN, *[stored.key] * 3):
            await _report_unused(stored.key, report, storage)
    async for entry in entries_of(OUTPUT_FOLDER, storage):
        key = entry.key if isinstance(entry, StoredObject) else entry
        named_id = parse_video_id(key.removeprefix(OUTPUT_FOLDER).removesuffix("/"))
        if not named_id or not await fetch_rows(IS_VIDEO_KNOWN, *[named_id] * 3):
            await _report_unused(key, report, storage)
    return report


async def _check_source(video_id: UUID, report: Report, storage: Storage) -> None:
    video = await Video.get_or_none(id=video_id)
    if video is None:
        return
    version = await video.current_version()
    if await holds_source(version, storage):
        return
    subject = f"video {video_id}: {version.storage_key}"
    try:
        source = await identify(version.storage_key, storage)
    except ObjectMissing:
        report.add(Difference.SOURCE_MISSING, subject)
        return
    if source.size_bytes != version.size_bytes:
        subject += f", {source.size_bytes:,} bytes instead of {version.size_bytes:,}"
    else:
        subject += f", ETag {source.etag} instead of {version.source_etag}"
    report.add(Difference.SOURCE_CHANGED, subject)


async def _check_files(video_id: UUID, report: Report, storage: Storage, *, fix: bool) -> None:
    """Report the defects of a video; with `fix` enqueue the jobs that repair them."""
    defects = await find_defects(video_id, storage)
    if defects:
        # The video may have been published, completed or deleted during the first look.
        confirmed = await find_defects(video_id, storage)
        defects = [defect for defect in defects if defect in confirmed]
    enqueued: set[Difference] = set()
    if defects and fix:
        enqueued = await enqueue_missing(video_id, defects, storage=storage)
    for defect in defects:
        example = f"{output_root(video_id)} {defect}"
        report.add(defect.kind, example, is_enqueued=defect.kind in enqueued)


async def _check_unused(
    video_id: UUID, report: Report, storage: Storage, settled_since: datetime
) -> None:
    """Report the files of a video that none of its versions uses, once all are settled."""
    versions = {version.id: version for version in await Version.filter(video_id=video_id)}
    # An open attempt may still be published; the janitor closes it first.
    is_open = await Attempt.filter(video_id=video_id, outcome=None).exists()
    settled = [await is_settled(version_id, settled_since) for version_id in versions]
    folders = {key: await used_folders(version, storage) for key, version in versions.items()}
    if not versions or is_open or not all(settled) or None in folders.values():
        return
    version_ids = dict(await Attempt.filter(video_id=video_id).values_list("number", "version_id"))
    any_id = next(iter(versions))
    root = output_root(video_id)
    async for entry in entries_of(root, storage):
        number = "" if isinstance(entry, StoredObject) else entry.removeprefix(root).rstrip("/")
        if number.isdecimal():
            # No version uses a folder without an attempt.
            version_id = version_ids.get(int(number), any_id)
            used = folders[version_id] or set()
            async for prefix in unused_below(versions[version_id], int(number), used, storage):
                await _report_unused(prefix, report, storage)


async def _report_unused(prefix: str, report: Report, storage: Storage) -> None:
    """Report an object, or all objects below a folder, that no row refers to."""
    count = 0
    size_bytes = 0
    async for stored in objects_below(prefix, storage):
        if prefix.endswith("/") or stored.key == prefix:
            count += 1
            size_bytes += stored.size_bytes
    if count:
        example = f"{prefix} ({count:,} objects, {size_bytes:,} bytes)"
        report.add(Difference.OBJECT_UNUSED, example)
