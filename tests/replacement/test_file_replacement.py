"""Replacing the file of a video: the API, and the section of the workshop."""

import re
from typing import Any

import pytest
from api_client import Client, answered, faults, problem, uploaded
from page_rows import READY, change_video, make_attempt, make_live, make_row
from page_texts import page, words_of
from quart import Quart
from signed_in import browser, make_account, make_video, send_fields, session_of

from portal.database.account_models import Role
from portal.database.models import Version, Video, VideoStatus
from portal.database.work_models import PassInProgress
from portal.films import parts
from portal.films.attempts import LeaseLost

pytestmark = pytest.mark.shared_app

NEW_FILE = "harbour, take 2.mov"


@pytest.fixture
async def video(client: Client) -> Video:
    return await make_row(**READY)


def address(video: Video) -> str:
    return f"/api/videos/{video.id}/replacement"


async def replace_file(client: Any, video: Video, status: int = 202) -> dict[str, Any]:
    """Upload a file and begin to replace that of a video; return the replacement's record."""
    body = {"key": await uploaded(client), "fileName": NEW_FILE}
    return await answered(await client.post(address(video), json=body), status)


async def fail_new_file(video: Video) -> None:
    new_versions = Version.filter(video_id=video.id).exclude(id=video.version_id)
    await new_versions.update(
        status=VideoStatus.FAILED, failure_code="not_a_video", failure_message="It has no picture."
    )


async def finish_new_file(video: Video) -> Version:
    """Make the replacement of a video's file the current version."""
    new_versions = Version.filter(video_id=video.id).exclude(id=video.version_id)
    await new_versions.update(status=VideoStatus.READY, published_attempt=1)
    return await make_live(await new_versions.get())


async def test_replacement_is_processed_while_the_former_file_stays(
    client: Client, video: Video
) -> None:
    begun = await replace_file(client, video)
    assert begun == {
        "state": "processing",
        "percent": 0.0,
        "fileName": NEW_FILE,
        "sizeBytes": begun["sizeBytes"],
        "failure": None,
        "startedAt": begun["startedAt"],
        "revertibleUntil": None,
    }
    assert await answered(await client.get(address(video))) == begun
    transcode = await answered(await client.get(f"/api/videos/{video.id}/transcode"))
    assert (transcode["stage"], transcode["replacement"]) == ("ready", begun)
    record = await answered(await client.get(f"/api/videos/{video.id}"))
    assert (record["status"], record["storageKey"]) == ("ready", video.storage_key)
    version = await Version.filter(video_id=video.id).exclude(id=video.version_id).get()
    video.version_id = version.id
    await make_attempt(video, 2, percent=41.66)
    assert (await answered(await client.get(address(video))))["percent"] == 41.7


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"fileName": "clips/harbour.mp4"}, "/fileName"),
        ({"key": "videos/elsewhere.mp4"}, "/key"),
        ({"key": None}, "/key"),
        ({"filename": "harbour.mp4"}, "/filename"),
    ],
)
async def test_invalid_members_are_named(
    client: Client, video: Video, change: dict[str, Any], pointer: str
) -> None:
    body = {"key": await uploaded(client), "fileName": NEW_FILE, **change}
    assert pointer in await faults(await client.post(address(video), json=body))


async def test_present_file_replaces_nothing(client: Client, video: Video) -> None:
    body = {"key": video.storage_key, "fileName": "a.mp4"}
    record = await answered(await client.post(address(video), json=body))
    assert (record["state"], record["fileName"]) == ("live", "a.mp4")
    assert record["revertibleUntil"] is None
    await problem(await client.get(address(video)), 404, "replacement_not_found")


async def test_repeated_withdrawal_does_not_bring_the_new_file_back(
    client: Client, video: Video
) -> None:
    await replace_file(client, video)
    processing = (await client.get(address(video))).headers["ETag"]
    await finish_new_file(video)
    live = (await client.get(address(video))).headers["ETag"]
    for etag, status in ((processing, 412), (live, 204), (live, 412)):
        response = await client.delete(address(video), headers={"If-Match": etag})
        assert response.status_code == status
    conflict = await problem(response, 412, "replacement_changed")
    assert conflict["present"]["fileName"] == video.file_name
    assert (await Video.get(id=video.id)).storage_key == video.storage_key


