"""The janitor: removes what nobody needs any more from storage and from the queue.

A periodic task of the workers.

From storage it removes only what this database knows: uploads it issued, attempts it counted,
videos it deleted. An object unknown to the database may belong to a newer state of it, or to
another portal; `portal doctor --deep` lists those.

The address that a file was PUT to stays good after the video was published, and even deleted. So
sources are compared with the size that quotas count, from when the address expires until nothing
sent to it can arrive any more.

Each removal is decided in a transaction that locks the row and makes the decision final (an
upload discarded, an attempt closed), and carried out afterwards; the row that tells of it goes, or
is marked, last. So a janitor that is killed is continued by the next one, several at once do no
harm, and what is published meanwhile is left alone.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Self
from uuid import UUID

from portal.accounts.audit import prune
from portal.accounts.sessions import delete_expired
from portal.config import Config
from portal.database.connection import (
    execute,
    fetch_rows,
    lock_video,
    rows_by_key,
    server_time,
    transaction,
)
from portal.database.models import Attempt, Tombstone, Upload
from portal.errors import StorageUnavailable
from portal.processing.attempts import close_lost
from portal.processing.outputs import unused_below, used_folders
from portal.processing.removal import remove_again, remove_below
from portal.queue.app import Queue
from portal.queue.rows import prune_jobs
from portal.storage.bucket import Storage, StorageKept
from portal.storage.calls import ObjectMissing, StorageRefused
from portal.storage.objects import output_root
from portal.uploads import service as uploads
from portal.videos import playback_links
from portal.webhooks.endpoints import forget_old

logger = logging.getLogger(__name__)

# Every hour; each is queued once, however many workers there are.
CRON = "7 * * * *"
PERIOD_S = 3600
DAY_S = 24 * 3600
# What was begun with an address just before it ran out may take this long to arrive.
ARRIVAL_S = 6 * 3600
BATCH = 100

# Uploads untouched since then that no video was made of, and that no import goes on with.
IDLE_UPLOADS = """
SELECT key FROM uploads
WHERE (greatest(created_at, active_at) < %s OR is_discarded AND multipart_id IS NOT NULL)
  AND NOT EXISTS (SELECT FROM videos WHERE storage_key = key)
  AND NOT EXISTS (SELECT FROM imports WHERE storage_key = key AND error_code IS NULL)
  AND key > %s
ORDER BY key LIMIT %s
"""
# Sources whose upload address has expired and that may have been replaced until then, with the size
# that their video has; 0 for a deleted one.
EXPIRED_SOURCES = """
WITH expired AS (SELECT %s::timestamptz AS at)
SELECT key, size_bytes FROM (
  SELECT uploads.key, videos.size_bytes FROM expired, uploads
  JOIN videos ON videos.storage_key = uploads.key
  WHERE NOT is_compared AND uploads.created_at < expired.at
  UNION ALL
  SELECT storage_key, 0 FROM expired, tombstones
  WHERE published_at < expired.at AND published_at > %s
) source
WHERE key > %s ORDER BY key LIMIT %s
"""
# Final videos, none of whose attempts was under way, or may have been,
# since then.
SETTLED = """
(videos.status = 'failed' OR videos.status = 'ready' AND videos.complete_job_id IS NULL)
AND NOT EXISTS (
  SELECT FROM attempts later WHERE later.video_id = videos.id
    AND greatest(later.started_at, later.lease_expires_at) > %s
)
"""
# Videos settled since then with attempts that were not swept.
SWEEPABLE = f"""
SELECT attempts.video_id::text AS key FROM attempts
JOIN videos ON videos.id = attempts.video_id
WHERE NOT attempts.is_swept AND {SETTLED} AND attempts.video_id > %s
GROUP BY attempts.video_id ORDER BY attempts.video_id LIMIT %s
"""  # noqa: S608 - constants of this file
IS_SETTLED = f"SELECT FROM videos WHERE id = %s AND {SETTLED}"
# Of deleted videos to whose addresses nothing can arrive any more, and that no removal is due of.
DUE_TOMBSTONES = """
SELECT tombstones.video_id::text AS key, storage_key FROM tombstones
WHERE deleted_at < %s AND tombstones.video_id > %s
  AND NOT EXISTS (SELECT FROM deletions WHERE deletions.video_id = tombstones.video_id)
