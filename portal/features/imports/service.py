"""Imports: files that the portal fetches from other servers and publishes.

The transaction that publishes the video deletes the import's row; a failed import keeps its row,
with the error. A job that runs again then does nothing. If two jobs run at once, the later one
takes over.
"""

import asyncio
import logging
from dataclasses import asdict
from datetime import datetime
from functools import partial
from urllib.parse import unquote, urlsplit
from uuid import UUID, uuid4

from tortoise.expressions import Q

from portal import errors
from portal.accounts.people import fetch_principals
from portal.accounts.permissions import Action, Audience, Principal
from portal.config import Config
from portal.database.connection import server_time, transaction
from portal.database.models import Upload, Visibility
from portal.database.work_models import Import
from portal.events.log import Actor, EventType, act_as, record_outcome
from portal.events.records import TranscodeFailure
from portal.features.imports.fetching import (
    TYPES,
    Fetch,
    Superseded,
    extension_of,
    file_name_of,
    record,
)
from portal.locale.messages import Message
from portal.queue.jobs import IMPORT_QUEUE, REQUESTER, Job
from portal.queue.priorities import slow_import_priority
from portal.queue.rows import emptiest_import_lane, import_waits
from portal.queue.tools import Tools
from portal.storage.bucket import Storage
from portal.uploads import service as uploads
from portal.uploads.quotas import Quota
from portal.videos import metadata, publishing
from portal.videos.feature import Pending
from portal.videos.progress import Progress, TranscodeStage, progress_without_workers

logger = logging.getLogger(__name__)

WAIT_S = 10
# The pause between two beats is at most that of three calls to storage that restart its upload.
IMPORT = Job(
    name="import",
    queue=IMPORT_QUEUE,
    is_under_way="""EXISTS (
      SELECT FROM imports WHERE id = (job.args->>'import_id')::uuid
        AND active_at > now() - interval '10 minutes'
    )""",
)


async def create(
    url: str,
    editable: metadata.EditableMetadata,
    *,
    audience: Audience,
    passthrough: str,
    quota: Quota,
) -> UUID:
    """Queue the import of a file. Return the id that its video will have.

    Raises `VideoQuotaExceeded` or `StorageQuotaExceeded` if the account may not publish now.
    """
    name = file_name_of([unquote(urlsplit(url).path.rpartition("/")[2])])
    owner_id = audience.owner_id
    upload = await publishing.begin_upload(
        name, TYPES[extension_of(name)], owner_id=owner_id, quota=quota
    )
    columns = {
        **asdict(editable),
        "visibility": audience.visibility,
        "passthrough": passthrough,
    }
    async with transaction():
        if not await publishing.issue_uploads([upload]):
            raise errors.NotSignedIn(Message("Your account was removed."))
        row = await Import.create(id=uuid4(), upload_id=upload.id, url=url, asked=columns)
        await enqueue(row.id, owner_id)
    return row.id


async def enqueue(import_id: UUID, owner_id: UUID | None) -> int:
    """Enqueue the job that fetches a file, and return the job's id.

    The locks of four lanes limit an account to four slots.
    """
    lane = await emptiest_import_lane(f"import:{owner_id or REQUESTER.get()}:")
    return await IMPORT.enqueue(lock=lane, import_id=import_id)


async def find(import_id: UUID) -> Import | None:
    """Return an import without a video yet, with its upload; None if there is none."""
    return await Import.get_or_none(id=import_id).select_related("upload")


async def find_pending(video_id: UUID, reader: Principal) -> Pending | None:
    """Return the import that will create a video, for its owner and admins."""
    row = await find(video_id)
    if row is None or not reader.may_see(Audience(owner_id=row.upload.owner_id)):
        return None
    percent = 100 * row.received_bytes / row.whole_bytes if row.whole_bytes else 0
    absence = errors.VideoNotFound(Message("This video is still being imported. Try again later."))
    stage = TranscodeStage.IMPORTING
    if row.error_code is not None:
        stage = TranscodeStage.FAILED
        failure = {"code": row.error_code, "message": row.error_message}
        absence = errors.ImportFailed(
            Message("The import failed. %(reason)s", reason=row.error_message), failure=failure
        )
    progress = Progress(
        work=progress_without_workers(stage, percent=percent),
        failure=TranscodeFailure.of(row.error_code, row.error_message),
    )
    cancel_row = partial(cancel, row)
    return Pending(id=row.id, absence=absence, progress=progress, cancel=cancel_row)


