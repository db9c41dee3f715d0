"""The janitor removes what nobody needs, all of it in the end, and nothing else, whatever comes."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import uuid4

import pytest
from aged_videos import (
    age_uploads,
    ended_attempt,
    hence,
    put_output,
    tidy,
    video_with_history,
)
from api_client import RAW_FILE, Client, metadata, presign, problem, published, put, uploaded
from stored_objects import stored
from upload_client import content, look, multipart_uploads, send_part, sign, started

from portal.config import Config
from portal.database.models import Attempt, Deletion, Outcome, Tombstone, Upload, Video, VideoStatus
from portal.maintenance.janitor import Cutoffs, Tidied
from portal.processing import removal
from portal.storage.calls import ObjectMissing
from portal.videos import deletion
from portal.web.composition import WebContext


async def is_stored(resources: WebContext, key: str) -> bool:
    try:
        await resources.storage.head(key)
    except ObjectMissing:
        return False
    return True


async def remove_now(video: Video, resources: WebContext) -> None:
    """Remove a deleted video's files for good, as if enough time had passed."""
    await Deletion.all().update(settles_at=datetime.now(UTC))
    await removal.remove_files(video.id, storage=resources.storage)


async def test_file_that_nobody_published_goes_after_a_day(
    client: Client, resources: WebContext
) -> None:
    old = await uploaded(client)
    await age_uploads(resources, "24 hours 1 minute")
    young = await uploaded(client)

    assert (await tidy(resources)).uploads == 1

    assert not await is_stored(resources, old)
    assert not await Upload.exists(key=old)
    await problem(await client.post("/api/videos", json=metadata(old)), 422, "validation_failed")
    assert (await client.post("/api/videos", json=metadata(young))).status_code == 201


async def test_upload_in_parts_goes_a_day_after_its_last_sign_of_life(
    client: Client, resources: WebContext
) -> None:
    active, idle = await started(client, 3), await started(client, 3)
    await send_part(client, idle, 1, b"abc")
    await age_uploads(resources, "8 days")
    # Someone goes on with the one: signing a part is enough, it may be on its way for long.
    await sign(client, active, 1)

    assert (await tidy(resources)).uploads == 1

    assert (await look(client, active))["state"] == "uploading"
    assert await multipart_uploads(resources, active["key"])
    await problem(await client.get(f"/api/uploads/{idle['uploadId']}"), 404, "upload_not_issued")
    assert await multipart_uploads(resources, idle["key"]) == []
    assert (await tidy(resources, now=hence(hours=25))).uploads == 1
    assert await multipart_uploads(resources, active["key"]) == []


async def test_nothing_goes_whose_signed_address_may_still_be_valid(config: Config) -> None:
    now = datetime.now(UTC)
    for ttl_s, age in ((60, timedelta(days=1)), (604_800, timedelta(days=7, hours=6))):
        cutoffs = Cutoffs.at(now, replace(config, upload_url_ttl_s=ttl_s))
        assert now - cutoffs.idle_since == age


async def test_published_file_stays_however_old(client: Client, resources: WebContext) -> None:
    record = await published(client)
    await age_uploads(resources, "3 years")
    assert await tidy(resources, now=hence(days=400)) == Tidied()
    assert await content(resources, record["storageKey"]) == RAW_FILE


async def test_discard_that_broke_off_is_finished_at_once(
    client: Client, resources: WebContext
) -> None:
    upload = await started(client, 3)
    await send_part(client, upload, 1, b"abc")
    await Upload.filter(key=upload["key"]).update(is_discarded=True)
    assert (await tidy(resources)).uploads == 1
    assert await multipart_uploads(resources, upload["key"]) == []
    # The key stays void for as long as its address may be used.
    assert (await Upload.get(key=upload["key"])).is_discarded
    await tidy(resources, now=hence(hours=25))
    assert not await Upload.exists(key=upload["key"])


async def test_file_put_to_a_discarded_key_goes_too(client: Client, resources: WebContext) -> None:
    upload = await presign(client)
    await client.delete(f"/api/uploads/{upload['key'][7:39]}")
    assert await put(upload["uploadUrl"], b"late") == 200
    await tidy(resources, now=hence(hours=25))
    assert not await is_stored(resources, upload["key"])


async def test_multipart_uploads_that_nobody_recorded_are_aborted(
    client: Client, resources: WebContext
) -> None:
    """As the portal leaves them that is killed between creating one and recording it."""
    storage = resources.storage
    recorded, video = await started(client, 3), await published(client)
    strange = f"videos/{uuid4().hex}.mp4"
    keys = (recorded["key"], video["storageKey"], strange)
    [extra, of_video, foreign] = [
        await storage.multiparts.create(key, content_type="video/mp4") for key in keys
    ]
    assert (await tidy(resources)).multiparts == 0, "one of them may be recorded this moment"

    assert (await tidy(resources, now=hence(hours=2))).multiparts == 2

    left = await multipart_uploads(resources, recorded["key"])
    assert left
    assert extra not in left
    assert of_video not in await multipart_uploads(resources, video["storageKey"])
    # Another portal may use the same bucket: only `portal doctor` shows it.
    assert await multipart_uploads(resources, strange) == [foreign]
    await storage.multiparts.abort(strange, foreign)


