"""Quotas of accounts: at the limit, over it, many requests at once, and a day later."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from api_client import RAW_FILE, answered, metadata, problem, published, run_sql, uploaded
from page_rows import (
    READY,
    change_video,
    make_attempt,
    make_cut,
    make_rendition,
    make_replacement,
    make_row,
)
from quart import Quart, Response
from signed_in import Sender
from upload_client import start

from portal.database.account_models import Account
from portal.database.models import (
    Attempt,
    Caption,
    Rendition,
    Tombstone,
    Upload,
    Version,
    Video,
    VideoStatus,
)
from portal.database.work_models import Download
from portal.errors import VideoNotFound
from portal.features.deletion.service import delete_undoably, undo_deletion
from portal.films.versions import WITHDRAWN_AT
from portal.transcoding.packaging.master import Kind
from portal.uploads.quotas import Quota, Usage, usage_of

PRESIGN = {"fileName": "a.mp4", "contentType": "video/mp4"}
SIZE = len(RAW_FILE)
DAY = timedelta(hours=24)
MANY = 20
pytestmark = [pytest.mark.usefixtures("olga"), pytest.mark.shared_app(database_pool_size=20)]


def limit(app: Quart, *, videos: int = 0, stored_bytes: int = 0) -> None:
    """Set the quotas of each account."""
    app.extensions["portal"] = replace(app.extensions["portal"], quota=Quota(videos, stored_bytes))


async def presign(sender: Sender) -> Response:
    return await sender.post("/api/videos/presign", json=PRESIGN)


async def create(sender: Sender, key: str) -> Response:
    return await sender.post("/api/videos", json=metadata(key))


async def refused_video(response: Response) -> dict[str, Any]:
    return await problem(response, 409, "video_quota_exceeded")


async def refused_bytes(response: Response) -> dict[str, Any]:
    return await problem(response, 409, "storage_quota_exceeded")


async def usage(account: Account) -> Usage:
    return (await usage_of([account.id], Quota(stored_bytes=1)))[account.id]


async def age(app: Quart, by: timedelta) -> None:
    """Move the publication of all videos back in time."""
    url = app.extensions["portal"].config.database_url
    age_sql = f"interval '{by.total_seconds()} s'"
    await run_sql(url, f"UPDATE publications SET created_at = created_at - {age_sql}")
    await run_sql(url, f"UPDATE tombstones SET published_at = published_at - {age_sql}")


async def test_account_publishes_up_to_its_quota_in_24_hours(app: Quart, editor: Sender) -> None:
    limit(app, videos=3)
    keys = [await uploaded(editor) for _ in range(5)]
    assert [(await create(editor, key)).status_code for key in keys] == [201, 201, 201, 409, 409]
    refusal = await refused_video(await presign(editor))
    assert (refusal["limit"], refusal["used"]) == (3, 3)
    first = await Video.all().order_by("created_at").first()
    assert first is not None
    free_at = datetime.fromisoformat(refusal["freeAt"])
    assert free_at == first.created_at + DAY
    # Uploads in parts are refused, too.
    assert (await start(editor, keys[3], 5)).status_code == 409
    # The file of the refused video is kept until then: it is not idle for a day.
    await Upload.filter(key=keys[3]).update(created_at=datetime.now(UTC) - timedelta(hours=23))
    await refused_video(await create(editor, keys[3]))
    upload = await Upload.get(key=keys[3])
    assert upload.active_at is not None
    assert upload.active_at + DAY >= free_at
    await age(app, DAY)
    assert (await create(editor, keys[3])).status_code == 201


async def test_deleted_video_counts_for_24_hours_but_takes_no_storage(
    app: Quart, editor: Sender, edith: Account
) -> None:
    limit(app, videos=1, stored_bytes=SIZE)
    video = await published(editor)
    assert (await editor.ask("DELETE", f"/api/videos/{video['id']}")).status_code == 202
    assert (await refused_video(await presign(editor)))["used"] == 1
    await age(app, DAY)
    await published(editor)
    assert await Tombstone.filter(owner_id=edith.id).count() == 1


async def test_concurrent_creations_publish_up_to_the_quota(app: Quart, editor: Sender) -> None:
    limit(app, videos=7)
    keys = [await uploaded(editor) for _ in range(MANY)]
    responses = await asyncio.gather(*(create(editor, key) for key in keys))
    assert sorted(response.status_code for response in responses) == [*[201] * 7, *[409] * 13]
    assert await Video.all().count() == 7
    storage = app.extensions["portal"].storage
    assert all([await storage.list_some(key) for key in keys])


async def test_storage_quota_can_be_used_to_the_last_byte(app: Quart, editor: Sender) -> None:
    limit(app, stored_bytes=SIZE)
    too_large = await uploaded(editor, RAW_FILE + b"!")
    refusal = await refused_bytes(await create(editor, too_large))
    assert (refusal["limit"], refusal["used"]) == (SIZE, 0)
    assert not await app.extensions["portal"].storage.list_some(too_large)
    await problem(await create(editor, too_large), 409, "upload_not_found")
    # An upload in parts that does not fit is refused. A repeated start doesn't count twice.
    key = (await answered(await presign(editor)))["key"]
    await refused_bytes(await start(editor, key, SIZE + 1))
    assert (await start(editor, key, SIZE)).status_code == 201
    upload = await answered(await start(editor, key, SIZE))
    await refused_bytes(await presign(editor))
    # A discarded upload frees its room.
    assert (await editor.ask("DELETE", f"/api/uploads/{upload['uploadId']}")).status_code == 204
    # An upload of unknown size counts as it grows.
    key = (await answered(await presign(editor)))["key"]
    growing = await answered(await start(editor, key, None), 201)
    parts = f"/api/uploads/{growing['uploadId']}/parts"
    await answered(await editor.ask("POST", f"{parts}/1?sizeBytes={SIZE}"))
    await refused_bytes(await editor.ask("POST", f"{parts}/1?sizeBytes={SIZE + 1}"))
    await refused_bytes(await presign(editor))
    await editor.ask("DELETE", f"/api/uploads/{growing['uploadId']}")
    await published(editor)
    refusal = await refused_bytes(await presign(editor))
    assert (refusal["limit"], refusal["used"]) == (SIZE, SIZE)


async def test_shared_file_counts_once_with_renditions_and_captions(edith: Account) -> None:
    video = await make_row(owner_id=edith.id, size_bytes=SIZE, **READY)
    await make_cut(video)
    key = video.storage_key
    other = await make_row(2, owner_id=edith.id, storage_key=key, size_bytes=SIZE, **READY)
    await make_rendition(other, "360p", size_bytes=100)
    track = {"language": "en", "label": "English", "source": "upload", "size_bytes": 10}
    await Caption.create(video=other, **track)
    for deleted, sizes in (
        (None, (SIZE + 110, 0)),
        (video, (SIZE + 110, 0)),
        (other, (0, SIZE + 110)),
    ):
        if deleted:
            await delete_undoably(deleted.id)
        used = await usage(edith)
        assert (used.stored_bytes, used.undoable_bytes) == sizes


async def test_copy_of_a_video_takes_room_for_its_renditions(app: Quart, editor: Sender) -> None:
    copies = f"/api/videos/{(await ready_film(editor)).id}/copies"
    body = {"keep": [{"startSeconds": 0, "endSeconds": 5}], "title": "New"}
    limit(app, stored_bytes=SIZE + 2199)
    assert (await refused_bytes(await editor.post(copies, json=body)))["used"] == SIZE + 1000
    limit(app, videos=1, stored_bytes=SIZE + 2200)
    await refused_video(await editor.post(copies, json=body))
    limit(app, stored_bytes=SIZE + 2200)
    await answered(await editor.post(copies, json=body), 201)


async def ready_film(sender: Sender) -> Video:
    """Publish a video with a rendition of 1,000 bytes in 10 segments."""
    video_id = (await published(sender))["id"]
    await change_video(video_id, status=VideoStatus.READY, published_attempt=1, duration_s=9.0)
    video = await Video.get(id=video_id)
    await make_rendition(video, "360p", size_bytes=1000, segment_count=10)
    return video


async def test_parallel_copies_pass_as_far_as_they_fit(
    app: Quart, editor: Sender, edith: Account
) -> None:
    # Each copy has the film's rendition, and at most two segments of its own.
    limit(app, stored_bytes=SIZE + 1000 + 3 * 1200 + 1199)
    video = await ready_film(editor)
    body = {"keep": [{"startSeconds": 0, "endSeconds": 5}], "title": "New"}
    copies = f"/api/videos/{video.id}/copies"
    responses = await asyncio.gather(*(editor.post(copies, json=body) for _ in range(MANY)))
    statuses = [response.status_code for response in responses]
    assert (statuses.count(201), statuses.count(409)) == (3, MANY - 3)
    assert await Video.all().count() == 4
    # The film counts once when it is copied.
    used = await usage(edith)
    copy = await Video.filter(base_id=video.version_id).first()
    assert copy is not None
    film = await make_cut(copy)
    await Version.filter(id=film.id).update(base_id=None, keep=None)
    rendition = {"kind": Kind.VIDEO, "name": "360p", "position": 0, "state": "complete"}
    await Rendition.create(version=film, size_bytes=1000, segment_count=10, **rendition)
    for base_id in (video.version_id, film.id):
        await Version.filter(id=copy.version_id).update(base_id=base_id)
        assert await usage(edith) == used


async def test_cut_takes_room_until_it_gives_way_or_is_removed(app: Quart, editor: Sender) -> None:
    limit(app, stored_bytes=SIZE + 1000 + 399)
    video = await ready_film(editor)
    cuts = f"/api/videos/{video.id}/cuts"

    async def cut(end: int) -> Response:
        return await editor.ask(
            "PUT", cuts, json={"keep": [{"startSeconds": 0, "endSeconds": end}]}
        )

    # No worker has begun the first one, which leaves nothing.
    await answered(await cut(5), 202)
    await answered(await cut(6), 202)
    [pending] = await Version.filter(base_id=video.version_id)
    attempt = await make_attempt(video)
    await Attempt.filter(id=attempt.id).update(version_id=pending.id)
    refusal = await refused_bytes(await cut(7))
    assert (refusal["limit"], refusal["used"]) == (SIZE + 1399, SIZE + 1200)
    assert await Version.filter(base_id=video.version_id) == [pending]


async def test_file_for_download_takes_room_of_the_account_that_requests_it(
    app: Quart, editor: Sender
) -> None:
    video = await ready_film(editor)
    url = f"/api/videos/{video.id}/downloads/360p.mp4"
    limit(app, stored_bytes=SIZE + 1999)
    await refused_bytes(await editor.post(url))
    limit(app, stored_bytes=SIZE + 2000)
    await answered(await editor.post(url), 202)
    await answered(await editor.post(url), 202)
    await refused_bytes(await presign(editor))
    # Other people's requests don't count for the owner.
    await Download.all().update(requester="192.0.2.1")
    await answered(await presign(editor))


async def test_failed_and_withdrawn_replacements_take_no_room(edith: Account) -> None:
    video = await make_row(owner_id=edith.id, size_bytes=SIZE, **READY)
    new = Version.filter(id=(await make_replacement(video)).id)
    states = [
        ({"status": VideoStatus.PROCESSING, "size_bytes": 7}, SIZE + 7),
        ({"status": VideoStatus.FAILED}, SIZE),
        ({"retired_at": WITHDRAWN_AT}, SIZE),
        ({"status": VideoStatus.READY, "retired_at": datetime.now(UTC)}, SIZE + 7),
    ]
    for columns, stored_bytes in states:
        await new.update(**columns)
        assert (await usage(edith)).stored_bytes == stored_bytes


async def test_undo_of_a_deletion_ends_when_its_room_is_taken(app: Quart, editor: Sender) -> None:
    limit(app, stored_bytes=3 * SIZE)
    first, second = [UUID((await published(editor))["id"]) for _ in range(2)]
    await delete_undoably(first)
    await published(editor)
    await undo_deletion(first)
    await delete_undoably(first)
    await delete_undoably(second)
    await published(editor)
    for video_id in (first, second):
        with pytest.raises(VideoNotFound):
            await undo_deletion(video_id)
    assert await Video.present().count() == 2


async def test_open_portal_has_no_quotas(app: Quart) -> None:
    await Account.all().delete()
    limit(app, videos=1, stored_bytes=1)
    for _ in range(2):
        await published(Sender(app))
