"""The janitor removes everything that is no longer needed, and nothing else."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import AsyncMock
from uuid import uuid4

import pytest
from aged_videos import LONG_AGO, ended_attempt, hence, put_master, put_output, tidy
from api_client import (
    RAW_FILE,
    Client,
    answered,
    metadata,
    presign,
    problem,
    published,
    put,
    run_sql,
    uploaded,
)
from audit_lines import add_lines, lines
from page_rows import READY, change_video, make_cut, make_rendition, make_replacement, make_row
from passes import tools_for
from stored_objects import stored
from upload_client import look, multipart_uploads, send_part, sign, started

from portal.config import Config
from portal.database.connection import transaction
from portal.database.event_models import Event
from portal.database.models import (
    Attempt,
    Deletion,
    Outcome,
    Tombstone,
    Upload,
    Version,
    Video,
    VideoStatus,
)
from portal.features import VERSION_HOOKS
from portal.features.deletion import service as deletion
from portal.films import attempts, removal
from portal.films.versions import WITHDRAWN_AT, make_current
from portal.http.composition import WebContext
from portal.maintenance import janitor
from portal.maintenance.janitor import Cutoffs
from portal.storage.calls import StorageRefused
from portal.uploads import service as uploads
from portal.videos.poster import poster_key

pytestmark = pytest.mark.shared_app()


async def is_stored(resources: WebContext, key: str) -> bool:
    return bool(await resources.storage.list_some(key))


async def age_uploads(resources: WebContext, interval: str) -> None:
    """Move the creation and the last activity of all uploads into the past."""
    await run_sql(
        resources.config.database_url,
        f"UPDATE uploads SET created_at = now() - interval '{interval}',"
        f" active_at = active_at - interval '{interval}'",
    )


async def created(client: Client) -> tuple[Video, str]:
    """Create a video; return it with the upload URL of its file."""
    upload = await presign(client)
    assert await put(upload["uploadUrl"], RAW_FILE) == 200
    record = await answered(await client.post("/api/videos", json=metadata(upload["key"])), 201)
    return await Video.get(id=record["id"]), upload["uploadUrl"]


async def remove_now(video: Video, resources: WebContext) -> None:
    """Remove a deleted video's files as if enough time had passed."""
    await Deletion.all().update(settles_at=datetime.now(UTC))
    await removal.remove_files(video.id, tools_for(resources))
    assert await stored(resources.storage, video.id, video.storage_key) == []


async def test_uploads_without_a_video_are_removed_a_day_after_their_last_activity(
    client: Client, resources: WebContext
) -> None:
    record = await published(client)
    old = await uploaded(client)
    active = await started(client, 3)
    idle = await started(client, 3)
    await send_part(client, idle, 1, b"abc")
    await age_uploads(resources, "24 hours 1 minute")
    # Signing a part counts as activity, because its upload may take long.
    await sign(client, active, 1)
    young = await uploaded(client)

    assert (await tidy(resources))["uploads"] == 2

    assert not await is_stored(resources, old)
    await problem(await client.post("/api/videos", json=metadata(old)), 422, "validation_failed")
    await problem(await client.get(f"/api/uploads/{idle['uploadId']}"), 404, "upload_not_issued")
    assert await multipart_uploads(resources, idle["key"]) == []
    assert (await look(client, active))["state"] == "uploading"
    await answered(await client.post("/api/videos", json=metadata(young)), 201)
    assert (await tidy(resources, now=hence(hours=25)))["uploads"] == 1
    assert await multipart_uploads(resources, active["key"]) == []
    await tidy(resources, now=hence(days=400))
    assert await resources.storage.get(record["storageKey"]) == RAW_FILE


def test_uploads_are_kept_while_their_signed_url_may_be_valid(config: Config) -> None:
    now = datetime.now(UTC)
    for ttl_s, age in ((60, timedelta(days=1)), (604_800, timedelta(days=7, hours=6))):
        cutoffs = Cutoffs.at(now, replace(config, upload_url_ttl_s=ttl_s))
        assert now - cutoffs.idle_since == age


