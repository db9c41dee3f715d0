"""Quotas of accounts: at the limit, over it, many at once, a day later, and whom they bind."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from api_client import RAW_FILE, answered, metadata, problem, published, run_sql, uploaded
from quart import Quart, Response
from signed_in import Sender, signed_in
from upload_client import start

from portal.database.account_models import Account
from portal.database.models import Caption, Rendition, Tombstone, Upload, Video
from portal.errors import VideoNotFound
from portal.transcoding.packaging.master import Kind
from portal.uploads.quotas import Quota
from portal.videos.deletion import delete_undoably, undo_deletion

PRESIGN = {"fileName": "a.mp4", "contentType": "video/mp4"}
SIZE = len(RAW_FILE)
DAY = timedelta(hours=24)
MANY = 20
pytestmark = [pytest.mark.usefixtures("olga"), pytest.mark.shared_app(database_pool_size=20)]


def limit(app: Quart, *, videos: int = 0, stored_bytes: int = 0) -> None:
    """Give each account these quotas from now on."""
    app.extensions["portal"] = replace(app.extensions["portal"], quota=Quota(videos, stored_bytes))


async def presign(sender: Sender) -> Response:
    return await sender.post("/api/videos/presign", json=PRESIGN)


async def create(sender: Sender, key: str) -> Response:
    return await sender.post("/api/videos", json=metadata(key))


async def no_more_videos(response: Response) -> dict[str, Any]:
    return await problem(response, 409, "video_quota_exceeded")


async def no_room(response: Response) -> dict[str, Any]:
    return await problem(response, 409, "storage_quota_exceeded")


async def age(app: Quart, by: timedelta) -> None:
    """Let so much time have passed since what was published."""
    url, passed = app.extensions["portal"].config.database_url, by.total_seconds()
    await run_sql(url, f"UPDATE videos SET created_at = created_at - interval '{passed} s'")
    await run_sql(url, f"UPDATE tombstones SET published_at = published_at - interval '{passed} s'")


async def test_day_takes_exactly_as_many_videos_as_it_may(app: Quart, edith: Account) -> None:
    limit(app, videos=3)
    sender = await signed_in(app, edith)
    keys = [await uploaded(sender) for _ in range(5)]
    assert [(await create(sender, key)).status_code for key in keys] == [201, 201, 201, 409, 409]
    refusal = await no_more_videos(await presign(sender))
    assert (refusal["limit"], refusal["used"]) == (3, 3)
    first = await Video.all().order_by("created_at").first()
    assert first is not None
    free_at = datetime.fromisoformat(refusal["freeAt"])
    assert free_at == first.created_at + DAY
    # Large files, too, can't begin; one that has begun may go on.
    assert (await start(sender, keys[3], 5)).status_code == 409
    # What was refused is kept until then: the janitor removes what was idle for a day.
    await Upload.filter(key=keys[3]).update(created_at=datetime.now(UTC) - timedelta(hours=23))
    await no_more_videos(await create(sender, keys[3]))
    kept = await Upload.get(key=keys[3])
    assert kept.active_at is not None
    assert kept.active_at + DAY >= free_at
    await age(app, DAY)
    assert (await create(sender, keys[3])).status_code == 201


async def test_deleted_video_counts_until_its_day_is_over_but_takes_no_room(
    app: Quart, edith: Account
) -> None:
    limit(app, videos=1, stored_bytes=SIZE)
    sender = await signed_in(app, edith)
    video = await published(sender)
    assert (await sender.ask("DELETE", f"/api/videos/{video['id']}")).status_code == 202
    assert (await no_more_videos(await presign(sender)))["used"] == 1
    await age(app, DAY)
    await published(sender)
    assert await Tombstone.filter(owner_id=edith.id).count() == 1


async def test_twenty_at_once_publish_as_many_as_the_day_takes(app: Quart, edith: Account) -> None:
    limit(app, videos=7)
    sender = await signed_in(app, edith)
    keys = [await uploaded(sender) for _ in range(MANY)]
    answers = await asyncio.gather(*(create(sender, key) for key in keys))
    assert sorted(it.status_code for it in answers) == [*[201] * 7, *[409] * 13]
    assert await Video.all().count() == 7
    storage = app.extensions["portal"].storage
    assert all([await storage.list_some(key) for key in keys])


async def test_room_is_used_up_to_the_last_byte(app: Quart, edith: Account) -> None:
    limit(app, stored_bytes=SIZE)
    sender = await signed_in(app, edith)
    too_large = await uploaded(sender, RAW_FILE + b"!")
    refusal = await no_room(await create(sender, too_large))
    assert (refusal["limit"], refusal["used"]) == (SIZE, 0)
    assert not await app.extensions["portal"].storage.list_some(too_large)
    await problem(await create(sender, too_large), 409, "upload_not_found")
    # A large file that does not fit does not begin, and to ask again is no second upload.
    key = (await answered(await presign(sender)))["key"]
    await no_room(await start(sender, key, SIZE + 1))
    assert (await start(sender, key, SIZE)).status_code == 201
    upload = await answered(await start(sender, key, SIZE))
    await no_room(await presign(sender))
    # One that is given up frees its room.
    assert (await sender.ask("DELETE", f"/api/uploads/{upload['uploadId']}")).status_code == 204
    await published(sender)
    refusal = await no_room(await presign(sender))
    assert (refusal["limit"], refusal["used"]) == (SIZE, SIZE)


async def test_renditions_and_captions_take_room(app: Quart, edith: Account) -> None:
    limit(app, stored_bytes=2 * SIZE + 109)
    sender = await signed_in(app, edith)
    await published(sender)
    made = {"kind": Kind.VIDEO, "name": "360p", "position": 0, "size_bytes": 100}
    await Rendition.create(video=await Video.get(), **made)
    track = {"language": "en", "label": "English", "source": "upload", "size_bytes": 10}
    await Caption.create(video=await Video.get(), **track)
    key = await uploaded(sender)
    assert (await no_room(await create(sender, key)))["used"] == SIZE + 110


async def test_room_of_a_deletion_is_free_at_once_and_only_then_final(
    app: Quart, edith: Account
) -> None:
    limit(app, stored_bytes=3 * SIZE)
    sender = await signed_in(app, edith)
    first, second = [UUID((await published(sender))["id"]) for _ in range(2)]
    await delete_undoably(first)
    await published(sender)
    await undo_deletion(first)
    await delete_undoably(first)
    await delete_undoably(second)
    await published(sender)
    for video_id in (first, second):
        with pytest.raises(VideoNotFound):
            await undo_deletion(video_id)
    assert await Video.present().count() == 2


async def test_open_portal_has_no_quotas(app: Quart) -> None:
    await Account.all().delete()
    limit(app, videos=1, stored_bytes=1)
    for _ in range(2):
        await published(Sender(app))
