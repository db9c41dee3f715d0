"""Publishing: issue upload keys, create the video of an upload, retry its transcoding.

No transaction spans a call to storage.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from uuid import UUID, uuid4

from portal import errors
from portal.accounts import directory
from portal.accounts.permissions import Audience
from portal.database.connection import fetch_rows, server_time, transaction
from portal.database.models import (
    Category,
    Publication,
    Rendition,
    RenditionState,
    Upload,
    Version,
    Video,
    VideoStatus,
)
from portal.database.search import search_columns
from portal.database.work_models import Import
from portal.events.log import AuditAction, EventType, record_action, record_outcome
from portal.films import attempts, renditions, sources
from portal.films.jobs import enqueue_transcode
from portal.locale.messages import Message, numeral
from portal.storage.bucket import Storage
from portal.storage.calls import ObjectMissing
from portal.storage.objects import UPLOAD_KEY, ObjectInfo, upload_key
from portal.telemetry import metrics
from portal.transcoding.errors import RejectCode
from portal.uploads import quotas
from portal.uploads import service as uploads
from portal.uploads.quotas import NO_QUOTA, Quota
from portal.videos.metadata import Submission, key_extension, require_repetition
from portal.videos.reading import locked_video

logger = logging.getLogger(__name__)

# Uploads of an account that was just removed are left out.
ISSUE_UPLOADS = """
INSERT INTO uploads (id, key, file_name, content_type, owner_id, created_at)
SELECT id, key, file_name, content_type, owner_id, now()
FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::text[], %s::uuid[])
  AS upload (id, key, file_name, content_type, owner_id)
WHERE owner_id IS NULL OR EXISTS (SELECT FROM accounts WHERE accounts.id = owner_id)
RETURNING id
"""
SUBMIT = """
UPDATE publications SET approval = 'waiting'
WHERE id = %s AND approval IS NULL
  AND owner_id IN (SELECT id FROM accounts WHERE role = 'contributor')
