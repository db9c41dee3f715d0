"""The janitor: periodic task that removes stored objects, rows and jobs that are no longer needed.

It removes only objects that this database knows: issued uploads, numbered attempts, deleted videos.
An unknown object may belong to a newer state of the database, or to another portal;
`portal doctor --deep` lists such objects.

The signed upload URL of a file stays valid after its video was published, and even after it was
deleted. So the janitor compares sources with the size that quotas count, from the time at which the
URL expires until the time at which no request sent before can arrive.

A transaction locks the row and makes each removal final (upload discarded, attempt closed). The
objects are deleted afterwards, and the row is deleted or marked last. So the next janitor continues
the work of a killed one, several janitors at the same time do no harm, and an upload or attempt
that is published in between is kept.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self
from uuid import UUID

from portal.accounts.audit import prune
from portal.accounts.sessions import delete_expired
from portal.config import Config
from portal.database.connection import (
    execute,
    fetch_rows,
    lock_version,
    rows_by_key,
    server_time,
    transaction,
)
from portal.database.models import Attempt, Publication, Tombstone, Upload, Version
from portal.features import FEATURES
from portal.features.cuts.copies import fail_copies
from portal.films.attempts import close_lost
from portal.films.outputs import unused_below, used_folders
from portal.films.removal import logging_refusals, remove_again, remove_below, remove_source
from portal.films.versions import REVERTIBLE_S, WITHDRAWN_AT
from portal.queue.rows import delete_forgotten_requests, prune_jobs
from portal.storage.bucket import Storage
from portal.storage.calls import ObjectMissing
from portal.storage.objects import output_prefix, output_root
from portal.uploads import service as uploads

logger = logging.getLogger(__name__)

# Hourly; the queue has one job of it for all workers.
CRON = "7 * * * *"
PERIOD_S = 3600
DAY_S = 24 * 3600
# Longest duration of an upload request that began before its URL expired.
ARRIVAL_S = 6 * 3600
BATCH = 100

# Uploads without a video or an import in progress that have been inactive since a time.
IDLE_UPLOADS = """
SELECT id AS key FROM uploads
WHERE (greatest(created_at, active_at) < %s OR is_discarded AND multipart_id IS NOT NULL)
  AND NOT EXISTS (SELECT FROM versions WHERE storage_key = key)
  AND NOT EXISTS (SELECT FROM imports WHERE upload_id = uploads.id AND error_code IS NULL)
  AND id > %s
ORDER BY id LIMIT %s
"""
# Sources whose upload URL has expired and that may have been replaced before, with the size in
# their versions' rows; 0 for deleted videos that shared their sources with no other one.
EXPIRED_SOURCES = """
WITH expired AS (SELECT %s::timestamptz AS at)
SELECT DISTINCT key, size_bytes FROM (
  SELECT uploads.key, versions.size_bytes FROM expired, uploads
  JOIN versions ON versions.storage_key = uploads.key
  WHERE NOT is_compared AND uploads.created_at < expired.at
  UNION ALL
  SELECT storage_key, 0 FROM expired, tombstones
  WHERE published_at < expired.at AND published_at > %s
    AND NOT EXISTS (SELECT FROM versions WHERE versions.storage_key = tombstones.storage_key)
) source
WHERE key > %s ORDER BY key LIMIT %s
"""
# Condition for versions in a final state without an attempt under way since a time.
SETTLED = """
(versions.status = 'failed' OR versions.status = 'ready' AND versions.complete_job_id IS NULL)
AND NOT EXISTS (
  SELECT FROM attempts later WHERE later.version_id = versions.id
    AND greatest(later.started_at, later.lease_expires_at) > %s
)
"""
# Versions settled since a time, with attempts whose output was not swept.
SWEEPABLE = f"""
SELECT attempts.version_id::text AS key FROM attempts
JOIN versions ON versions.id = attempts.version_id
WHERE NOT attempts.is_swept AND {SETTLED} AND attempts.version_id > %s
GROUP BY attempts.version_id ORDER BY attempts.version_id LIMIT %s
"""  # noqa: S608 - constants of this file
IS_SETTLED = f"SELECT FROM versions WHERE id = %s AND {SETTLED}"
# Condition for versions that can't become current again, and whose segments no cut plays. Another
# video that is made of their film gets a week to be tried again after a failure.
EXPIRED = f"""
retired_at < now() - make_interval(secs => {REVERTIBLE_S}) AND {SETTLED}
AND NOT EXISTS (
  SELECT FROM versions cut WHERE cut.base_id = versions.id
    AND (cut.video_id = versions.video_id OR cut.status <> 'failed')
)
AND NOT EXISTS (SELECT FROM publications WHERE publications.version_id = versions.id)
"""  # noqa: S608
EXPIRED_VERSIONS = f"""
SELECT id::text AS key FROM versions WHERE {EXPIRED} AND id > %s ORDER BY id LIMIT %s
"""  # noqa: S608
IS_EXPIRED = f"SELECT FROM versions WHERE {EXPIRED} AND id = %s"
# Tombstones whose upload URLs have expired and that have no pending deletion.
DUE_TOMBSTONES = """
SELECT tombstones.video_id::text AS key, storage_key FROM tombstones
WHERE deleted_at < %s AND tombstones.video_id > %s
  AND NOT EXISTS (SELECT FROM deletions WHERE deletions.video_id = tombstones.video_id)