async def test_output_of_superseded_attempts_goes_and_nothing_else(resources: WebContext) -> None:
    video, used, unused = await video_with_history(resources)
    assert await stored(resources.storage, video.id) == sorted(used + unused)

    done = await tidy(resources)

    assert (done.attempts, done.objects) == (1, len(unused))
    assert await stored(resources.storage, video.id) == used
    assert (await tidy(resources)).objects == 0
    assert not await Attempt.filter(is_swept=False).exists()


async def test_failed_video_keeps_its_source_only(client: Client, resources: WebContext) -> None:
    record = await published(client)
    video = await Video.get(id=record["id"])
    await Video.filter(id=video.id).update(status=VideoStatus.FAILED)
    await ended_attempt(video, 1, Outcome.FAILED)
    await put_output(resources, video, 1, "master.m3u8", "360p/00000.m4s")
    await tidy(resources)
    assert await stored(resources.storage, video.id) == []
    assert await is_stored(resources, video.storage_key)


@pytest.mark.parametrize("changes", [
    {"status": VideoStatus.PROCESSING, "published_attempt": None},
    {"complete_job_id": 7},
])  # fmt: skip
async def test_nothing_is_swept_while_the_video_has_work_to_come(
    resources: WebContext, changes: dict[str, object]
) -> None:
    video, used, unused = await video_with_history(resources)
    await Video.filter(id=video.id).update(**changes)
    assert (await tidy(resources)).objects == 0
    assert await stored(resources.storage, video.id) == sorted(used + unused)


async def test_file_put_after_its_video_was_deleted_goes_too(
    client: Client, resources: WebContext
) -> None:
    upload = await presign(client)
    assert await put(upload["uploadUrl"], RAW_FILE) == 200
    response = await client.post("/api/videos", json=metadata(upload["key"]))
    video = await Video.get(id=(await response.get_json())["id"])
    await deletion.delete_video(video.id, queue=resources.queue)
    await removal.remove_files(video.id, storage=resources.storage)
    assert await stored(resources.storage, video.id, upload["key"]) == []

    assert await put(upload["uploadUrl"], b"once more") == 200
    late = await put_output(resources, video, 1, "360p/00009.m4s")
    assert (await tidy(resources)).deleted_videos == 0
    assert (await tidy(resources, now=hence(hours=25))).deleted_videos == 1
    await remove_now(video, resources)

    assert await stored(resources.storage, video.id, upload["key"]) == []
    assert not await is_stored(resources, late[0])
    assert not await Tombstone.exists()


async def test_file_that_replaced_a_published_one_goes_once_its_address_expired(
    client: Client, resources: WebContext
) -> None:
    """The quota counts what was published, not what was put to the address afterwards."""
    uploads = [await presign(client) for _ in range(3)]
    for upload in uploads:
        assert await put(upload["uploadUrl"], RAW_FILE) == 200
        response = await client.post("/api/videos", json=metadata(upload["key"]))
        assert response.status_code == 201
    untouched, replaced, deleted = uploads
    video = await Video.get(upload_id=deleted["key"])
    await deletion.delete_video(video.id, queue=resources.queue)
    await remove_now(video, resources)
    for upload in (replaced, deleted):
        assert await put(upload["uploadUrl"], RAW_FILE * 6) == 200
    assert (await tidy(resources)).replaced_sources == 0

    assert (await tidy(resources, now=hence(minutes=61))).replaced_sources == 2

    are_left = [await is_stored(resources, upload["key"]) for upload in uploads]
    assert are_left == [True, False, False]
    # What began to arrive at the last moment is found as well, and nothing is asked for ever.
    await resources.storage.put(replaced["key"], b"late", content_type="video/mp4")
    assert (await tidy(resources, now=hence(hours=25))).replaced_sources == 1
    assert (await Upload.get(key=untouched["key"])).is_compared


async def test_objects_of_others_in_the_bucket_are_left_alone(resources: WebContext) -> None:
    """A database that is empty by mistake must not cost the files of the right one."""
    foreign = [f"videos/{uuid4().hex}.mp4", f"hls/{uuid4()}/1/master.m3u8"]
    for key in foreign:
        await resources.storage.put(key, b"x", content_type="video/mp4")
    assert await tidy(resources, now=hence(days=400)) == Tidied()
    for key in foreign:
        assert await is_stored(resources, key)
        await resources.storage.delete(key)


# Races. Each may end either way, but never with a video whose file is gone.


async def test_upload_published_this_moment_is_whole_or_refused(
    client: Client, resources: WebContext, rng: Random
) -> None:
    keys = [await uploaded(client) for _ in range(4)]
    await age_uploads(resources, "2 days")

    async def publish_soon(key: str) -> int:
        await asyncio.sleep(rng.uniform(0, 0.05))
        # The embedded server breaks off reading what is removed; clients ask again.
        for _ in range(20):
            response = await client.post("/api/videos", json=metadata(key))
            if response.status_code != 503:
                break
            await asyncio.sleep(0.1)
        return response.status_code

    async def tidy_soon() -> None:
        await asyncio.sleep(rng.uniform(0, 0.04))
        await tidy(resources)

    statuses, *_ = await asyncio.gather(
        asyncio.gather(*map(publish_soon, keys)), tidy_soon(), tidy_soon()
    )
    for key, status in zip(keys, statuses, strict=True):
        assert status in (201, 409, 422)
        assert await is_stored(resources, key) == (status == 201)
        assert await Video.exists(upload_id=key) == (status == 201)
