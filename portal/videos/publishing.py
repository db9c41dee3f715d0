"""The use cases of the portal; owns the transactions that publish a video.

Knows nothing of HTTP requests. Transactions here never span a call to storage.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from uuid import UUID, uuid4

from portal import errors
from portal.accounts.permissions import Audience
from portal.database.connection import fetch_rows, lock_present, transaction
from portal.database.models import Category, Rendition, RenditionState, Video, VideoStatus
from portal.database.work_models import Import
from portal.events.log import AuditAction, note
from portal.processing import attempts, renditions, sources
from portal.queue.app import Queue
from portal.queue.enqueue import defer_transcode
from portal.storage.bucket import Storage
from portal.storage.calls import ObjectMissing
from portal.storage.objects import UPLOAD_KEY, ObjectInfo, upload_key
from portal.telemetry import metrics
from portal.transcoding.errors import RejectCode
from portal.uploads import quotas
from portal.uploads import service as uploads
from portal.uploads.quotas import NO_QUOTA, Quota
from portal.videos.metadata import Submission, key_extension, recorded

logger = logging.getLogger(__name__)

# An account that was removed this moment issues nothing, and stands in nobody's way.
ISSUE_UPLOADS = """
INSERT INTO uploads (id, key, file_name, content_type, owner_id, created_at)
SELECT id, key, file_name, content_type, owner_id, now()
FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::text[], %s::uuid[])
  AS upload (id, key, file_name, content_type, owner_id)
WHERE owner_id IS NULL OR EXISTS (SELECT FROM accounts WHERE accounts.id = owner_id)
RETURNING id
"""
# Storage's own time limits, with its retries, are longer than someone waits for an answer.
HEAD_TIMEOUT_S = 8
KEY_NOT_ISSUED = "This key was not issued here. Send the key from POST /api/videos/presign."
# Some servers keep the name of S3's framing of a request, which is not in the file.
UNENCODED = frozenset({"", "identity", "aws-chunked"})
# Another try may end otherwise: the fault was not the file's, or an operator may raise a limit.
RETRY_HELPS = frozenset(
    {
        attempts.TRANSCODE_FAILED,
        RejectCode.TOO_LARGE,
        RejectCode.TOO_LONG,
        RejectCode.FILE_TOO_LARGE,
        RejectCode.TOO_MUCH_WORK,
    }
)


class SourceTooLarge(errors.InvalidRequest):
    """The file is larger than the portal takes, and is to be removed."""


@dataclass(frozen=True, slots=True)
class NewUpload:
    """A storage key that is issued for one file, to an account if there are any."""

    id: UUID
    key: str
    file_name: str
    content_type: str
    owner_id: UUID | None


class CategoryTable:
    """The fixed category table, read once from the database."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}

    async def names(self) -> Mapping[int, str]:
        """Category names by id, in the order of ids."""
        if not self._names:
            self._names = {category.id: category.name for category in await Category.all()}
        return self._names


async def begin_upload(
    file_name: str, content_type: str, *, owner_id: UUID | None = None, quota: Quota = NO_QUOTA
) -> NewUpload:
    """Choose a storage key, which `issue_uploads` has to record.

    Raises `VideoQuotaExceeded` or `StorageQuotaExceeded` where nothing could be published now.
    """
    await quotas.require_beginning(owner_id, quota)
    upload_id = uuid4()
    key = upload_key(upload_id, key_extension(file_name, content_type))
    return NewUpload(upload_id, key, file_name, content_type, owner_id)


async def issue_uploads(uploads: Sequence[NewUpload]) -> dict[NewUpload, bool]:
    """Record all that were begun at the same time; those of accounts that are gone are left out."""
    columns = [[getattr(it, column.name) for it in uploads] for column in fields(NewUpload)]
    issued = {row["id"] for row in await fetch_rows(ISSUE_UPLOADS, *columns)}
    metrics.UPLOAD_ISSUED.inc(len(issued))
    return {it: True for it in uploads if it.id in issued}


async def publish(
    submission: Submission,
    *,
    storage: Storage,
    queue: Queue,
    max_source_bytes: int,
    audience: Audience,
    quota: Quota = NO_QUOTA,
) -> tuple[Video, bool]:
    """Record the video, for this audience, and start its transcoding, both or neither.

    Returns it, and whether this call made it: another with the same key and metadata gives the
    same video, so a retry after a lost answer is safe. A signed PUT can't limit what is sent, so a
    file that is too large is removed here; a `max_source_bytes` of 0 is no limit.

    Raises:
        UploadNotFound: storage holds no file, or an empty one, under the key, or the upload in
            parts is not complete.
        InvalidRequest: the key was not issued to this account, the file is too large, or was sent
            with a `Content-Encoding`.
        KeyAlreadyUsed: the key belongs to a video with other metadata.
        VisibilityDiffers: the video of the key has another visibility than the one asked for.
        VideoQuotaExceeded: the account may publish it later; the file is kept for a day.
        StorageQuotaExceeded: the account has no room for the file, which is removed.
    """
    source = await _find_source(submission.key, storage)
    upload_id = await uploads.find_id(submission.key)
    if upload_id is None:
        raise errors.InvalidRequest([errors.FieldError("/key", KEY_NOT_ISSUED)])
    try:
        async with transaction():
            upload = await uploads.lock(upload_id)
            if upload is None or audience.owner_id not in (None, upload.owner_id):
                raise errors.InvalidRequest([errors.FieldError("/key", KEY_NOT_ISSUED)])
            if upload.has_video:
                return await _existing(submission), False
            found = _checked_source(upload, source, max_source_bytes)
            refusal = await quotas.video_refusal(
                audience.owner_id,
                quota,
                upload_id=upload.id,
                size_bytes=found.size_bytes,
                is_announced=upload.size_bytes is not None,
            )
            if refusal is None:
                video = await _insert(submission, found, queue, audience)
    except (SourceTooLarge, errors.StorageQuotaExceeded):
        await uploads.discard(upload_id, storage=storage)
        raise
    # Not before: that the file is kept has to be recorded.
    if refusal is not None:
        raise refusal
    metrics.count_published(found.size_bytes)
    logger.info(
        "Video created",
        extra={"action": "create", "video_id": str(video.id), "job_id": video.transcode_job_id},
    )
    return video, True