ORDER BY tombstones.video_id LIMIT %s
"""
FORGET_ANSWERS = """
DELETE FROM idempotency_keys WHERE began_at < now() - make_interval(secs => %s)
"""


@dataclass(slots=True)
class Tidied:
    """How much was removed, and of how many deleted videos."""

    uploads: int = 0
    replaced_sources: int = 0
    objects: int = 0
    deleted_videos: int = 0
    jobs: int = 0
    audit_lines: int = 0


@dataclass(frozen=True, slots=True)
class Cutoffs:
    """What happened before these moments is over.

    `idle_since`: an upload untouched since then is abandoned, and no address that was signed for
    one can still be used. `expired_since`: an address that was signed before begins no upload any
    more. `settled_since`: nobody writes to, or plays from, attempts of before.
    """

    idle_since: datetime
    expired_since: datetime
    settled_since: datetime

    @classmethod
    def at(cls, now: datetime, config: Config) -> Self:
        """The cutoffs at this moment."""
        idle_s = max(DAY_S, config.upload_url_ttl_s + ARRIVAL_S)
        return cls(
            idle_since=now - timedelta(seconds=idle_s),
            expired_since=now - timedelta(seconds=config.upload_url_ttl_s),
            settled_since=now - timedelta(seconds=max(DAY_S, config.playback_url_ttl_s)),
        )


async def tidy(
    config: Config, *, storage: Storage, queue: Queue, now: datetime | None = None
) -> Tidied:
    """Remove everything that is due; `now` is the database's time unless a test says otherwise.

    Raises `StorageUnavailable` when storage is away.
    """
    cutoffs, done = Cutoffs.at(now or await server_time(), config), Tidied()
    if config.keep_jobs_days:
        done.jobs = await prune_jobs(keep_days=config.keep_jobs_days)
    done.uploads = await discard_abandoned(cutoffs, storage)
    done.replaced_sources = await remove_replaced(cutoffs, storage)
    done.objects = await sweep_attempts(cutoffs, storage)
    done.deleted_videos = await remove_late_files(cutoffs, storage, queue)
    await delete_expired()
    await playback_links.forget_unused()
    await forget_old()
    await execute(FORGET_ANSWERS, DAY_S)
    if config.audit_days:
        done.audit_lines = await prune(keep_days=config.audit_days)
    logger.info("Tidied up", extra={"action": "janitor", **asdict(done)})
    return done


async def discard_abandoned(cutoffs: Cutoffs, storage: Storage) -> int:
    """Remove uploads that nobody went on with or made a video of, and their rows."""
    removed = 0
    async for row in rows_by_key(IDLE_UPLOADS, cutoffs.idle_since, first="", page=BATCH):
        with _logging_refusals():
            removed += await uploads.discard_abandoned(
                row["key"], idle_since=cutoffs.idle_since, storage=storage
            )
    return removed


async def remove_replaced(cutoffs: Cutoffs, storage: Storage) -> int:
    """Remove files that were put in the place of a video's, or of a deleted video's.

    What is still to be made of such a video fails as `source_changed` in any case.
    """
    removed = 0
    times = (cutoffs.expired_since, cutoffs.idle_since)
    async for row in rows_by_key(EXPIRED_SOURCES, *times, first="", page=BATCH):
        key = row["key"]
        with _logging_refusals():
            with suppress(ObjectMissing):
                size_bytes = (await storage.head(key)).size_bytes
                if size_bytes != row["size_bytes"]:
                    await storage.delete(key)
                    removed += 1
                    logger.warning(
                        "Source was replaced after it was published",
                        extra={"action": "source_replaced", "key": key, "size_bytes": size_bytes},
                    )
            arrived = Upload.filter(key=key, created_at__lt=cutoffs.idle_since)
            await arrived.update(is_compared=True)
    return removed


async def sweep_attempts(cutoffs: Cutoffs, storage: Storage) -> int:
    """Remove the output of attempts that the published video does not use; counts objects."""
    removed = 0
    async for row in rows_by_key(SWEEPABLE, cutoffs.settled_since, page=BATCH):
        with _logging_refusals():
            removed += await _sweep_video(UUID(row["key"]), cutoffs, storage)
    return removed


async def remove_late_files(cutoffs: Cutoffs, storage: Storage, queue: Queue) -> int:
    """Remove files of deleted videos that arrived late; returns how many videos."""
    videos = 0
    async for row in rows_by_key(DUE_TOMBSTONES, cutoffs.idle_since, page=BATCH):
        video_id, storage_key = UUID(row["key"]), row["storage_key"]
        if any([await storage.list_some(it) for it in (storage_key, output_root(video_id))]):
            await remove_again(video_id, storage_key, queue=queue)
        videos += await Tombstone.filter(video_id=video_id).delete()
    return videos


async def _sweep_video(video_id: UUID, cutoffs: Cutoffs, storage: Storage) -> int:
    """Returns the number of objects removed."""
    async with transaction():
        video = await lock_video(video_id)
        if video is None or not await is_settled(video_id, cutoffs.settled_since):
            return 0
        attempts = await Attempt.filter(video_id=video_id, is_swept=False)
        # What is closed can no longer be published, so nothing of it comes into use from here on.
        await close_lost(attempts)
    used = await used_folders(video, storage)
    if used is None:
        logger.warning(
            "Master playlist is missing, see `portal doctor --deep`",
            extra={"action": "janitor", "video_id": str(video_id)},
        )
        return 0
    removed = 0
    for attempt in attempts:
        async for prefix in unused_below(video, attempt.number, used, storage):
            removed += await remove_below(prefix, storage)
    await Attempt.filter(id__in=[attempt.id for attempt in attempts]).update(is_swept=True)
    return removed


async def is_settled(video_id: UUID, since: datetime) -> bool:
    """Whether a video is final and was not worked on since then; for good if it is locked."""
    return bool(await fetch_rows(IS_SETTLED, video_id, since))


@contextmanager
def _logging_refusals() -> Iterator[None]:
    """What storage refuses to remove must not keep the janitor from the rest."""
    try:
        yield
    except (StorageRefused, StorageUnavailable) as exc:
        if isinstance(exc, StorageUnavailable) and not isinstance(exc.__cause__, StorageKept):
            raise
        logger.warning("Not removed", exc_info=exc, extra={"action": "janitor_refused"})
