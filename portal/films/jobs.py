"""Jobs that work on versions: which of them a version requires, and in which order they go.

Each version has the ids of its jobs. A job that copies or probes, one that encodes, and later ones
that complete the ladder follow each other. The job of a first pass has another lock than the probe:
otherwise a worker would find it only at a poll after the probe ended.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from portal.database.connection import IS_LIVE, IS_UNDER_WAY, NOW, lock_version
from portal.database.models import Publication, Version, VideoStatus
from portal.queue.jobs import PREPARE_QUEUE, SIDE_QUEUE, TRANSCODE_QUEUE, Job, Required
from portal.queue.priorities import (
    ALLOWANCE_S,
    SHARE_PRIORITY,
    completion_priority,
    encode_priority,
    look_priority,
    waiting_since,
)
from portal.queue.rows import priority_of

# Column with the job that makes a version playable: the one that encodes, if there is any.
FIRST_JOB = "coalesce(encode_job_id, transcode_job_id)"
# Condition on jobs of whose version a worker makes an attempt or a part.
_IS_UNDER_WAY = f"""
EXISTS (
  SELECT FROM attempts WHERE version_id = (job.args->>'version_id')::uuid AND {IS_UNDER_WAY}
) OR EXISTS (
  SELECT FROM pass_parts WHERE version_id = (job.args->>'version_id')::uuid AND {IS_LIVE}
)
"""  # noqa: S608 - put together from constants


async def enqueue_transcode(version: Version, *, since: datetime | None = None) -> int:
    """Enqueue the job that probes a version's file, and return the job's id.

    Its priority counts from `since`, by default from the version's creation.
    """
    priority = look_priority(_looked_at_bytes(version), since=since or version.created_at)
    return await TRANSCODE.enqueue(priority=priority, version_id=version.id)


async def enqueue_encode(version: Version, *, expected_s: float) -> int:
    """Enqueue the job that makes a version playable by encoding, and return the job's id.

    The encode is expected to take `expected_s`. Its priority counts from the same time as that of
    the probe.
    """
    priority = encode_priority(expected_s, since=await _due_since(version))
    return await ENCODE.enqueue(priority=priority, version_id=version.id)


async def enqueue_completion(version: Version) -> int:
    """Enqueue the job that completes a ready version's ladder, and return the job's id."""
    priority = completion_priority(version.size_bytes, since=await _due_since(version))
    return await COMPLETE.enqueue(priority=priority, version_id=version.id)


async def enqueue_share(version_id: UUID) -> int:
    """Enqueue the job that makes parts of another worker's pass, behind all other jobs."""
    return await SHARE.enqueue(priority=SHARE_PRIORITY, version_id=version_id)


def _looked_at_bytes(version: Version) -> int:
    """Return the size of the film that the first job of a version reads or copies; 0 for a cut."""
    # A cut of a large file is as short as one of a small file, but a new video copies the film.
    is_cut = version.base_id is not None and version.id != version.video_id
    return 0 if is_cut else version.size_bytes


async def _due_since(version: Version) -> datetime:
    """Return the time from which the due time of a version's probe was counted.

    This is the time of the request. It is days later if the requester had many recent jobs.
    """
    priority = await priority_of(version.transcode_job_id)
    if priority is None:
        return version.created_at
    return waiting_since(priority, _looked_at_bytes(version))


async def _replace_lost_pass(arguments: Mapping[str, Any], lost_id: int | None) -> None:
    """Enqueue the job of a version's next pass again, in the current transaction."""
    version_id = arguments["version_id"]
    version = await lock_version(version_id)
    rows = Version.filter(id=version_id)
    if version is None:
        return
    if version.status is VideoStatus.PROCESSING and version.first_job_id == lost_id:
        job_id = await enqueue_transcode(version)
        await rows.update(transcode_job_id=job_id, encode_job_id=None)
        await Publication.filter(id=version.video_id).update(updated_at=NOW)
    elif version.status is VideoStatus.READY and version.complete_job_id == lost_id:
        await rows.update(complete_job_id=await enqueue_completion(version))


_VERSION = {"version_id": "id"}
TRANSCODE = Job(
    name="transcode",
    queue=PREPARE_QUEUE,
    lock="look:{version_id}",
    is_under_way=_IS_UNDER_WAY,
    required=Required(
        table="versions",
        condition="status = 'processing'",
        job_id=FIRST_JOB,
        arguments=_VERSION,
        replace=_replace_lost_pass,
    ),
)
ENCODE = Job(
    name="encode",
    queue=TRANSCODE_QUEUE,
    lock="video:{version_id}",
    is_under_way=_IS_UNDER_WAY,
)
COMPLETE = Job(
    name="complete",
    queue=TRANSCODE_QUEUE,
    lock="video:{version_id}",
    is_under_way=_IS_UNDER_WAY,
    required=Required(
        table="versions",
        condition="status = 'ready'",
        job_id="complete_job_id",
        arguments=_VERSION,
        replace=_replace_lost_pass,
    ),
)
SHARE = Job(name="share", queue=TRANSCODE_QUEUE, is_under_way=_IS_UNDER_WAY)
STORYBOARD = Job(
    name="storyboard",
    queue=SIDE_QUEUE,
    lock="storyboard:{version_id}",
    allowance_s=ALLOWANCE_S,
    longest_s=1200,
    required=Required(
        table="versions",
        condition="status = 'ready'",
        job_id="storyboard_job_id",
        arguments=_VERSION,
    ),
)
# The lock makes a removal wait for a running pass. A probe, which may copy, and a storyboard end
# soon after their video is gone.
REMOVAL = Job(
    name="remove",
    queue=SIDE_QUEUE,
    lock="video:{video_id}",
    allowance_s=ALLOWANCE_S,
    required=Required(table="deletions", condition="true", arguments={"video_id": "video_id"}),
)
