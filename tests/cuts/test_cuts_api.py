"""Cuts of a video by the API: what is saved, what is live, and what is refused."""

from typing import Any

import pytest
from api_client import Client, answered, faults, problem, uploaded
from page_rows import READY, make_live, make_rendition, make_row

from portal.database.connection import transaction
from portal.database.event_models import Event
from portal.database.models import (
    Publication,
    Rendition,
    RenditionState,
    Version,
    Video,
    VideoStatus,
)
from portal.films.attempts import fail_version
from portal.http.composition import WebContext

pytestmark = pytest.mark.shared_app

FIRST = [{"startSeconds": 10.0, "endSeconds": 60.0}, {"startSeconds": 90.5, "endSeconds": 3000.0}]
SECOND = [{"startSeconds": 20.0, "endSeconds": 40.0}]


@pytest.fixture
async def video(client: Client) -> Video:
    return await make_row(**READY, has_storyboard=True)


def address(video: Video) -> str:
    return f"/api/videos/{video.id}/cuts"


async def put(
    client: Client, video: Video, keep: Any, status: int = 202, *, if_match: str = "*"
) -> dict[str, Any]:
    """Save cuts; return the record."""
    headers = {"If-Match": if_match}
    response = await client.put(address(video), json={"keep": keep}, headers=headers)
    return await answered(response, status)


async def get(client: Client, video: Video) -> dict[str, Any]:
    return await answered(await client.get(address(video)))


async def etag(client: Client, video: Video) -> str:
    return (await client.get(address(video))).headers["ETag"]


async def pending_cut(video: Video) -> Version:
    """Return the cut that is being made."""
    return await Version.get(video_id=video.id, status=VideoStatus.PROCESSING)


async def finish(version: Version) -> Version:
    """Make a cut live, as its job does. The job also moves the bounds to frames."""
    moved = [[start_s + 0.01, end_s] for start_s, end_s in version.keep or []]
    attempt = 1 + await Version.filter(video_id=version.video_id).count()
    await Version.filter(id=version.id).update(
        status=VideoStatus.READY, keep=moved, published_attempt=attempt, has_storyboard=True
    )
    return await make_live(await Version.get(id=version.id))


async def events(video: Video) -> list[str]:
    rows = Event.filter(video_id=video.id, number__isnull=False).order_by("number")
    return [str(row.type) for row in await rows]


async def save_live(client: Client, video: Video, keep: list[dict[str, float]]) -> Version:
    """Save cuts, make them live, and return their version."""
    await put(client, video, keep)
    return await finish(await pending_cut(video))


async def test_cut_is_made_while_the_whole_film_stays_live(
    client: Client, resources: WebContext, video: Video
) -> None:
    film_url = f"{resources.config.public_url}/videos/{video.id}/film/1/master.m3u8"
    whole = {
        "keep": None,
        "liveKeep": None,
        "state": "live",
        "percent": 100.0,
        "failure": None,
        "filmSeconds": 3725.4,
        "filmUrl": film_url,
    }
    assert await get(client, video) == whole
    begun = await put(client, video, FIRST)
    assert begun == {**whole, "keep": FIRST, "state": "processing", "percent": 0.0}
    assert await get(client, video) == begun
    assert (await Video.get(id=video.id)).version_id == video.version_id

    await finish(await pending_cut(video))
    live = await get(client, video)
    moved = [{**FIRST[0], "startSeconds": 10.01}, {**FIRST[1], "startSeconds": 90.51}]
    assert live["keep"] == live["liveKeep"] == moved
    assert (live["state"], live["filmUrl"], live["filmSeconds"]) == ("live", film_url, 3725.4)
    record = await answered(await client.get(f"/api/videos/{video.id}"))
    assert record["storageKey"] == video.storage_key
    assert record["playbackUrl"].endswith(f"/hls/{video.id}/master.m3u8")
    assert (await events(video))[-1] == "video.cuts_changed"


