"""Intervals of a video as a new video: it shares the uploaded file, and nothing else."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aged_videos import LONG_AGO, hence, tidy
from api_client import Client, answered, faults, problem
from cut_films import whole_video
from page_rows import READY, make_replacement, make_row
from passes import make_source, tools_for
from signed_in import text_of
from stored_objects import stored

from portal.database.models import (
    Attempt,
    Deletion,
    Publication,
    Rendition,
    Version,
    Video,
    VideoStatus,
)
from portal.features import VERSION_HOOKS
from portal.features.captions import service as captions
from portal.features.captions.service import CaptionChange
from portal.features.deletion.service import delete_video
from portal.films import passes, removal
from portal.films.captions import CaptionText
from portal.films.versions import WITHDRAWN_AT
from portal.http.composition import WebContext
from portal.storage.bucket import Storage
from portal.storage.calls import ObjectMissing
from portal.storage.objects import output_prefix, output_root
from portal.transcoding.packaging.hls import playlist_uris
from portal.transcoding.packaging.webvtt import Cue
from portal.videos import chapters
from portal.videos.chapters import Chapter

pytestmark = pytest.mark.shared_app

KEEP = [{"startSeconds": 0, "endSeconds": 3}, {"startSeconds": 6, "endSeconds": 9}]


async def copy(client: Client, video: Video, keep: Any = KEEP, status: int = 201) -> dict[str, Any]:
    """Save intervals of a video as a new one; return its record."""
    body = {"keep": keep, "title": "The best of it"}
    return await answered(await client.post(f"/api/videos/{video.id}/copies", json=body), status)


async def remove(video: Video, resources: WebContext) -> None:
    await delete_video(video.id)
    await Deletion.all().update(settles_at=datetime.now(UTC))
    await removal.remove_files(video.id, tools_for(resources))


async def test_new_video_outlives_the_one_from_which_it_is_made(
    client: Client, resources: WebContext, tmp_path: Path
) -> None:
    source = make_source(tmp_path / "film.mp4", seconds=12, size="640x360", rate=10)
    video = await whole_video(client, resources, source, tmp_path)
    await Publication.filter(id=video.id).update(has_even_loudness=False)
    cues = [Cue(start_s=at, end_s=at + 1, text=f"At {at}") for at in (1, 4, 7)]
    change = CaptionChange(content=CaptionText.of(cues))
    await captions.add(video.id, "en", change)
    named = [Chapter(0.0, "First"), Chapter(7.0, "Last")]
    await chapters.save_chapters(video.id, named, versions=None)

    record = await copy(client, video)
    assert (record["status"], record["title"]) == ("processing", "The best of it")
    assert record["storageKey"] == video.storage_key
    copied = await Video.get(id=record["id"])
    tools = tools_for(resources, tmp_path)
    await passes.publish_version(copied.version_id, tools, may_encode=True, hooks=VERSION_HOOKS)
    copied = await Video.get(id=copied.id)
    assert copied.status is VideoStatus.READY
    assert copied.duration_s == pytest.approx(6, abs=0.2)
    film = await Version.get(id=copied.base_id)
    assert (film.video_id, film.status) == (copied.id, VideoStatus.READY)
    assert film.integrated_lufs == copied.integrated_lufs == video.integrated_lufs
    assert not copied.has_even_loudness
    # The whole film was never live, so people can't go back to it after a replacement.
    assert film.retired_at == WITHDRAWN_AT
    names = set(await Rendition.filter(version_id=film.id).values_list("name", flat=True))
    assert names == set(
        await Rendition.filter(version_id=video.version_id).values_list("name", flat=True)
    )
    track = await captions.read_captions_of(copied.id, "en")
    assert "At 1" in (track.text or "")
    assert "At 4" not in (track.text or "")
    at_s = [chapter.start_s for chapter in (await chapters.read_chapters(copied.id)).chapters]
    assert at_s == pytest.approx([0, 4], abs=0.1)

    await remove(video, resources)
    assert await stored(resources.storage, video.id) == []
    root = output_root(copied.id)
    keys = {key.removeprefix(root) for key in await stored(resources.storage, copied.id)}
    playlist = (await answered(await client.get(f"/api/videos/{copied.id}")))["playbackUrl"]
    named_files = playlist_uris(await text_of(await client.get(playlist)))
    assert set(named_files) <= keys
    film_url = f"/videos/{copied.id}/film/{film.published_attempt}/master.m3u8"
    assert playlist_uris(await text_of(await client.get(film_url)))
    whole = await client.put(f"/api/videos/{copied.id}/cuts", json={"keep": None})
    assert (await answered(whole))["liveKeep"] is None
    assert await resources.storage.list_some(video.storage_key) == [video.storage_key]

    await remove(copied, resources)
    assert await stored(resources.storage, copied.id, video.storage_key) == []


@pytest.mark.parametrize(
    ("way", "has_failed"), [("deleted", False), ("deleted", True), ("replaced", True)]
)
async def test_new_video_fails_if_the_film_is_deleted_before_it_is_copied(
    client: Client, resources: WebContext, way: str, has_failed: bool
) -> None:
    video = await make_row(**READY)
    copied = await Video.get(id=(await copy(client, video))["id"])
    if has_failed:
        copy_of_film = Version.filter(id=copied.version_id)
        await copy_of_film.update(status="failed", failure_code="transcode_failed")
    if way == "deleted":
        await remove(video, resources)
    else:
        new = await make_replacement(video)
        await Publication.filter(id=video.id).update(version_id=new.id)
        await Version.filter(id=video.version_id).update(retired_at=LONG_AGO)
        assert (await tidy(resources))["expired_versions"] == 1
    transcode = await answered(await client.get(f"/api/videos/{copied.id}/transcode"))
    assert (transcode["stage"], transcode["failure"]["code"]) == ("failed", "film_deleted")
    retried = await client.post(f"/api/videos/{copied.id}/transcode")
    await problem(retried, 409, "nothing_to_retry")
    await remove(copied, resources)
    assert not await Version.exists(storage_key=video.storage_key)


@pytest.mark.parametrize("has_changed", [False, True])
async def test_copy_that_was_broken_off_goes_on_unless_the_film_has_changed(
    client: Client,
    resources: WebContext,
    tmp_path: Path,
    short_video: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    has_changed: bool,
) -> None:
    video = await whole_video(client, resources, short_video, tmp_path)
    keep = [{"startSeconds": 0, "endSeconds": 1}]
    copied = await Video.get(id=(await copy(client, video, keep))["id"])
    [rendition] = await Rendition.filter(version_id=video.version_id, kind="video").limit(1)
    lost = f"hls/{video.id}/{rendition.attempt_number}/{rendition.name}/init.mp4"
    init = await resources.storage.get(lost)
    await resources.storage.delete(lost)
    tools = tools_for(resources, tmp_path)
    with pytest.raises(ObjectMissing):
        await passes.publish_version(copied.version_id, tools, may_encode=True, hooks=VERSION_HOOKS)
    [broken] = await Version.filter(video_id=copied.id, base_id=None)
    before = set(await stored(resources.storage, copied.id))
    assert before
    if has_changed:
        changed_at = datetime.now(UTC)
        await Attempt.filter(version_id=video.version_id).update(started_at=changed_at)
    await resources.storage.put(lost, init, content_type="video/mp4")
    targets = []

    async def copy_object(storage: Storage, key: str, target: str) -> None:
        targets.append(target)
        await copy_in_storage(storage, key, target)

    copy_in_storage = Storage.copy
    monkeypatch.setattr(Storage, "copy", copy_object)
    await passes.publish_version(copied.version_id, tools, may_encode=True, hooks=VERSION_HOOKS)
    finished = await Video.get(id=copied.id)
    assert finished.status is VideoStatus.READY
    assert not before & set(targets)
    assert (finished.base_id == broken.id) is not has_changed
    if not has_changed:
        assert (await Version.get(id=broken.id)).status is VideoStatus.READY
        return
    attempt = await Attempt.get(version_id=broken.id)
    folder = output_prefix(copied.id, attempt.number)
    assert await resources.storage.list_some(folder)
    await tidy(resources, now=hence(days=3))
    assert not await Version.exists(id=broken.id)
    assert await resources.storage.list_some(folder) == []
    assert await resources.storage.list_some(copied.storage_key)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"keep": KEEP}, "/title"),
        ({"keep": KEEP, "title": " "}, "/title"),
        ({"keep": None, "title": "New"}, "/keep"),
        ({"keep": [{"startSeconds": 0, "endSeconds": 9999}], "title": "New"}, "/keep"),
        ({"keep": [*KEEP, *KEEP], "title": "New"}, "/keep/2"),
    ],
)
async def test_invalid_members_of_a_copy_are_named(
    client: Client, body: dict[str, Any], pointer: str
) -> None:
    video = await make_row(**READY)
    assert pointer in await faults(await client.post(f"/api/videos/{video.id}/copies", json=body))


async def test_copy_of_intervals_of_a_former_file_is_refused(client: Client) -> None:
    video = await make_row(**READY)
    stale = {"keep": [{"startSeconds": 0, "endSeconds": 9999}], "title": "New"}
    response = await client.post(
        f"/api/videos/{video.id}/copies", json=stale, headers={"If-Match": '"1"'}
    )
    conflict = await problem(response, 412, "cuts_changed")
    assert conflict["present"]["keep"] is None
    assert await Video.all().count() == 1


async def test_cuts_of_a_video_and_of_a_copy_in_progress_are_independent(
    client: Client, resources: WebContext
) -> None:
    video = await make_row(**READY)
    copied = await copy(client, video)
    path = f"/api/videos/{video.id}/cuts"
    recorded = await answered(await client.get(path))
    assert (recorded["keep"], recorded["state"]) == (None, "live")
    await answered(await client.put(path, json={"keep": KEEP}), 202)
    await answered(await client.put(path, json={"keep": None}))
    new = await Video.get(id=copied["id"])
    assert (new.status, new.keep) == (VideoStatus.PROCESSING, [[0, 3], [6, 9]])
    version = await new.current_version()
    assert version.retired_at is None
    # The current version of a video is never removed.
    await Version.filter(id=version.id).update(status=VideoStatus.FAILED, retired_at=WITHDRAWN_AT)
    await tidy(resources, now=hence(days=2))
    assert await Version.exists(id=version.id)