async def test_discarded_upload_is_removed_with_files_that_arrive_later(
    client: Client, resources: WebContext
) -> None:
    broken_off = await started(client, 3)
    late = await presign(client)
    await Upload.filter(key=broken_off["key"]).update(is_discarded=True)
    await client.delete(f"/api/uploads/{late['key'][7:39]}")
    assert await put(late["uploadUrl"], b"late") == 200

    assert (await tidy(resources))["uploads"] == 1
    assert await multipart_uploads(resources, broken_off["key"]) == []
    # The row is kept as long as the signed URL of its key may be used.
    assert (await Upload.get(key=broken_off["key"])).is_discarded
    await tidy(resources, now=hence(hours=25))
    assert not await Upload.exists(key=broken_off["key"])
    assert not await is_stored(resources, late["key"])


async def with_history(resources: WebContext) -> tuple[Video, list[str], list[str]]:
    """Create a ready video with four attempts; return it with its used and its unused keys.

    The first attempt failed, the second was lost, the third was published, the fourth completed it.
    """
    video = await make_row(10_000, **{**READY, "published_attempt": 3})
    outcomes = (Outcome.FAILED, None, Outcome.PUBLISHED, Outcome.PUBLISHED)
    for number, outcome in enumerate(outcomes, start=1):
        await ended_attempt(video, number, outcome)
    await make_rendition(video, "360p", attempt_number=3)
    await make_rendition(video, "720p", attempt_number=4)
    uris = ("360p/playlist.m3u8", "../4/720p/playlist.m3u8")
    used = [await put_master(resources, video, *uris)]
    used += await put_output(resources, video, 3, "poster.jpg", "storyboard.vtt", "360p/00000.m4s")
    used += await put_output(resources, video, 4, "720p/00000.m4s")
    unused = await put_output(resources, video, 1, "poster.jpg", "360p/00000.m4s")
    unused += await put_output(resources, video, 2, "360p/00000.m4s")
    unused += await put_output(resources, video, 3, "480p/00000.m4s", "480p/00001.m4s")
    unused += await put_output(resources, video, 4, "1080p/00000.m4s")
    return video, sorted(used), sorted(unused)


async def test_only_output_of_superseded_attempts_is_removed(resources: WebContext) -> None:
    video, used, unused = await with_history(resources)
    assert await stored(resources.storage, video.id) == sorted(used + unused)
    assert (await tidy(resources))["objects"] == len(unused)
    assert await stored(resources.storage, video.id) == used
    assert (await tidy(resources))["objects"] == 0
    assert not await Attempt.filter(is_swept=False).exists()


async def test_segment_of_a_killed_worker_is_removed_from_a_folder_in_use(
    resources: WebContext,
) -> None:
    video, used, _ = await with_history(resources)
    playlist = f"hls/{video.id}/3/360p/playlist.m3u8"
    text = b'#EXTM3U\n#EXT-X-MAP:URI="init.mp4"\n#EXTINF:6,\n00000.m4s\n#EXT-X-ENDLIST\n'
    await resources.storage.put(playlist, text, content_type="text/plain")
    files = ("360p/init.mp4", "360p/iframes.m3u8")
    files_in_use = await put_output(resources, video, 3, *files)
    await put_output(resources, video, 3, "360p/2-00000.m4s")
    await tidy(resources)
    assert await stored(resources.storage, video.id) == sorted([*used, playlist, *files_in_use])


@pytest.mark.parametrize("changes", [
    {"status": VideoStatus.PROCESSING, "published_attempt": None},
    {"complete_job_id": 7},
])  # fmt: skip
async def test_output_is_kept_while_the_video_has_pending_jobs(
    resources: WebContext, changes: dict[str, Any]
) -> None:
    video, used, unused = await with_history(resources)
    await change_video(video.id, **changes)
    assert (await tidy(resources))["objects"] == 0
    assert await stored(resources.storage, video.id) == sorted(used + unused)