async def test_next_cut_is_of_the_whole_film_and_former_ones_return_at_once(
    client: Client, video: Video
) -> None:
    first = await save_live(client, video, FIRST)
    second = await save_live(client, video, SECOND)
    assert second.base_id == first.base_id == video.version_id
    assert (await put(client, video, FIRST, 200))["state"] == "live"
    assert (await Video.get(id=video.id)).version_id == first.id
    whole = await put(client, video, None, 200)
    assert (whole["keep"], whole["liveKeep"], whole["state"]) == (None, None, "live")
    assert (await Video.get(id=video.id)).version_id == video.version_id
    assert await Version.filter(video_id=video.id).count() == 3


async def test_repetition_does_nothing_and_another_cut_supersedes(
    client: Client, video: Video
) -> None:
    tag = await etag(client, video)
    begun = await put(client, video, FIRST, if_match=tag)
    # The answer was lost, so the client knows only the former version.
    assert await put(client, video, FIRST, if_match=tag) == begun
    first = await pending_cut(video)
    response = await client.put(address(video), json={"keep": SECOND}, headers={"If-Match": tag})
    conflict = await problem(response, 412, "cuts_changed")
    assert conflict["present"]["keep"] == FIRST
    await put(client, video, SECOND, if_match=response.headers["ETag"])
    # No worker has begun the first cut.
    assert not await Version.exists(id=first.id)
    second = await pending_cut(video)
    tag = await etag(client, video)
    await finish(second)
    # The ETag of a cut stays the same when it is live.
    await put(client, video, FIRST, if_match=tag)
    await put(client, video, SECOND, 200)
    assert (await Video.get(id=video.id)).version_id == second.id
    assert not await Version.exists(video_id=video.id, status=VideoStatus.PROCESSING)


async def test_a_bound_that_is_moved_by_one_frame_is_another_cut(
    client: Client, video: Video
) -> None:
    await make_rendition(video, "360p", frame_rate="30000/1001")
    first = await save_live(client, video, [{"startSeconds": 10, "endSeconds": 60}])
    again = {"startSeconds": 10, "endSeconds": 60.016}
    assert (await put(client, video, [again], 200))["state"] == "live"
    assert (await Video.get(id=video.id)).version_id == first.id
    moved = {"startSeconds": 10, "endSeconds": 60.033}
    assert (await put(client, video, [moved]))["keep"] == [moved]


async def test_failed_cut_leaves_the_former_version_and_is_made_again(
    client: Client, video: Video
) -> None:
    await put(client, video, FIRST)
    async with transaction():
        version = await pending_cut(video)
        await fail_version(version.id, code="disk_full", message="The disk is full.")
    failed = await get(client, video)
    assert (failed["state"], failed["keep"], failed["liveKeep"]) == ("failed", FIRST, None)
    assert failed["failure"] == {"code": "disk_full", "message": "The disk is full."}
    assert (await events(video))[-1] == "video.cuts_failed"
    assert (await put(client, video, FIRST))["state"] == "processing"


@pytest.mark.parametrize(
    ("keep", "pointer"),
    [
        ([], "/keep"),
        ("all", "/keep"),
        ([{"startSeconds": 0}], "/keep/0/endSeconds"),
        ([{"startSeconds": 0, "endSeconds": 9, "title": ""}], "/keep/0/title"),
        ([*FIRST, {"startSeconds": 4000, "endSeconds": 4001}], "/keep/2"),
        ([{"startSeconds": second, "endSeconds": second + 1} for second in range(1000)], "/keep"),
    ],
)
async def test_intervals_that_can_not_be_kept_are_named(
    client: Client, video: Video, keep: Any, pointer: str
) -> None:
    assert pointer in await faults(await client.put(address(video), json={"keep": keep}))