async def _find_source(key: str, storage: Storage) -> ObjectInfo | None:
    """What storage holds under the key of an upload, if anything."""
    # Storage rejects some texts: NUL, lone surrogates, more than a key's length.
    if not UPLOAD_KEY.fullmatch(key):
        return None
    try:
        async with asyncio.timeout(HEAD_TIMEOUT_S):
            return await sources.identify(key, storage)
    except ObjectMissing:
        return None
    except TimeoutError as exc:
        raise errors.StorageUnavailable from exc


async def _existing(submission: Submission) -> Video:
    """The video that was made of the upload, if this asks for the same again."""
    video = await Video.present().get_or_none(storage_key=submission.key)
    if video is None:
        raise errors.InvalidRequest([errors.FieldError("/key", KEY_NOT_ISSUED)])
    # What it was created with, or what was made of it since: nothing new is asked for.
    said = submission.metadata
    is_same = said == recorded(video) or said.digest() == video.submitted_digest
    if not is_same or submission.file_name != video.file_name:
        raise errors.KeyAlreadyUsed
    if submission.visibility not in (None, video.visibility):
        present = {"id": str(video.id), "title": video.title, "visibility": video.visibility.value}
        raise errors.VisibilityDiffers(present=present)
    return video


def _checked_source(
    upload: uploads.UploadRow, source: ObjectInfo | None, max_source_bytes: int
) -> ObjectInfo:
    """The whole file of an upload, if a video can be made of it."""
    if upload.is_discarded:
        raise errors.UploadNotFound("This upload was discarded. Ask for a new upload address.")
    if upload.multipart_id is not None:
        raise errors.UploadNotFound(
            "The upload in parts is not complete. Send the parts that are missing, then "
            f"POST /api/uploads/{upload.id.hex}/complete, then try again."
        )
    if source is None:
        raise errors.UploadNotFound
    if source.size_bytes == 0:
        raise errors.UploadNotFound("The uploaded file is empty. Upload it again, then retry.")
    if source.content_encoding not in UNENCODED:
        fault = (
            f"The file was uploaded with the header Content-Encoding: {source.content_encoding}. "
            "Send the video itself, without that header, to the same address, then retry."
        )
        raise errors.InvalidRequest([errors.FieldError("/key", fault)])
    if 0 < max_source_bytes < source.size_bytes:
        fault = (
            f"The uploaded file has {source.size_bytes:,} bytes, and this portal takes at most "
            f"{max_source_bytes:,}. It was removed; ask for a new address and send a smaller file."
        )
        raise SourceTooLarge([errors.FieldError("/key", fault)])
    if upload.size_bytes not in (None, source.size_bytes):
        raise errors.UploadNotFound(
            f"The uploaded file has {source.size_bytes:,} bytes where {upload.size_bytes:,} were "
            "announced. Ask for a new upload address and upload the file again."
        )
    return source


async def _insert(
    submission: Submission, source: ObjectInfo, queue: Queue, audience: Audience
) -> Video:
    now = datetime.now(UTC)
    video = Video(
        id=submission.import_id or uuid4(),
        **asdict(submission.metadata) | {"category_ids": list(submission.metadata.category_ids)},
        file_name=submission.file_name,
        passthrough=submission.passthrough,
        storage_key=submission.key,
        size_bytes=source.size_bytes,
        source_etag=source.etag,
        owner_id=audience.owner_id,
        visibility=audience.visibility,
        signed_in_only=audience.signed_in_only,
        created_at=now,
        updated_at=now,
    )
    video.transcode_job_id = await defer_transcode(video, queue)
    await video.save(force_create=True)
    if submission.import_id is not None:
        await Import.filter(id=video.id).delete()
    await note(AuditAction.VIDEO_PUBLISHED, video.id)
    return video


async def retry_transcode(video: Video, *, queue: Queue) -> None:
    """Try again what failed of a video: all of it, or the renditions that a ready one lacks.

    Raises `NothingToRetry` when nothing failed, or someone else has asked already.
    """
    async with transaction():
        found = await lock_present(video.id)
        if found is not None and found.status is VideoStatus.FAILED:
            await attempts.start_again(found, queue, since=datetime.now(UTC))
        elif found is not None and found.status is VideoStatus.READY:
            failed = Rendition.filter(video_id=video.id, state=RenditionState.FAILED)
            if not await renditions.plan_again(found, failed, queue):
                raise errors.NothingToRetry
        else:
            raise errors.NothingToRetry
        await note(AuditAction.VIDEO_RETRIED, video.id)