async def test_film_stays_as_long_as_a_cut_plays_its_segments(resources: WebContext) -> None:
    video = await make_row(10_000, **READY)
    source = video.storage_key
    await resources.storage.put(source, RAW_FILE, content_type="video/mp4")
    await ended_attempt(video, 1, Outcome.PUBLISHED)
    await make_rendition(video, "360p")
    await put_master(resources, video, "360p/playlist.m3u8")
    await put_output(resources, video, 1, "360p/00000.m4s")
    film = await stored(resources.storage, video.id, source)
    age = "UPDATE versions SET retired_at = retired_at - interval '8 days'"
    for number in (2, 3):
        cut = await make_cut(video, published_attempt=number, transcode_job_id=number)
        async with transaction():
            await make_current(cut, VERSION_HOOKS)
        video = await Video.get(id=video.id)
        await ended_attempt(video, number, Outcome.PUBLISHED)
        await make_rendition(video, "360p", attempt_number=number)
        await put_master(resources, video, "360p/playlist.m3u8")
        await put_output(resources, video, number, "360p/playlist.m3u8")
        await run_sql(resources.config.database_url, age)
    assert (await tidy(resources))["expired_versions"] == 1
    kept = await stored(resources.storage, video.id, source)
    own = [f"hls/{video.id}/3/{name}" for name in ("360p/playlist.m3u8", "master.m3u8")]
    assert sorted(kept) == sorted([*film, *own])
    assert await Version.filter(video_id=video.id).count() == 2


async def test_poster_that_an_earlier_portal_stored_outlasts_the_replaced_file(
    resources: WebContext,
) -> None:
    video = await make_row(10_000, **READY, poster_path="1/poster-2.jpg")
    await ended_attempt(video, 1, Outcome.PUBLISHED)
    await put_output(resources, video, 1, "master.m3u8", "poster-2.jpg")
    former = await Version.get(id=video.version_id)
    new = await make_replacement(video)
    async with transaction():
        await make_current(new, VERSION_HOOKS)
    await run_sql(
        resources.config.database_url,
        "UPDATE versions SET retired_at = retired_at - interval '8 days'",
    )
    assert (await tidy(resources))["expired_versions"] == 1
    assert not await Version.exists(id=former.id)
    poster = f"hls/{video.id}/posters/poster-2.jpg"
    assert await stored(resources.storage, video.id) == [poster]
    assert poster_key(await Video.get(id=video.id)) == poster