async def test_infinite_time_is_refused(client: Client, video: Video) -> None:
    body = b'{"keep": [{"startSeconds": 0, "endSeconds": 1e999}]}'
    headers = {"Content-Type": "application/json"}
    response = await client.put(address(video), data=body, headers=headers)
    assert "/keep/0/endSeconds" in await faults(response)


async def test_intervals_of_the_whole_film_change_nothing(client: Client, video: Video) -> None:
    everything = [{"startSeconds": 0, "endSeconds": 5000}]
    assert (await put(client, video, everything, 200))["keep"] is None


async def test_film_goes_on_for_its_cuts(client: Client, video: Video) -> None:
    film = Version.filter(id=video.version_id)
    await film.update(complete_job_id=7, storyboard_job_id=8)
    await save_live(client, video, FIRST)
    await save_live(client, video, SECOND)
    assert (await film.get()).complete_job_id == 7
    progress = await answered(await client.get(f"/api/videos/{video.id}/transcode"))
    assert progress["remaining"] is not None

    # Nothing is enqueued twice when the whole film returns.
    await put(client, video, None, 200)
    restored = await film.get()
    assert (restored.complete_job_id, restored.storyboard_job_id) == (7, 8)


async def test_video_that_is_not_ready_is_not_cut(client: Client) -> None:
    video = await make_row()
    assert (await get(client, video))["filmSeconds"] is None
    response = await client.put(address(video), json={"keep": FIRST})
    await problem(response, 409, "not_playable")


async def test_replacement_in_progress_keeps_a_video_from_being_cut(
    client: Client, video: Video
) -> None:
    film = Version.filter(id=video.version_id)
    await film.update(complete_job_id=7)
    cut = await save_live(client, video, SECOND)
    await put(client, video, FIRST)
    first = await pending_cut(video)
    replacement = f"/api/videos/{video.id}/replacement"
    body = {"key": await uploaded(client), "fileName": "take 2.mp4"}
    begun = await answered(await client.post(replacement, json=body), 202)
    assert begun["state"] == "processing"
    response = await client.put(address(video), json={"keep": SECOND})
    await problem(response, 409, "replacement_in_progress")
    # The cut belongs to the former file, so it is not made once the new file is live.
    new = await Version.get(storage_key=body["key"])
    await Version.filter(id=new.id).update(
        status=VideoStatus.READY, published_attempt=9, duration_s=50.0
    )
    await make_live(await Version.get(id=new.id))
    assert (await film.get()).complete_job_id is None
    assert (await Version.get(id=first.id)).status is VideoStatus.FAILED
    assert (await get(client, video))["keep"] is None
    # The bounds are those of the former file, which is longer.
    stale = [{"startSeconds": 60, "endSeconds": 3000}]
    response = await client.put(address(video), json={"keep": stale}, headers={"If-Match": '"1"'})
    await problem(response, 412, "cuts_changed")
    # Cuts of the new file are no replacement, and going back leads to the former cut.
    await save_live(client, video, SECOND)
    live = await client.get(replacement)
    assert (await answered(live))["fileName"] == "take 2.mp4"
    headers = {"If-Match": live.headers["ETag"]}
    for status in (204, 412):
        assert (await client.delete(replacement, headers=headers)).status_code == status
        assert (await Video.get(id=video.id)).version_id == cut.id


async def test_former_cut_gets_what_its_film_gained_and_loses_captions_that_were_deleted(
    client: Client, video: Video
) -> None:
    cut = await save_live(client, video, FIRST)
    await put(client, video, None, 200)
    await make_rendition(video, "720p")
    await Publication.filter(id=video.id).update(captions_job_id=None)
    await put(client, video, FIRST, 200)
    restored = await Video.get(id=video.id)
    assert restored.version_id == cut.id
    missing = await Rendition.get(version_id=cut.id, state=RenditionState.PLANNED)
    assert missing.name == "720p"
    assert restored.complete_job_id is not None
    # The job writes a master playlist with the present captions.
    assert restored.captions_job_id is not None