RETURNING id
"""
# Storage's own limit, with its retries, is longer than people wait for an answer.
HEAD_TIMEOUT_S = 8
KEY_NOT_ISSUED = Message(
    "This key was not issued here. Send the key from POST /api/videos/presign."
)
# Encodings of files without one: some servers store S3's encoding of the request.
UNENCODED = frozenset({"", "identity", "aws-chunked"})
# Failures that a retry may avoid: the file was not the cause, or an operator may raise a limit.
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
    """The file is larger than the portal accepts, and has to be removed."""


# Categories that the first migration adds, for translators.
CATEGORY_NAMES = (
    # Translators: category of videos.
    Message("Film & Animation"),
    Message("Music"),
    Message("Sports"),
    Message("News & Politics"),
    Message("Education"),
    Message("Science & Technology"),
    Message("Gaming"),
    Message("Comedy"),
    Message("Entertainment"),
    Message("How-to & Style"),
    Message("Food & Cooking"),
    Message("Travel & Events"),
    Message("Nature & Animals"),
    Message("Autos & Vehicles"),
    Message("People & Society"),
    Message("Business & Products"),
)


class CategoryTable:
    """The fixed category table, read once from the database."""

    def __init__(self) -> None:
        self._names: dict[int, Message] = {}

    async def names(self) -> Mapping[int, str]:
        """Return category names by id, in the order of ids."""
        if not self._names:
            # An operator's own categories have no translation.
            self._names = {category.id: Message(category.name) for category in await Category.all()}
        return self._names


async def begin_upload(
    file_name: str, content_type: str, *, owner_id: UUID | None = None, quota: Quota = NO_QUOTA
) -> Upload:
    """Return a new upload, which `issue_uploads` has to record.

    Raises `VideoQuotaExceeded` or `StorageQuotaExceeded` if the account may not publish now.
    """
    await quotas.require_beginning(owner_id, quota)
    upload_id = uuid4()
    key = upload_key(upload_id, key_extension(file_name, content_type))
    return Upload(
        id=upload_id, key=key, file_name=file_name, content_type=content_type, owner_id=owner_id
    )


async def issue_uploads(new: Sequence[Upload]) -> dict[Upload, bool]:
    """Record uploads by one statement. Return those that were not of a removed account."""
    names = ("id", "key", "file_name", "content_type", "owner_id")
    columns = [[getattr(upload, name) for upload in new] for name in names]
    ids = {row["id"] for row in await fetch_rows(ISSUE_UPLOADS, *columns)}
    metrics.UPLOAD_ISSUED.inc(len(ids))
    return {upload: True for upload in new if upload.id in ids}


async def publish(
    submission: Submission,
    *,
    storage: Storage,
    max_source_bytes: int,
    audience: Audience,
    shared_with: Collection[str] = (),
    quota: Quota = NO_QUOTA,
    follow: Callable[[Video], Awaitable[None]] | None = None,
) -> tuple[Video, bool]:
    """Create the video of an upload and queue its transcoding, in one transaction.

    A new video has this audience, and is shared with the accounts and groups that are named in
    `shared_with`. That of a contributor waits for approval. Return the video and whether it is new:
    a repetition with the same key and metadata returns the same video, so a retry after a lost
    response is safe. A signed PUT can't limit the size of a file, so a file that is too large is
    removed here. A `max_source_bytes` of 0 is no limit. `follow` is called with a new video in the
    transaction, and may refuse it.

    Raises:
        UploadNotFound: storage has no file, or an empty one, under the key, or the upload in parts
            is not complete.
        InvalidRequest: the key was not issued to this account, the file is too large, or was sent
            with a `Content-Encoding`, or `shared_with` has an unknown name.
        KeyAlreadyUsed: the key belongs to a video with other metadata.
        VisibilityDiffers: the video of the key has another visibility than the submission.
        VideoQuotaExceeded: the account may publish it later; the file is kept for a day.
        StorageQuotaExceeded: the account has no room for the file, which is removed.
    """
    owner_id = audience.owner_id
    async with locked_upload(submission.key, owner_id, storage) as (upload, stored):
        # Videos that were created later share the file of this one.
        existing = await Video.filter(storage_key=upload.key).order_by("created_at").first()
        if existing is not None:
            if existing.deleted_at is not None:
                raise _not_issued()
            require_repetition(submission, existing)
            return existing, False
        if await Version.exists(storage_key=upload.key):
            raise errors.KeyAlreadyUsed
        source = check_stored(upload, stored, max_source_bytes)
        named_ids = await directory.require_names(shared_with, pointer="/share")
        audience = replace(audience, admitted_ids=audience.admitted_ids | named_ids)
        refusal = await room_refusal(upload, source, owner_id, quota)
        if refusal is None:
            video = await _insert_video(submission, source, audience)
            if follow is not None:
                await follow(video)
    # The refusal follows the commit, which records that the file is kept.
    if refusal is not None:
        raise refusal
    metrics.count_published(source.size_bytes)
    logger.info(
        "Video created",
        extra={"action": "create", "video_id": str(video.id), "job_id": video.transcode_job_id},
    )
    return video, True


@asynccontextmanager
async def locked_upload(
    key: str, owner_id: UUID | None, storage: Storage
) -> AsyncIterator[tuple[Upload, ObjectInfo | None]]:
    """Lock the upload of a key in a transaction, and yield it with its file, if there is one.

    A file that is too large, or for which there is no room, is removed from storage when the block
    raises that. Raises `InvalidRequest` if the key was not issued to the account `owner_id`; None
    stands for any account.
    """
    stored = await _find_source(key, storage)
    upload: Upload | None = None
    try:
        async with transaction():
            upload = await uploads.lock_key(key)
            if upload is None or owner_id not in (None, upload.owner_id):
                raise _not_issued()
            yield upload, stored
    except (SourceTooLarge, errors.StorageQuotaExceeded):
        if upload is not None:
            await uploads.discard(upload.id, storage=storage)
        raise


def _not_issued() -> errors.InvalidRequest:
    return errors.InvalidRequest([errors.FieldError("/key", KEY_NOT_ISSUED)])


async def room_refusal(
    upload: Upload, source: ObjectInfo, owner_id: UUID | None, quota: Quota
) -> errors.VideoQuotaExceeded | None:
    """Return the error that refuses the file of an upload now, as `quotas.video_refusal`."""
    return await quotas.video_refusal(
        owner_id,
        quota,
        upload_id=upload.id,
        size_bytes=source.size_bytes,
        is_announced=upload.size_bytes is not None,
    )


async def _find_source(key: str, storage: Storage) -> ObjectInfo | None:
    """Return the file under the key of an upload; None if there is none."""
    # Storage rejects NUL, lone surrogates, and texts that are longer than a key may be.
    if not UPLOAD_KEY.fullmatch(key):
        return None
    try:
        async with asyncio.timeout(HEAD_TIMEOUT_S):
            return await sources.identify(key, storage)
    except ObjectMissing:
        return None
    except TimeoutError as exc:
        raise errors.StorageUnavailable from exc


def check_stored(upload: Upload, source: ObjectInfo | None, max_source_bytes: int) -> ObjectInfo:
    """Return the file of an upload. Raises the errors of `publish` for one that is unusable."""
    if upload.is_discarded:
        raise errors.UploadNotFound(
            Message("This upload was discarded. Ask for a new upload address.")
        )
    if upload.multipart_id is not None:
        raise errors.UploadNotFound(
            Message(
                "The upload in parts is not complete. Send the parts that are missing, then "
                "POST /api/uploads/%(id)s/complete, then try again.",
                id=upload.id.hex,
            )
        )
    if source is None:
        raise errors.UploadNotFound
    if source.size_bytes == 0:
        raise errors.UploadNotFound(
            Message("The uploaded file is empty. Upload it again, then retry.")
        )
    if source.content_encoding not in UNENCODED:
        fault = Message(
            "The file was uploaded with the header Content-Encoding: %(encoding)s. "
            "Send the video itself, without that header, to the same address, then retry.",
            encoding=source.content_encoding,
        )
        raise errors.InvalidRequest([errors.FieldError("/key", fault)])
    if 0 < max_source_bytes < source.size_bytes:
        fault = Message(
            "The uploaded file has %(size)s bytes, and this portal takes at most "
            "%(limit)s. It was removed; ask for a new address and send a smaller file.",
            size=numeral(source.size_bytes),
            limit=numeral(max_source_bytes),
        )
        raise SourceTooLarge([errors.FieldError("/key", fault)])
    if upload.size_bytes not in (None, source.size_bytes):
        raise errors.UploadNotFound(
            Message(
                "The uploaded file has %(size)s bytes where %(announced)s were "
                "announced. Ask for a new upload address and upload the file again.",
                size=numeral(source.size_bytes),
                announced=numeral(upload.size_bytes or 0),
            )
        )
    return source


async def _insert_video(submission: Submission, source: ObjectInfo, audience: Audience) -> Video:
    now = await server_time()
    metadata = submission.metadata
    video_id = submission.import_id or uuid4()
    derived = search_columns(
        title=metadata.title, description=metadata.description, tags=metadata.tags
    )
    columns = {**asdict(metadata), "category_ids": list(metadata.category_ids), **derived}
    await Publication.create(
        **columns,
        id=video_id,
        version_id=video_id,
        passthrough=submission.passthrough,
        owner_id=audience.owner_id,
        visibility=audience.visibility,
        signed_in_only=audience.signed_in_only,
        has_public_page=audience.has_public_page,
        admitted_ids=list(audience.admitted_ids),
        created_at=now,
        updated_at=now,
    )
    first = Version(
        id=video_id,
        video_id=video_id,
        file_name=submission.file_name,
        storage_key=submission.key,
        created_at=now,
    )
    await insert_version(first, source)
    if submission.import_id is not None:
        await Import.filter(id=video_id).delete()
    await record_action(AuditAction.VIDEO_PUBLISHED, video_id)
    await submit_if_required(video_id)
    return await Video.get(id=video_id)


async def submit_if_required(video_id: UUID) -> None:
    """Set a new or approved video to waiting for approval if its owner is a contributor.

    A video that waits already or was refused stays so. The caller's transaction has created or
    locked the video.
    """
    if await fetch_rows(SUBMIT, video_id):
        await record_outcome(EventType.SUBMITTED, video_id)


async def insert_version(version: Version, source: ObjectInfo) -> None:
    """Complete a version by the facts of its file, insert it, and queue its transcoding."""
    version.size_bytes = source.size_bytes
    version.source_etag = source.etag
    version.transcode_job_id = await enqueue_transcode(version)
    await version.save(force_create=True)


async def retry_transcode(video: Video) -> None:
    """Retry a failed video, or the failed renditions of a ready video.

    Raises `VideoNotFound`, or `NothingToRetry` if nothing has failed or a retry is queued already.
    """
    async with transaction():
        locked = await locked_video(video.id)
        version = await locked.current_version()
        is_lost_copy = version.keep is not None and version.base_id is None
        if version.status is VideoStatus.FAILED and not is_lost_copy:
            await attempts.start_again(version, since=await server_time())
        elif version.status is VideoStatus.READY:
            failed = Rendition.filter(version_id=version.id, state=RenditionState.FAILED)
            if not await renditions.plan_again(version, failed):
                raise errors.NothingToRetry
        else:
            raise errors.NothingToRetry
        await record_action(AuditAction.VIDEO_RETRIED, video.id)