async def list_imports(
    seen_by: Principal, *, limit: int, after: tuple[datetime, UUID] | None = None
) -> list[Import]:
    """Return a page of a reader's imports without a video yet, the newest first.

    Admins see all imports. `after` has the time and the id of the last one of the previous page.
    """
    rows = Import.all().select_related("upload").order_by("-upload__created_at", "-id")
    if not seen_by.sees_all:
        rows = rows.filter(upload__owner_id=seen_by.account_id)
    if after is not None:
        created_at, import_id = after
        is_older = Q(upload__created_at__lt=created_at)
        rows = rows.filter(is_older | Q(upload__created_at=created_at, id__lt=import_id))
    return await rows.limit(limit)


async def run(import_id: UUID, tools: Tools) -> None:
    """Fetch a file and publish it, or record a permanent error. Resumes an earlier run.

    Raises `StorageUnavailable` if the job should run again, and `GivesWay` if it should run again
    after the imports that wait for its slot.
    """
    config = tools.config
    storage = tools.storage
    above_priority = slow_import_priority(tools.priority)
    is_overtaken = partial(import_waits, tools.job_id, above_priority)
    row = await find(import_id)
    if row is None or row.error_code is not None:
        return
    try:
        await record(row, started_at=row.started_at or await server_time())
        fetch = Fetch(row, config=config, storage=storage, is_overtaken=is_overtaken)
        await _make_video(row, fetch, config, storage)
    except Superseded:
        # Both runs have the same job, which the end of this one would finish.
        while await Import.exists(id=import_id, error_code=None):  # noqa: ASYNC110 - other processes
            await asyncio.sleep(WAIT_S)


async def cancel(row: Import, storage: Storage) -> None:
    """Delete an import and discard its upload. This also dismisses a failed import.

    A run notices it at its next beat. Raises `KeyAlreadyUsed` if the import has just become a
    video.
    """
    # The row goes first, because a run without its upload would record a failure.
    await Import.filter(id=row.id).delete()
    await uploads.discard(row.upload_id, storage=storage)


async def _make_video(row: Import, fetch: Fetch, config: Config, storage: Storage) -> None:
    """Fetch and publish; on a permanent error, record it and discard the upload."""
    try:
        await _act_as_owner(row.upload)
        await fetch.run()
        # Meanwhile the account may have been disabled, or its uploads given to another one.
        row.upload = await Upload.get_or_none(id=row.upload_id) or row.upload
        await _act_as_owner(row.upload)
        await _publish_import(row, config, storage)
    except errors.Unavailable:
        raise
    except errors.PortalError as exc:
        await _record_failure(row, exc)
        # The message may contain the address, which may be signed.
        fields = {"action": "import_failed", "video_id": str(row.id), "code": exc.code}
        logger.warning("Import failed", extra=fields)
        await uploads.discard(row.upload_id, storage=storage)


async def _record_failure(row: Import, exc: errors.PortalError) -> None:
    """Record why an import failed, with an event for its owner and admins."""
    async with transaction():
        await record(row, error_code=exc.code, error_message=exc.detail)
        data = {
            "id": str(row.id),
            "failure": {"code": exc.code, "message": exc.detail},
            "visibility": Visibility.PRIVATE.value,
            "signed_in_only": False,
            "owner_id": row.upload.owner_id and str(row.upload.owner_id),
        }
        await record_outcome(EventType.IMPORT_FAILED, row.id, data=data)


async def _act_as_owner(upload: Upload) -> None:
    """Act as the account of the import. Raises `NotAllowed` if it may no longer publish."""
    if upload.owner_id is None:
        return
    owner = (await fetch_principals([upload.owner_id])).get(upload.owner_id)
    if owner is None or not owner.may(Action.PUBLISH):
        raise errors.NotAllowed
    act_as(Actor("person", owner.account_id, owner.email))


async def _publish_import(row: Import, config: Config, storage: Storage) -> None:
    columns = dict(row.asked)
    visibility = Visibility(columns.pop("visibility"))
    passthrough = columns.pop("passthrough")
    columns["category_ids"] = tuple(columns["category_ids"])
    await publishing.publish(
        metadata.Submission(
            metadata=metadata.EditableMetadata(**columns),
            file_name=row.upload.file_name,
            key=row.upload.key,
            passthrough=passthrough,
            import_id=row.id,
        ),
        storage=storage,
        max_source_bytes=config.max_source_bytes,
        audience=Audience(visibility, owner_id=row.upload.owner_id),
        quota=Quota.of(config),
    )
