"""Recovery: enqueue jobs again that a dead worker left behind, and replace lost ones.

Jobs are idempotent: each reads the state again and skips finished work. So there are two rules:
a stalled job runs again, and a row that requires a job (an unfinished video, a removal, a poster, a
storyboard, captions, a download) gets a new one if its job no longer exists.

A job is stalled when its worker has sent no heartbeat for `DEAD_AFTER_S`. Another worker begins it
within a minute, because the attempt's lease is shorter. A living worker can lose a job, too: the
response with the job did not arrive, or the worker could not record the job's end. Such a job has
no attempt, run, import or transcription under way, and has run longer than jobs without one may.

Recovery also removes deleted videos that were not restored in time. Their rows need no job.
"""

import asyncio
import logging
import math
from functools import partial
from typing import Any
from uuid import UUID

import psycopg

from portal.database.connection import (
    IS_LIVE,
    IS_UNDER_WAY,
    NOW,
    Row,
    fetch_rows,
    lock_version,
    retry_outage,
    server_time,
    transaction,
)
from portal.database.models import Deletion, PosterRequest, Publication, Version, VideoStatus
from portal.database.work_models import Download, Transcription
from portal.processing import storyboards
from portal.queue import enqueue
from portal.queue.rows import DEAD_AFTER_S, end_job, queue_again
from portal.videos import downloads
from portal.videos.deletion import finish_deletions
from portal.videos.progress import JOB_OF_VERSION

logger = logging.getLogger(__name__)

RECOVERY_INTERVAL_S = 10
# Twice the time limit of posters, removals and webhooks; longer jobs have an attempt, except for
# storyboards and downloads.
UNLEASED_JOB_S = 120
# Longest pause between two heartbeats of a transcription.
SPEECH_BEAT_S = 60
# Longest pause between two heartbeats of an import: three calls to storage that restart its upload.
IMPORT_BEAT_S = 600

STALLED = f"""
SELECT job.id, job.task_name AS task, job.queueing_lock, job.abort_requested
FROM procrastinate_jobs job LEFT JOIN procrastinate_workers worker ON worker.id = job.worker_id
WHERE job.status = 'failed' AND job.queueing_lock IS NULL AND NOT job.abort_requested
OR job.status = 'doing' AND (
  coalesce(worker.last_heartbeat < now() - make_interval(secs => {DEAD_AFTER_S}), true)
  OR job.args ?| ARRAY['version_id', 'video_id', 'webhook_id', 'import_id']
    AND NOT EXISTS (
      SELECT FROM procrastinate_events WHERE job_id = job.id AND type = 'started'
        AND at > now() - make_interval(secs => CASE job.task_name
          WHEN 'portal:storyboard' THEN {2 * storyboards.JOB_TIMEOUT_S}
          WHEN 'portal:download' THEN {2 * downloads.JOB_TIMEOUT_S}
          ELSE {UNLEASED_JOB_S} END)
    ) AND NOT EXISTS (
      SELECT FROM attempts
      WHERE version_id = (job.args->>'version_id')::uuid AND {IS_UNDER_WAY}
    ) AND NOT EXISTS (
      SELECT FROM pass_parts WHERE version_id = (job.args->>'version_id')::uuid AND {IS_LIVE}
    ) AND NOT EXISTS (
      SELECT FROM imports WHERE id = (job.args->>'import_id')::uuid
        AND active_at > now() - make_interval(secs => {IMPORT_BEAT_S})
    ) AND NOT EXISTS (
      SELECT FROM transcriptions WHERE job_id = job.id
        AND active_at > now() - make_interval(secs => {SPEECH_BEAT_S})
    )
)
"""  # noqa: S608 - put together from constants
# Rows that require a job which is lost. `id` is that of a version or a video.
WITHOUT_JOB = f"""
WITH required AS (
  SELECT 'version' AS kind, id, NULL::int AS number, {JOB_OF_VERSION} AS job_id
  FROM versions WHERE status = 'processing' OR status = 'ready' AND complete_job_id IS NOT NULL
  UNION ALL
  SELECT 'storyboard', id, NULL, storyboard_job_id
  FROM versions WHERE status = 'ready' AND storyboard_job_id IS NOT NULL
  UNION ALL
  SELECT 'captions', id, NULL, captions_job_id
  FROM videos WHERE status = 'ready' AND captions_job_id IS NOT NULL
  UNION ALL
  SELECT 'transcription', video_id, NULL, job_id FROM transcriptions WHERE error_code IS NULL
  UNION ALL
  SELECT 'removal', video_id, NULL, job_id FROM deletions
  UNION ALL
  SELECT 'poster', video_id, number, job_id FROM poster_requests
  WHERE state IN ('waiting', 'working')
  UNION ALL
  SELECT 'download', video_id, id, job_id FROM downloads
  WHERE state IN ('waiting', 'working') AND video_id IS NOT NULL
)
SELECT required.* FROM required LEFT JOIN procrastinate_jobs job ON job.id = required.job_id
WHERE coalesce(job.status NOT IN ('todo', 'doing', 'failed'), true) AND NOT EXISTS (
  SELECT FROM attempts WHERE required.id IN (version_id, video_id) AND {IS_UNDER_WAY}
)
"""  # noqa: S608


