"""Finds work that a dead worker or a lost job left behind, and queues it again.

Jobs are idempotent: each re-reads the state, and skips what is done. So there are two rules. A job
that is stalled runs again, whatever became of its work. What was promised by a row (an unfinished
video, a removal, a poster, captions) and has no job any more gets a new one.

A job is stalled when its worker has shown no sign of life for `DEAD_AFTER_S`. Another worker begins
it within a minute: the attempt's lease is shorter. Work of a living worker can be lost, too: the
answer that gave it the job did not arrive, or it could not record the end. Such a job has no live
attempt, run, import or transcription that goes on, and runs for longer than a job without one may.

A video that was deleted and not brought back in time is work of this kind as well: its row says so,
and no job has to be kept for it.
"""

import asyncio
import logging
import math
from functools import partial
from typing import Any

import psycopg

from portal.database.connection import (
    IS_LIVE,
    IS_UNDER_WAY,
    NOW,
    Row,
    fetch_rows,
    lock_video,
    retry_outage,
    server_time,
    transaction,
)
from portal.database.models import Deletion, PosterRequest, Video, VideoStatus
from portal.database.work_models import Transcription
from portal.queue import enqueue
from portal.queue.app import Queue, QueueUnavailable
from portal.queue.rows import DEAD_AFTER_S
from portal.videos.deletion import finish_deletions
from portal.videos.progress import JOB_OF_VIDEO

logger = logging.getLogger(__name__)

RECOVERY_INTERVAL_S = 10
# Twice the limit of posters, removals and webhooks; whatever takes longer runs under an attempt.
UNLEASED_JOB_S = 120
# Of beats of transcriptions.
SPEECH_BEAT_S = 60
# Longest pause between two beats of an import: three calls to storage, to start its upload again.
IMPORT_BEAT_S = 600

STALLED = f"""
SELECT job.id, job.task_name AS task, job.queueing_lock, job.abort_requested
FROM procrastinate_jobs job LEFT JOIN procrastinate_workers worker ON worker.id = job.worker_id
WHERE job.status = 'failed' AND job.queueing_lock IS NULL AND NOT job.abort_requested
OR job.status = 'doing' AND (
  coalesce(worker.last_heartbeat < now() - make_interval(secs => {DEAD_AFTER_S}), true)
  OR job.args ?| ARRAY['video_id', 'webhook_id', 'import_id']
    AND NOT EXISTS (
      SELECT FROM procrastinate_events WHERE job_id = job.id AND type = 'started'
        AND at > now() - make_interval(secs => {UNLEASED_JOB_S})
    ) AND NOT EXISTS (
      SELECT FROM attempts WHERE video_id = (job.args->>'video_id')::uuid AND {IS_UNDER_WAY}
    ) AND NOT EXISTS (
      SELECT FROM pass_runs WHERE id = (job.args->>'run_id')::bigint AND {IS_LIVE}
    ) AND NOT EXISTS (
      SELECT FROM imports WHERE id = (job.args->>'import_id')::uuid
        AND active_at > now() - make_interval(secs => {IMPORT_BEAT_S})
    ) AND NOT EXISTS (
      SELECT FROM transcriptions WHERE job_id = job.id
        AND active_at > now() - make_interval(secs => {SPEECH_BEAT_S})
    )
)
"""  # noqa: S608 - put together from constants
WITHOUT_JOB = f"""
WITH promised AS (
  SELECT 'video' AS kind, id AS video_id, NULL::int AS number, {JOB_OF_VIDEO} AS job_id
  FROM videos WHERE status = 'processing' OR status = 'ready' AND complete_job_id IS NOT NULL
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
)
SELECT promised.* FROM promised LEFT JOIN procrastinate_jobs job ON job.id = promised.job_id
WHERE coalesce(job.status NOT IN ('todo', 'doing', 'failed'), true) AND NOT EXISTS (
  SELECT FROM attempts WHERE video_id = promised.video_id AND {IS_UNDER_WAY}
)
"""  # noqa: S608


async def recover_forever(queue: Queue, ending: asyncio.Event) -> None:
    """Look for abandoned work every few seconds; runs in every worker until that ends."""
    # It is cancelled, too; but the queue's pool may forget a cancellation.
    while not ending.is_set():
        try:
            await recover(queue)
            await finish_deletions(queue=queue)
        except (psycopg.Error, QueueUnavailable):
            logger.warning("Recovery failed", exc_info=True, extra={"action": "recovery_failed"})
            await retry_outage(server_time, timeout_s=math.inf)
            # Nobody could show a sign of life meanwhile; workers that live do so first.
            await asyncio.sleep(2 * RECOVERY_INTERVAL_S)
        await asyncio.sleep(RECOVERY_INTERVAL_S)


async def recover(queue: Queue) -> int:
    """Queue again what was left behind; returns how many jobs that were.

    What two workers see at once is queued once.
    """
    stalled = await fetch_rows(STALLED)
    for row in stalled:
        logger.warning(
            "Stalled job is queued again",
            extra={"action": "recover", "job_id": row["id"], "task": row["task"]},
        )
        # The next of its kind may be queued already, or its video was deleted.
        if row["queueing_lock"] or row["abort_requested"]:
            await enqueue.end_job(row["id"], queue)
        else:
            await enqueue.queue_again(row["id"], queue)
    lost = await fetch_rows(WITHOUT_JOB)
    for row in lost:
        known = {"kind": row["kind"], "video_id": str(row["video_id"]), "job_id": row["job_id"]}
        logger.warning("Lost job is replaced", extra={"action": "recover", **known})
        async with transaction():
            await _replace(row, queue)
    return len(stalled) + len(lost)


async def _replace(row: Row, queue: Queue) -> None:
    """Queue another job for what was promised, unless someone else did so meanwhile."""
    video_id, lost = row["video_id"], row["job_id"]
    if row["kind"] == "video":
        video, found = await lock_video(video_id), Video.filter(id=video_id)
        if video is None:
            return
        if video.status is VideoStatus.PROCESSING and video.first_job_id == lost:
            job_id = await enqueue.defer_transcode(video, queue)
            await found.update(transcode_job_id=job_id, encode_job_id=None, updated_at=NOW)
        elif video.status is VideoStatus.READY and video.complete_job_id == lost:
            await found.update(complete_job_id=await enqueue.defer_completion(video, queue))
        return
    mine = {"video_id": video_id}
    promises: dict[str, tuple[Any, str, Any]] = {
        "captions": (Video.filter(id=video_id), "captions_job_id", enqueue.defer_captions),
        "removal": (Deletion.filter(**mine), "job_id", enqueue.defer_removal),
        "transcription": (Transcription.filter(**mine), "job_id", enqueue.defer_transcription),
        "poster": (
            *(PosterRequest.filter(**mine), "job_id"),
            partial(enqueue.defer_poster, number=row["number"]),
        ),
    }
    promised, column, defer = promises[row["kind"]]
    promise = promised.filter(**{column: lost})
    if await promise.select_for_update().exists():
        await promise.update(**{column: await defer(video_id, queue=queue)})