ORDER BY tombstones.video_id LIMIT %s
"""
FORGET_ANSWERS = """
DELETE FROM idempotency_keys WHERE began_at < now() - make_interval(secs => %s)
"""


@dataclass(frozen=True, slots=True)
class Cutoffs:
    """Times before which uploads and attempts are finished.

    `idle_since`: uploads that have been inactive since then are abandoned, and no request to one of
    their URLs can still arrive. `expired_since`: upload URLs that were signed before have expired.
    `settled_since`: no worker writes to older attempts, and no player reads from them.
    """

    idle_since: datetime
    expired_since: datetime
    settled_since: datetime

    @classmethod
    def at(cls, now: datetime, config: Config) -> Self:
        """Return the cutoffs at a time."""
        idle_s = max(DAY_S, config.upload_url_ttl_s + ARRIVAL_S)
        return cls(
            idle_since=now - timedelta(seconds=idle_s),
            expired_since=now - timedelta(seconds=config.upload_url_ttl_s),
            settled_since=now - timedelta(seconds=max(DAY_S, config.playback_url_ttl_s)),
        )


async def tidy(
    config: Config, *, storage: Storage, now: datetime | None = None
) -> Mapping[str, int]:
    """Remove everything that is due; `now` is the database's time by default.

    Return how many things were removed, by their name or the name of their feature. Raises
    `StorageUnavailable` when storage is unreachable.
    """
    now = now or await server_time()
    cutoffs = Cutoffs.at(now, config)
    tidied = {
        "jobs": await prune_jobs(keep_days=config.keep_jobs_days) if config.keep_jobs_days else 0,
        "uploads": await discard_abandoned(cutoffs, storage),
        "replaced_sources": await remove_replaced(cutoffs, storage),
        "objects": await sweep_attempts(cutoffs, storage),
        "expired_versions": await remove_expired_versions(cutoffs, storage),
        "deleted_videos": await remove_late_files(cutoffs, storage),
        "audit_lines": await prune(keep_days=config.audit_days) if config.audit_days else 0,
    }
    for feature in FEATURES:
        if feature.sweep is not None:
            tidied[feature.name] = await feature.sweep(storage, now)
        if feature.prune is not None:
            await feature.prune()
        if feature.enforce_settings is not None:
            await feature.enforce_settings(config)
    await delete_expired()
    await delete_forgotten_requests()
    await execute(FORGET_ANSWERS, DAY_S)
    logger.info("Janitor has finished", extra={"action": "janitor", **tidied})
    return tidied


async def discard_abandoned(cutoffs: Cutoffs, storage: Storage) -> int:
    """Discard uploads that have been idle since `cutoffs.idle_since`, with files; return how many.

    Interrupted removals of discarded uploads are repeated, and counted. Deletions that storage
    refuses are logged, and not counted. Raises `StorageUnavailable` when storage is unreachable.
    """
    removed = 0
    async for row in rows_by_key(IDLE_UPLOADS, cutoffs.idle_since, page=BATCH):
        with logging_refusals():
            removed += await uploads.discard_abandoned(
                row["key"], idle_since=cutoffs.idle_since, storage=storage
            )
    return removed


async def remove_replaced(cutoffs: Cutoffs, storage: Storage) -> int:
    """Delete files that replaced the source of a video or a deleted video; return how many.

    Further passes over such a source fail as `source_changed` in any case.
    """
    removed = 0
    times = (cutoffs.expired_since, cutoffs.idle_since)
    async for row in rows_by_key(EXPIRED_SOURCES, *times, first="", page=BATCH):
        key = row["key"]
        with logging_refusals():
            with suppress(ObjectMissing):
                size_bytes = (await storage.head(key)).size_bytes
                if size_bytes != row["size_bytes"]:
                    await storage.delete(key)
                    removed += 1
                    logger.warning(
                        "Deleted a source that was replaced after it was published",
                        extra={"action": "source_replaced", "key": key, "size_bytes": size_bytes},
                    )
            is_final = Upload.filter(key=key, created_at__lt=cutoffs.idle_since)
            await is_final.update(is_compared=True)
    return removed


async def sweep_attempts(cutoffs: Cutoffs, storage: Storage) -> int:
    """Delete the output of attempts that no version uses; return the number of objects."""
    removed = 0
    async for row in rows_by_key(SWEEPABLE, cutoffs.settled_since, page=BATCH):
        with logging_refusals():
            removed += await _sweep_version(UUID(row["key"]), cutoffs, storage)
    return removed


async def remove_late_files(cutoffs: Cutoffs, storage: Storage) -> int:
    """Remove due tombstones, and files that arrived late; return the number of videos."""
    videos = 0
    async for row in rows_by_key(DUE_TOMBSTONES, cutoffs.idle_since, page=BATCH):
        video_id = UUID(row["key"])
        storage_key = row["storage_key"]
        has_source = await storage.list_some(storage_key)
        if has_source or await storage.list_some(output_root(video_id)):
            await remove_again(video_id, storage_key)
        videos += await Tombstone.filter(video_id=video_id).delete()
    return videos


async def remove_expired_versions(cutoffs: Cutoffs, storage: Storage) -> int:
    """Remove the versions that were retired or withdrawn long ago; return how many.

    The row goes last, so that the next janitor goes on with what an interrupted one has left.
    """
    removed = 0
    async for row in rows_by_key(EXPIRED_VERSIONS, cutoffs.settled_since, page=BATCH):
        version = await _withdraw_expired(UUID(row["key"]), cutoffs)
        if version is None:
            continue
        with logging_refusals():
            for feature in FEATURES:
                if feature.before_removal is not None:
                    await feature.before_removal(version, storage)
            for attempt in await Attempt.filter(version_id=version.id):
                await remove_below(output_prefix(version.video_id, attempt.number), storage)
                lower = Publication.filter(
                    id=version.video_id, last_removed_attempt__lt=attempt.number
                )
                await lower.update(last_removed_attempt=attempt.number)
            await remove_source(version, storage)
            # The upload without a version is now an abandoned one.
            removed += await Version.filter(id=version.id).delete()
    return removed


async def _withdraw_expired(version_id: UUID, cutoffs: Cutoffs) -> Version | None:
    """Withdraw an expired version, and return it; return None if it isn't expired any more.

    It can't become current again while its files are removed.
    """
    async with transaction():
        version = await lock_version(version_id)
        if version is None or not await fetch_rows(IS_EXPIRED, cutoffs.settled_since, version_id):
            return None
        await Version.filter(id=version_id).update(retired_at=WITHDRAWN_AT)
        await fail_copies([version])
        return version


async def _sweep_version(version_id: UUID, cutoffs: Cutoffs, storage: Storage) -> int:
    """Delete the unused output of a settled version; return the number of objects."""
    async with transaction():
        version = await lock_version(version_id)
        if version is None or not await is_settled(version_id, cutoffs.settled_since):
            return 0
        attempts = await Attempt.filter(version_id=version_id, is_swept=False)
        # Closed attempts can't be published, so their unused output stays unused.
        await close_lost(attempts)
    used = await used_folders(version, storage)
    if used is None:
        logger.warning(
            "Output was kept because the master playlist is missing; run `portal doctor --deep`",
            extra={"action": "janitor", "video_id": str(version.video_id)},
        )
        return 0
    removed = 0
    for attempt in attempts:
        async for prefix in unused_below(version, attempt.number, used, storage):
            removed += await remove_below(prefix, storage)
    await Attempt.filter(id__in=[attempt.id for attempt in attempts]).update(is_swept=True)
    return removed


async def is_settled(version_id: UUID, since: datetime) -> bool:
    """Return whether a version is in a final state and no attempt was under way since a time.

    The state of a locked version can't change.
    """
    return bool(await fetch_rows(IS_SETTLED, version_id, since))