async def test_new_file_is_in_the_record_until_the_former_one_is_restored(
    client: Client, video: Video
) -> None:
    await replace_file(client, video)
    version = await finish_new_file(video)
    record = await answered(await client.get(f"/api/videos/{video.id}"))
    assert (record["status"], record["storageKey"]) == ("ready", version.storage_key)
    assert (record["fileName"], record["transcodeJobId"]) == (
        NEW_FILE,
        str(version.transcode_job_id),
    )
    replaced = await answered(await client.get(address(video)))
    assert (replaced["state"], replaced["percent"]) == ("live", 100.0)
    assert replaced["revertibleUntil"] > replaced["startedAt"]
    assert (await client.delete(address(video))).status_code == 204
    record = await answered(await client.get(f"/api/videos/{video.id}"))
    assert record["storageKey"] == video.storage_key


async def test_viewers_do_not_learn_of_a_replacement(app: Quart) -> None:
    owner = await make_account("olga")
    video = await make_video(owner)
    await change_video(video.id, **READY)
    sender = browser(app, await session_of(owner))
    await replace_file(sender, video)
    viewer = browser(app, await session_of(await make_account("victor", Role.VIEWER)))
    names = {}
    for name, caller in (("owner", sender), ("viewer", viewer)):
        document = await answered(await caller.get(f"/api/videos/{video.id}/transcode"))
        names[name] = document["replacement"] and document["replacement"]["fileName"]
    assert names == {"owner": NEW_FILE, "viewer": None}


def withdrawn(text: str) -> str:
    """Return what the button of the section would withdraw."""
    [value] = re.findall(r'name="withdrawn"\s+value="([^"]*)"', text)
    return value


async def test_section_polls_and_cancels(client: Client, video: Video) -> None:
    panel = f"/videos/{video.id}/replacement"
    assert 'type="file"' in await page(client, panel)
    await replace_file(client, video)
    text = await page(client, panel)
    assert f"{NEW_FILE} is being processed: 0%." in words_of(text)
    assert "every 2s" in text
    assert 'type="file"' not in text
    cancelled = await send_fields(client, f"{panel}/withdraw", withdrawn=withdrawn(text))
    assert cancelled.headers["Location"] == f"/videos/{video.id}/edit#replacement"
    assert "is being processed" not in await page(client, panel)
    for method in ("GET", "DELETE"):
        response = await client.open(address(video), method=method)
        await problem(response, 404, "replacement_not_found")


async def test_record_and_section_say_why_the_new_file_failed(client: Client, video: Video) -> None:
    await replace_file(client, video)
    await fail_new_file(video)
    record = await answered(await client.get(address(video)))
    assert record["state"] == "failed"
    assert record["failure"] == {"code": "not_a_video", "message": "It has no picture."}
    assert (await replace_file(client, video))["state"] == "processing"
    await fail_new_file(video)
    text = await page(client, f"/videos/{video.id}/edit")
    assert f"{NEW_FILE} couldn\u2019t be processed. It has no picture." in words_of(text)
    await send_fields(client, f"/videos/{video.id}/replacement/withdraw", withdrawn=withdrawn(text))
    assert "It has no picture." not in await page(client, f"/videos/{video.id}/replacement")


async def test_going_back_twice_goes_back_once(client: Client, video: Video) -> None:
    await replace_file(client, video)
    await finish_new_file(video)
    panel = await client.get(f"/videos/{video.id}/replacement")
    # The player shows the new file.
    assert "file-replaced" in panel.headers["HX-Trigger"]
    version = withdrawn((await panel.get_data()).decode())
    for _ in range(2):
        await send_fields(client, f"/videos/{video.id}/replacement/withdraw", withdrawn=version)
        assert (await Video.get(id=video.id)).storage_key == video.storage_key


async def test_section_is_hidden_until_a_video_is_processed(client: Client) -> None:
    video = await make_row()
    text = await page(client, f"/videos/{video.id}/replacement")
    assert "video-final" in text
    assert words_of(text) == ""


async def test_workers_stop_encoding_a_file_that_was_replaced(client: Client, video: Video) -> None:
    pass_of_former = {"folder": 1, "renditions": ["720p"], "segment_count": 9, "segment_s": 60.0}
    await PassInProgress.create(version_id=video.version_id, **pass_of_former)
    await replace_file(client, video)
    await finish_new_file(video)
    # A worker that asks for the next part has lost its lease.
    with pytest.raises(LeaseLost):
        await parts.claim(video.version_id, worker="w")
