"""Events over HTTP: viewers of a video get each of its changes once, in order."""

from typing import Any
from uuid import UUID

import pytest
from api_client import Client, answered, faults, problem, published
from quart import Quart
from signed_in import Sender, make_video

from portal.database.account_models import Account
from portal.database.connection import execute, transaction
from portal.database.models import Visibility
from portal.events.log import EventType, record_outcome
from portal.features.deletion import service as deletion
from portal.videos.visibility import VideoAccess, save_access

pytestmark = pytest.mark.shared_app


async def listed(client: Any, query: str = "") -> list[dict[str, Any]]:
    body = await answered(await client.get(f"/api/events{query}"))
    events: list[dict[str, Any]] = body["events"]
    return events


async def test_list_of_certain_types_is_in_pages_and_misses_nothing(
    app: Quart, edith: Account
) -> None:
    hidden, public = [await make_video(edith) for _ in range(2)]
    async with transaction():
        for video in (hidden, public):
            for kind in (EventType.READY, EventType.UPDATED, EventType.COMPLETED):
                await record_outcome(kind, video.id)
    await save_access(hidden.id, VideoAccess(visibility=Visibility.PRIVATE), versions=None)
    query = "type=video.deleted,video.completed&type=video.ready&limit=1"
    after = ""
    events = []
    for _ in range(3):
        page = await answered(await Sender(app).get(f"/api/events?{query}{after}"))
        events += [(event["type"], event["data"]["id"]) for event in page["events"]]
        after = f"&after={page['nextAfter']}"
    # A video that was hidden from its readers is a deleted one to them.
    assert events == [
        *[(f"video.{kind}", str(public.id)) for kind in ("ready", "completed")],
        ("video.deleted", str(hidden.id)),
    ]
    faulty = await Sender(app).get("/api/events?type=video.lost")
    assert (await faults(faulty))["/type/0"].startswith("Choose 'video.created', ")


async def test_events_have_the_record_after_each_change_and_the_id_of_a_deleted_video(
    client: Client,
) -> None:
    """test_log tests the changes."""
    created = await published(client)
    video_id = UUID(created["id"])
    address = f"/api/videos/{video_id}"
    await answered(await client.patch(address, json={"title": "Harbour at dusk"}))
    record = await answered(await client.get(address))
    events = await listed(client)
    assert events[0]["data"] == {**created, "playbackUrl": "", "passthrough": ""}
    assert events[1]["data"] == {**record, "passthrough": ""}
    await deletion.delete_undoably(video_id)
    # Changes after a deletion have no events.
    async with transaction():
        await record_outcome(EventType.READY, video_id)
    await deletion.undo_deletion(video_id)
    types = [event["type"].removeprefix("video.") for event in await listed(client)]
    assert types == ["created", "updated", "deleted", "updated"]
    assert (await client.delete(address)).status_code == 202
    # The only remaining events of a deleted video are its deletions.
    deletions = await listed(client)
    assert [event["type"] for event in deletions] == ["video.deleted"] * 2
    assert [event["sequence"] for event in deletions] == [3, 5]
    assert [event["data"] for event in deletions] == [{"id": created["id"]}] * 2


async def test_list_resumes_after_the_cursor(client: Client) -> None:
    start = await answered(await client.get("/api/events?after=latest"))
    assert start["events"] == []
    for _ in range(3):
        await published(client)
    page = await answered(await client.get(f"/api/events?after={start['nextAfter']}&limit=2"))
    next_page = await answered(await client.get(f"/api/events?after={page['nextAfter']}&limit=2"))
    assert len(page["events"]) == 2
    assert [*page["events"], *next_page["events"]] == await listed(client)
    last = next_page["events"][-1]["id"]
    assert next_page["nextAfter"] == last
    assert await listed(client, f"?after={last}") == []
    await problem(await client.get("/api/events?after=5d0e"), 422, "validation_failed")


async def test_reader_that_was_away_too_long_gets_410(client: Client) -> None:
    await published(client)
    await published(client)
    first, last = await listed(client)
    await execute("UPDATE events SET at = at - interval '31 days'")
    assert await listed(client) == []
    await problem(await client.get(f"/api/events?after={first['id']}"), 410, "events_expired")
    # A reader at the newest event has missed nothing.
    assert await listed(client, f"?after={last['id']}") == []
