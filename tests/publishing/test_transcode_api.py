"""The transcode document in every state, and asking for another try from program and page."""

from typing import Any

import pytest
from api_client import Client, answered, counts, problem, rows
from library_pages import FAILED
from page_rows import READY, make_attempt, make_rendition, make_row

from portal.database.models import Outcome, Rendition, RenditionState, Video
from portal.http.composition import WebContext
from portal.transcoding.packaging.master import Kind

pytestmark = pytest.mark.shared_app

PLANNED: dict[str, Any] = {
    "state": RenditionState.PLANNED,
    "attempt_number": None,
    "average_bandwidth_bps": None,
    "size_bytes": None,
}


async def document(client: Client, video: Video) -> dict[str, Any]:
    return await answered(await client.get(f"/api/videos/{video.id}/transcode"))


def by_name(body: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {rendition["name"]: rendition for rendition in body["renditions"]}


async def test_waiting_videos_show_their_queue_position(client: Client) -> None:
    first, second, third = [await make_row(number) for number in (1, 2, 3)]
    assert await document(client, first) == {
        "stage": "waiting",
        "percent": 0.0,
        "secondsLeft": None,
        "queuePosition": 1,
        "workers": 0,
        "failure": None,
        "notes": [],
        "renditions": [],
        "remaining": None,
        "replacement": None,
        "posterUrl": None,
        "previewUrl": None,
        "storyboardUrl": None,
    }
    assert (await document(client, third))["queuePosition"] == 3
    await make_attempt(first)
    assert (await document(client, second))["queuePosition"] == 1
    assert (await document(client, first))["queuePosition"] is None


async def test_running_pass_shows_its_progress_and_renditions(client: Client) -> None:
    video = await make_row()
    await make_attempt(video, 2, stage="transcoding", percent=41.66, eta_s=12.4)
    await make_rendition(
        video, "360p", **{**PLANNED, "attempt_number": 2, "frame_rate": "30000/1001"}
    )
    await make_rendition(video, "720p", **PLANNED)
    body = await document(client, video)
    assert (body["stage"], body["percent"], body["secondsLeft"]) == ("transcoding", 41.7, 12)
    assert body["queuePosition"] is None
    renditions = by_name(body)
    assert (renditions["360p"]["state"], renditions["720p"]["state"]) == ("running", "planned")
    assert renditions["360p"]["frameRate"] == 29.97
    assert renditions["360p"]["bandwidth"] is None


async def test_ready_video_lists_what_was_made(client: Client, resources: WebContext) -> None:
    video = await make_row(**READY, has_storyboard=True, notes=["hdr_converted"])
    await make_rendition(
        video, "720p", codecs="avc1.64001f", bandwidth_bps=2_000_000, copied=True, width=1280
    )
    audio = {"kind": Kind.AUDIO, "position": 9000, "language": "en", "width": None, "height": None}
    await Rendition.create(
        version_id=video.version_id, name="audio", state="complete", attempt_number=1, **audio
    )
    body = await document(client, video)
    assert (body["stage"], body["percent"], body["remaining"]) == ("ready", 100.0, None)
    assert by_name(body)["720p"] == {
        "name": "720p",
        "kind": "video",
        "state": "complete",
        "width": 1280,
        "height": 360,
        "frameRate": None,
        "codecs": "avc1.64001f",
        "bandwidth": 2_000_000,
        "averageBandwidth": 1_234_567,
        "sizeBytes": 7_654_321,
        "language": None,
        "copied": True,
        "errorCode": None,
    }
    assert (by_name(body)["audio"]["kind"], by_name(body)["audio"]["language"]) == ("audio", "en")
    [note] = body["notes"]
    assert note["code"] == "hdr_converted"
    assert note["message"]
    page = f"{resources.config.public_url}/videos/{video.id}"
    assert body["posterUrl"] == f"{page}/poster.jpg"
    assert body["storyboardUrl"] == f"{page}/storyboard.vtt"


async def test_progress_of_a_growing_ladder_never_decreases(client: Client) -> None:
    video = await make_row(**READY, complete_job_id=5)
    await make_rendition(video, "360p")
    sizes = {"480p": (640, 480), "720p": (1280, 720)}
    for name, (width, height) in sizes.items():
        planned = {**PLANNED, "attempt_number": 2, "width": width, "height": height}
        await make_rendition(video, name, **planned)
    attempt = await make_attempt(video, 2, percent=50.0, eta_s=3.0)
    body = await document(client, video)
    assert (body["stage"], body["percent"]) == ("ready", 100.0)
    assert body["remaining"] == {
        "stage": "transcoding",
        "percent": 50.0,
        "secondsLeft": 3,
        "queuePosition": None,
        "workers": 1,
    }
    attempt.outcome = Outcome.PUBLISHED
    await attempt.save()
    await Rendition.filter(name="480p").update(state=RenditionState.COMPLETE)
    await make_attempt(video, 3, percent=40.0)
    await Rendition.filter(name="720p").update(attempt_number=3)
    share = (640 * 480 + 0.4 * 1280 * 720) / (640 * 480 + 1280 * 720)
    assert (await document(client, video))["remaining"]["percent"] == round(100 * share, 1)


async def test_failed_video_is_tried_again_from_the_start(
    client: Client, resources: WebContext
) -> None:
    video = await make_row(**FAILED)
    for number in (1, 2, 3):
        await make_attempt(video, number, outcome=Outcome.FAILED)
    body = await document(client, video)
    assert body["stage"] == "failed"
    assert body["failure"] == {"code": "damaged", "message": "It is damaged."}
    body = await answered(await client.post(f"/api/videos/{video.id}/transcode"), 202)
    assert (body["stage"], body["failure"]) == ("waiting", None)
    record = await (await client.get(f"/api/videos/{video.id}")).get_json()
    assert record["status"] == "processing"
    assert record["playbackUrl"] == ""
    [(job_id, task)] = await rows(
        resources.config.database_url, "SELECT id, task_name FROM procrastinate_jobs"
    )
    assert (record["transcodeJobId"], task) == (str(job_id), "portal:transcode")
    assert (await Video.get(id=video.id)).forgiven_attempts == 3
    again = await client.post(f"/api/videos/{video.id}/transcode")
    await problem(again, 409, "nothing_to_retry")
    assert await counts(resources.config.database_url) == (1, 1)


async def test_failed_renditions_of_a_ready_video_are_tried_again(
    client: Client, resources: WebContext
) -> None:
    video = await make_row(transcode_job_id=1, **READY)
    await make_rendition(video, "360p")
    failed = {**PLANNED, "state": RenditionState.FAILED, "tries": 3, "error_code": "stalled"}
    await make_rendition(video, "720p", **failed)
    assert by_name(await document(client, video))["720p"]["errorCode"] == "stalled"
    body = await answered(await client.post(f"/api/videos/{video.id}/transcode"), 202)
    assert (body["stage"], body["remaining"]["stage"]) == ("ready", "waiting")
    assert by_name(body)["720p"]["state"] == "planned"
    assert by_name(body)["360p"]["state"] == "complete"
    [(task, priority)] = await rows(
        resources.config.database_url, "SELECT task_name, priority FROM procrastinate_jobs"
    )
    assert (task, priority < 0) == ("portal:complete", True)
    record = await (await client.get(f"/api/videos/{video.id}")).get_json()
    assert (record["status"], record["transcodeJobId"]) == ("ready", "1")
    again = await client.post(f"/api/videos/{video.id}/transcode")
    await problem(again, 409, "nothing_to_retry")