async def recover_forever(ending: asyncio.Event) -> None:
    """Recover jobs and finish deletions every few seconds, in every worker until it ends."""
    # Checked in addition to cancellation, because the queue's pool may swallow a cancellation.
    while not ending.is_set():
        try:
            await recover()
            await finish_deletions()
        except psycopg.Error:
            logger.warning("Recovery failed", exc_info=True, extra={"action": "recovery_failed"})
            await retry_outage(server_time, timeout_s=math.inf)
            # No worker could send a heartbeat during the outage; living workers do so first.
            await asyncio.sleep(2 * RECOVERY_INTERVAL_S)
        await asyncio.sleep(RECOVERY_INTERVAL_S)


async def recover() -> int:
    """Enqueue stalled jobs again and replace lost ones; return how many.

    A job that two workers recover at the same time is enqueued once.
    """
    stalled = await fetch_rows(STALLED)
    for row in stalled:
        logger.warning(
            "Enqueuing a stalled job again",
            extra={"action": "recover", "job_id": row["id"], "task": row["task"]},
        )
        # The next periodic job of the kind may be queued already, or the video was deleted.
        if row["queueing_lock"] or row["abort_requested"]:
            await end_job(row["id"])
        else:
            await queue_again(row["id"])
    lost = await fetch_rows(WITHOUT_JOB)
    for row in lost:
        fields = {"kind": row["kind"], "owner_id": str(row["id"]), "job_id": row["job_id"]}
        logger.warning("Replacing a lost job", extra={"action": "recover", **fields})
        async with transaction():
            await _replace_lost_job(row)
    return len(stalled) + len(lost)


async def _replace_lost_job(row: Row) -> None:
    """Enqueue a new job for a row that requires one, unless another worker has done so."""
    if row["kind"] == "version":
        await _replace_lost_pass(row["id"], row["job_id"])
        return
    owner_id = row["id"]
    number = row["number"]
    defer_poster = partial(enqueue.defer_poster, number=number)
    defer_download = partial(enqueue.defer_download, number=number)
    kinds: dict[str, tuple[Any, str, Any]] = {
        "captions": (Publication.filter(id=owner_id), "captions_job_id", enqueue.defer_captions),
        "storyboard": (Version.filter(id=owner_id), "storyboard_job_id", enqueue.defer_storyboard),
        "removal": (Deletion.filter(video_id=owner_id), "job_id", enqueue.defer_removal),
        "transcription": (
            Transcription.filter(video_id=owner_id),
            "job_id",
            enqueue.defer_transcription,
        ),
        "poster": (PosterRequest.filter(video_id=owner_id), "job_id", defer_poster),
        "download": (Download.filter(id=number), "job_id", defer_download),
    }
    rows, column, defer = kinds[row["kind"]]
    owner = rows.filter(**{column: row["job_id"]})
    if await owner.select_for_update().exists():
        await owner.update(**{column: await defer(owner_id)})


async def _replace_lost_pass(version_id: UUID, lost_id: int) -> None:
    version = await lock_version(version_id)
    rows = Version.filter(id=version_id)
    if version is None:
        return
    if version.status is VideoStatus.PROCESSING and version.first_job_id == lost_id:
        job_id = await enqueue.defer_transcode(version)
        await rows.update(transcode_job_id=job_id, encode_job_id=None)
        await Publication.filter(id=version.video_id).update(updated_at=NOW)
    elif version.status is VideoStatus.READY and version.complete_job_id == lost_id:
        await rows.update(complete_job_id=await enqueue.defer_completion(version))
