"""Imports: files that the portal fetches from other servers, to make videos of them.

What has arrived is in storage, as the parts of an upload. A fetch that broke off goes on after the
last whole part, if the server still has the same version of the file and sends ranges of it, else
it begins anew. The row ends in the transaction that publishes the video, or with an error; either
way a job that is run once more finds that there is nothing left to do. Of two runs at a time the
later one goes on.
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import asdict
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit
from uuid import UUID, uuid4

import aiohttp

from portal import __version__, errors
from portal.accounts.people import fetch_principals
from portal.accounts.permissions import Action, Audience
from portal.config import Config
from portal.database.connection import server_time, transaction
from portal.database.models import Upload, Visibility
from portal.database.work_models import Import
from portal.events.log import Actor, act_as
from portal.events.outgoing import address_fault, open_session
from portal.queue.app import Queue
from portal.queue.enqueue import defer_import
from portal.retry import Backoff
from portal.storage.bucket import Storage
from portal.storage.calls import MultipartMissing, StorageCondition
from portal.storage.objects import (
    MAX_FILE_BYTES,
    MAX_UNKNOWN_BYTES,
    part_size_bytes,
    size_of_part,
    upload_id,
)
from portal.text import error_words
from portal.uploads import service as uploads
from portal.uploads.quotas import Quota
from portal.videos import metadata, publishing

logger = logging.getLogger(__name__)

TIMEOUT_S = 6 * 3600
IDLE_S = 60
MAX_REDIRECTS = 5
# In a row, without a whole part in between.
TRIES = 5
BACKOFF = Backoff(first_s=1.0, cap_s=30.0)
# Of an answer that ends too early, and of addresses and headers that make no sense.
BROKEN_OFF = (aiohttp.ClientError, OSError, EOFError, ValueError)
# Storage has lost what had arrived, as the embedded server does at a restart.
LOST = (StorageCondition, errors.UploadGone, errors.UploadNotStarted, errors.PartsMissing)
# What an MP4 or QuickTime file begins with: a box's size and one of these types.
FIRST_BOXES = frozenset({b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"})
TYPES = {extension: it for it, usual in metadata.EXTENSIONS.items() for extension in usual}
OTHER_NAME = "video.mp4"
WAIT_S = 10


class Superseded(Exception):
    """The import was cancelled, or another run of its job goes on with it."""


class ImportUnreachable(errors.PortalError, status=422, code="import_unreachable"):
    """The file could not be fetched from its address. Check the address, then import it again."""


class ImportNotVideo(errors.PortalError, status=422, code="import_not_video"):
    """What the address leads to is no MP4 or QuickTime file."""


class ImportTooLarge(errors.PortalError, status=422, code="import_too_large"):
    """The file is larger than this portal takes. Import a smaller one."""


async def begin(
    url: str,
    said: metadata.EditableMetadata,
    *,
    audience: Audience,
    passthrough: str,
    quota: Quota,
    queue: Queue,
) -> UUID:
    """Have a file fetched and published; returns the id that its video will have.

    Raises `VideoQuotaExceeded` or `StorageQuotaExceeded` where nothing could be published now.
    """
    name = _file_name([unquote(urlsplit(url).path.rpartition("/")[2])])
    upload = await publishing.begin_upload(
        name, TYPES[_extension(name)], owner_id=audience.owner_id, quota=quota
    )
    more = {"visibility": audience.visibility, "passthrough": passthrough}
    async with transaction():
        if not await publishing.issue_uploads([upload]):
            raise errors.NotSignedIn("Your account was removed.")
        found = await Import.create(
            id=uuid4(), upload_id=upload.key, url=url, asked={**asdict(said), **more}
        )
        await defer_import(found.id, audience.owner_id, queue)
    return found.id


async def find(import_id: UUID) -> Import | None:
    """An import that is not yet a video, with its upload."""
    return await Import.get_or_none(id=import_id).select_related("upload")


async def run(import_id: UUID, *, config: Config, storage: Storage, queue: Queue) -> None:
    """Fetch a file and publish it, or record why that can't be; goes on with what was begun.

    Raises `StorageUnavailable`, after which it is to be run again.
    """
    found = await find(import_id)
    if found is None or found.error_code is not None:
        return
    try:
        await _record(found, started_at=found.started_at or await server_time())
        await _make_video(found, config, storage, queue)
    except Superseded:
        # The other run's job is the same, which this end would end.
        while await Import.exists(id=import_id, error_code=None):  # noqa: ASYNC110 - other processes
            await asyncio.sleep(WAIT_S)


async def cancel(found: Import, *, storage: Storage) -> None:
    """End an import that is no video yet, and remove what has arrived; a run notices at a part.

    Raises `KeyAlreadyUsed` for one that has just become a video.
    """
    await uploads.discard(upload_id(found.upload_id), storage=storage)
    await Import.filter(id=found.id).delete()


async def _make_video(found: Import, config: Config, storage: Storage, queue: Queue) -> None:
    """Or record why there will be none, and remove what had arrived."""
    try:
        await _act_as_owner(found.upload)
        await _fetch(found, config, storage)
        await _publish(found, config, storage, queue)
    except errors.Unavailable:
        raise
    except errors.PortalError as exc:
        await _record(found, error_code=exc.code, error_message=exc.detail)
        told = {"action": "import_failed", "video_id": str(found.id), "code": exc.code}
        # Its words may have the address, which may be signed.
        logger.warning("Import failed", extra=told)
        await uploads.discard(upload_id(found.upload_id), storage=storage)


async def _record(found: Import, **values: Any) -> None:
    """Record how far an import is, unless it is no longer for this run."""
    values["active_at"] = await server_time()
    if not await Import.filter(id=found.id, active_at=found.active_at).update(**values):
        raise Superseded
    found.update_from_dict(values)


async def _act_as_owner(upload: Upload) -> None:
    """Raise `NotAllowed` unless whoever asked for the import may still publish."""
    if upload.owner_id is None:
        return
    owner = (await fetch_principals([upload.owner_id])).get(upload.owner_id)
    if owner is None or not owner.may(Action.PUBLISH):
        raise errors.NotAllowed
    act_as(Actor("person", owner.account_id, owner.email))


async def _fetch(found: Import, config: Config, storage: Storage) -> None:
    """Fetch what is missing, all of it or again; tries again when that breaks off."""
    failures = 0
    while True:
        before, now = found.received_bytes, await server_time()
        spent_s = (now - (found.started_at or now)).total_seconds()
        if spent_s >= TIMEOUT_S:
            raise ImportUnreachable(f"The file did not arrive within {TIMEOUT_S // 3600} hours.")
        try:
            if found.received_bytes != found.whole_bytes:
                async with (
                    open_session(
                        networks=config.outgoing_networks,
                        timeout_s=TIMEOUT_S - spent_s,
                        idle_s=IDLE_S,
                    ) as session,
                    await _open(found, session, config) as response,
                ):
                    await _receive(found, response, config, storage)
            await uploads.complete(upload_id(found.upload_id), storage=storage)
            return
        except (*BROKEN_OFF, *LOST) as exc:
            if isinstance(exc, LOST):
                await _record(found, received_bytes=0)
            failures = 1 if found.received_bytes > before else failures + 1
            if failures == TRIES:
                raise ImportUnreachable(
                    f"The file could not be fetched: {error_words(exc)}."
                ) from exc
            await asyncio.sleep(BACKOFF.pause_s(failures))


async def _open(
    found: Import, session: aiohttp.ClientSession, config: Config
) -> aiohttp.ClientResponse:
    """The answer that redirects lead to; each address is checked as the first one was."""
    headers = {"Accept-Encoding": "identity", "User-Agent": f"portal/{__version__}"}
    if found.received_bytes and found.validator and found.whole_bytes:
        headers |= {"Range": f"bytes={found.received_bytes}-", "If-Range": found.validator}
    url = found.url
    for _ in range(MAX_REDIRECTS + 1):
        if fault := address_fault(url, config):
            raise ImportUnreachable(f"The address leads to {url[:100]}. {fault}")
        response = await session.get(url, headers=headers, allow_redirects=False)
        if response.status in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
            return response
        response.release()
        if response.status >= 500 or response.status == HTTPStatus.TOO_MANY_REQUESTS:
            response.raise_for_status()
        location = response.headers.get("Location")
        if not 300 <= response.status < 400 or location is None:
            raise ImportUnreachable(f"The server answered with the status {response.status}.")
        url = urljoin(url, location)
    raise ImportUnreachable(f"There are more than {MAX_REDIRECTS} redirects.")


async def _receive(
    found: Import, response: aiohttp.ClientResponse, config: Config, storage: Storage
) -> None:
    """Put what is answered into storage, part by part."""
    if response.status == HTTPStatus.OK:
        await _begin(found, response, config, storage)
    key, whole_bytes = found.upload_id, found.whole_bytes or MAX_UNKNOWN_BYTES + 1
    expected = f"bytes {found.received_bytes}-{whole_bytes - 1}/{whole_bytes}"
    if response.status != HTTPStatus.OK and response.headers.get("Content-Range") != expected:
        raise ImportUnreachable("The server sends another part of the file than it was asked for.")
    upload = await uploads.find(upload_id(key))
    if upload is None or upload.multipart_id is None:
        raise MultipartMissing(key)
    while found.received_bytes < whole_bytes:
        number = found.received_bytes // part_size_bytes(whole_bytes) + 1
        wanted_bytes = size_of_part(number, whole_bytes)
        try:
            part = await response.content.readexactly(wanted_bytes)
        except asyncio.IncompleteReadError as exc:
            if found.whole_bytes:
                raise
            part = exc.partial
            whole_bytes = found.received_bytes + len(part)
        if number == 1 and part[4:8] not in FIRST_BOXES:
            raise ImportNotVideo
        received_bytes = found.received_bytes + len(part)
        if not found.whole_bytes:
            _require_size(received_bytes, MAX_UNKNOWN_BYTES, config)
            owner_id, quota = found.upload.owner_id, Quota.of(config)
            await uploads.grow(key, received_bytes, owner_id=owner_id, quota=quota)
        if part:
            await storage.multiparts.put_part(key, upload.multipart_id, number, part)
        await _record(found, received_bytes=received_bytes)
    await _record(found, whole_bytes=whole_bytes)


async def _begin(
    found: Import, response: aiohttp.ClientResponse, config: Config, storage: Storage
) -> None:
    """Begin anew with an answer that has the whole file."""
    size_bytes = response.content_length
    if size_bytes is None and response.headers.get("Transfer-Encoding") != "chunked":
        raise ImportUnreachable("The server doesn't tell the file's size (Content-Length).")
    _require_size(size_bytes or 1, MAX_FILE_BYTES, config)
    validator = response.headers.get("ETag", "")
    # A weak one is nothing to put parts together by (RFC 9110, section 13.1.5).
    if not validator.startswith('"'):
        validator = response.headers.get("Last-Modified", "")
    await _record(found, validator=validator, whole_bytes=size_bytes, received_bytes=0)
    key, owner_id, quota = found.upload_id, found.upload.owner_id, Quota.of(config)
    await uploads.give_up_parts(upload_id(key), storage=storage)
    await uploads.start(key, size_bytes or 1, storage=storage, owner_id=owner_id, quota=quota)
    said = response.content_disposition
    found.upload.file_name = _file_name([said.filename if said else None, found.upload.file_name])
    await found.upload.save(update_fields=["file_name"])


async def _publish(found: Import, config: Config, storage: Storage, queue: Queue) -> None:
    asked = dict(found.asked)
    visibility, passthrough = Visibility(asked.pop("visibility")), asked.pop("passthrough")
    said = metadata.EditableMetadata(**asked | {"category_ids": tuple(asked["category_ids"])})
    await publishing.publish(
        metadata.Submission(
            metadata=said,
            file_name=found.upload.file_name,
            key=found.upload_id,
            passthrough=passthrough,
            import_id=found.id,
        ),
        storage=storage,
        queue=queue,
        max_source_bytes=config.max_source_bytes,
        audience=Audience(visibility, owner_id=found.upload.owner_id),
        quota=Quota.of(config),
    )


def _require_size(size_bytes: int, most_bytes: int, config: Config) -> None:
    limit = min(config.max_source_bytes or most_bytes, most_bytes)
    if size_bytes > limit:
        raise ImportTooLarge(f"The file has {size_bytes:,} bytes; this portal takes {limit:,}.")


def _extension(name: str) -> str:
    return name.rpartition(".")[2].lower()


def _file_name(names: Iterable[str | None]) -> str:
    """The first that is the name of a file that can be published."""
    for name in names:
        is_good = name and len(name) <= metadata.MAX_FILE_NAME_LENGTH and _extension(name) in TYPES
        if name and is_good and not (metadata.file_name_fault(name) or metadata.text_fault(name)):
            return name
    return OTHER_NAME