async def test_version_does_not_come_back_once_its_removal_has_begun(
    resources: WebContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    video = await make_row(10_000, **READY)
    cut = await make_cut(video, retired_at=LONG_AGO)
    await ended_attempt(video, 1, Outcome.PUBLISHED)
    await Attempt.filter(number=1).update(version_id=cut.id)
    with monkeypatch.context() as patch:
        patch.setattr(janitor, "remove_below", AsyncMock(side_effect=StorageRefused("denied")))
        assert (await tidy(resources))["expired_versions"] == 0
    assert (await Version.get(id=cut.id)).retired_at == WITHDRAWN_AT
    assert (await tidy(resources))["expired_versions"] == 1


async def test_number_of_a_removed_attempt_is_not_used_again(resources: WebContext) -> None:
    video = await make_row(10_000, **READY)
    cut = await make_cut(video, retired_at=LONG_AGO)
    await ended_attempt(video, 1, Outcome.PUBLISHED)
    await ended_attempt(video, 2, Outcome.PUBLISHED)
    await Attempt.filter(number=2).update(version_id=cut.id)
    assert (await tidy(resources))["expired_versions"] == 1
    assert not await Attempt.exists(number=2)
    assert await attempts.next_number(video.id) == 3


async def test_failed_video_keeps_only_its_source(client: Client, resources: WebContext) -> None:
    video, _ = await created(client)
    await change_video(video.id, status=VideoStatus.FAILED)
    await ended_attempt(video, 1, Outcome.FAILED)
    await put_output(resources, video, 1, "master.m3u8", "360p/00000.m4s")
    await tidy(resources)
    assert await stored(resources.storage, video.id, video.storage_key) == [video.storage_key]


async def test_file_that_was_put_after_its_video_was_deleted_is_removed(
    client: Client, resources: WebContext
) -> None:
    video, address = await created(client)
    await deletion.delete_video(video.id)
    await remove_now(video, resources)

    assert await put(address, RAW_FILE) == 200
    await put_output(resources, video, 1, "360p/00009.m4s")
    assert (await tidy(resources))["deleted_videos"] == 0
    assert (await tidy(resources, now=hence(hours=25)))["deleted_videos"] == 1
    await remove_now(video, resources)
    assert not await Tombstone.exists()


async def test_file_that_replaced_a_published_one_is_removed_after_its_upload_url_expired(
    client: Client, resources: WebContext
) -> None:
    """The quota counts the published file, not a file that was put to the URL afterwards."""
    untouched, _ = await created(client)
    replaced, replaced_url = await created(client)
    deleted, deleted_url = await created(client)
    await deletion.delete_video(deleted.id)
    await remove_now(deleted, resources)
    for url in (replaced_url, deleted_url):
        assert await put(url, RAW_FILE * 6) == 200
    assert (await tidy(resources))["replaced_sources"] == 0

    assert (await tidy(resources, now=hence(minutes=61)))["replaced_sources"] == 2

    keys = [video.storage_key for video in (untouched, replaced, deleted)]
    assert [await is_stored(resources, key) for key in keys] == [True, False, False]
    # An upload that began just before the URL expired is removed as well; then comparisons end.
    await resources.storage.put(replaced.storage_key, b"late", content_type="video/mp4")
    assert (await tidy(resources, now=hence(hours=25)))["replaced_sources"] == 1
    assert (await Upload.get(key=untouched.storage_key)).is_compared


async def test_unknown_objects_in_the_bucket_are_kept(resources: WebContext) -> None:
    """An empty database, used by mistake, must not cost the files of the right one."""
    foreign = [f"videos/{uuid4().hex}.mp4", f"hls/{uuid4()}/1/master.m3u8"]
    for key in foreign:
        await resources.storage.put(key, b"x", content_type="video/mp4")
    assert not any((await tidy(resources, now=hence(days=400))).values())
    for key in foreign:
        assert await is_stored(resources, key)
        await resources.storage.delete(key)


async def test_audit_log_is_kept_as_long_as_the_setting_says(resources: WebContext) -> None:
    await add_lines(resources.config.database_url, 10)
    aged = "UPDATE events SET at = now() - interval '365 days 1 hour' WHERE id % 2 = 0"
    await run_sql(resources.config.database_url, aged)
    for days in (0, 366):
        config = replace(resources.config, audit_days=days)
        assert (await tidy(replace(resources, config=config)))["audit_lines"] == 0
    assert (await tidy(resources))["audit_lines"] == 5
    assert [line["id"] % 2 for line in await lines()] == [1] * 5


async def test_events_of_videos_are_kept_as_long_as_they_are_listed(
    client: Client, resources: WebContext
) -> None:
    video, _ = await created(client)
    await deletion.delete_video(video.id)
    url = resources.config.database_url
    await run_sql(url, "UPDATE events SET at = now() - interval '20 days'")
    public = Event.filter(type__not_isnull=True)
    count = await public.count()
    briefly = replace(resources, config=replace(resources.config, audit_days=7))
    await tidy(briefly)
    assert await public.count() == count > 0
    await run_sql(url, "UPDATE events SET at = now() - interval '31 days'")
    await tidy(briefly)
    assert not await public.exists()


async def test_upload_that_was_just_published_is_kept(
    client: Client, resources: WebContext
) -> None:
    """The janitor read the upload among the idle ones a moment before."""
    key = (await published(client))["storageKey"]
    upload = await Upload.get(key=key)
    is_discarded = await uploads.discard_abandoned(
        upload.id, idle_since=hence(hours=1), storage=resources.storage
    )
    assert not is_discarded
    assert await resources.storage.get(key) == RAW_FILE
