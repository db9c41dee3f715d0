"""The audience of a video decides who sees it, in every list, stream and record."""

import json
from typing import Any

import pytest
from api_client import answered
from page_rows import change_video
from playable_videos import EDITORS, PENDING, PEOPLE, PLAIN_AUDIENCES, Cast, ids_named
from signed_in import Sender

from portal.accounts.permissions import Principal, Right
from portal.config import Config
from portal.database.connection import fetch_rows, transaction
from portal.database.event_models import WebhookDelivery
from portal.database.models import Approval, Video
from portal.events.log import EventType, record_outcome
from portal.features.deletion import service as deletion
from portal.features.webhooks.sending import read_payload
from portal.http.composition import WebContext
from portal.http.event_streams import Stream
from portal.videos.events import newest_number
from portal.videos.visibility import VideoAccess, save_access, shares_of

pytestmark = pytest.mark.shared_app
HIDDEN = "hidden for its undo window"
REMOVED = "removed for good"
CAPTIONS = "WEBVTT\n\n00:00.000 --> 00:02.000\nA gyrfalcon on the {}.\n"


async def change(video: Video, after: str) -> None:
    if after == HIDDEN:
        await deletion.delete_undoably(video.id)
    elif after == REMOVED:
        await deletion.delete_video(video.id)
    else:
        visibility, signed_in_only, name = PLAIN_AUDIENCES[after]
        shares = shares_of(dict.fromkeys(await ids_named(name), Right.WATCH))
        access = VideoAccess(visibility=visibility, signed_in_only=signed_in_only, shares=shares)
        approval = Approval.WAITING if after == PENDING else None
        await change_video(video.id, approval=approval)
        await save_access(video.id, access, versions=None)


async def listed_events(sender: Sender, start: int) -> list[dict[str, Any]]:
    page = await answered(await sender.get(f"/api/events?after=evt_{start}"))
    events: list[dict[str, Any]] = page["events"]
    return events


async def streamed_types(reader: Principal, start: int) -> list[str]:
    stream = Stream(reader, after=start)
    stream.catch_up()
    batch = await stream.take()
    return [row["type"] for event in batch or [] if (row := event.seen_by(stream.sees))]


async def sent_payloads(reader: Principal, start: int, config: Config) -> list[dict[str, Any]]:
    """Return the payloads for a webhook of this account, without playback addresses."""
    payloads = []
    for number in range(start + 1, await newest_number() + 1):
        delivery = WebhookDelivery(event_number=number, type="")
        if payload := await read_payload(delivery, seen_by=reader, config=config):
            payload["data"].pop("playbackUrl", None)
            payloads.append(payload)
    return payloads


async def finds(sender: Sender, query: str, video: Video) -> bool:
    page = await answered(await sender.get(f"/api/videos?{query}"))
    return str(video.id) in {record["id"] for record in page["videos"]}


async def make_captioned(cast: Cast, audience: str, word: str) -> Video:
    """Create a video of the editor with captions; `word` is in its title and in its captions."""
    video = await cast.make_ready(audience)
    await change_video(video.id, title=f"Falcon, {word}")
    async with transaction():
        await record_outcome(EventType.CREATED, video.id)
    response = await cast.senders["its editor"][0].post(
        f"/api/videos/{video.id}/captions?language=fr",
        data=CAPTIONS.format(word),
        headers={"Content-Type": "text/vtt"},
    )
    await answered(response, 201)
    return video


def is_listed(cast: Cast, name: str, audience: str) -> bool:
    """Return whether lists of a person include videos of this audience."""
    return cast.may_see(name, audience) and (audience != "unlisted" or name in EDITORS)


@pytest.mark.parametrize("after", [*PLAIN_AUDIENCES, HIDDEN, REMOVED])
async def test_lists_follow_the_present_audience(cast: Cast, after: str) -> None:
    video = await make_captioned(cast, "public", after.split()[0])
    await change(video, after)
    queries = (f"id={video.id}", "q=falcon", "q=gyrfalcon", "sort=title")
    listed = {
        name: {query: await finds(cast.senders[name][0], query, video) for query in queries}
        for name in PEOPLE
    }
    assert listed == {
        name: dict.fromkeys(queries, after in PLAIN_AUDIENCES and is_listed(cast, name, after))
        for name in PEOPLE
    }


@pytest.mark.parametrize("before", PLAIN_AUDIENCES)
async def test_events_streams_and_webhooks_follow_the_former_and_the_present_audience(
    resources: WebContext, cast: Cast, before: str
) -> None:
    wrong = []
    for after in (*PLAIN_AUDIENCES, HIDDEN, REMOVED):
        start = await newest_number()
        video = await make_captioned(cast, before, after.split()[0])
        await change(video, after)
        is_change = after != before
        for name in PEOPLE:
            sender, viewer = cast.senders[name]
            was_listed = is_listed(cast, name, before)
            if after in PLAIN_AUDIENCES and is_listed(cast, name, after):
                types = ["video.created", "video.captions_changed"] if was_listed else []
                types += ["video.updated"] if is_change else []
            else:
                types = ["video.deleted"] if was_listed else []
            events = await listed_events(sender, start)
            sent_types = [event["type"] for event in events]
            payloads = await sent_payloads(viewer, start, resources.config)
            for event in events:
                event["data"].pop("playbackUrl", None)
            if (
                sent_types != types
                or await streamed_types(viewer, start) != types
                or payloads != events
                or (types == ["video.deleted"] and events[0]["data"] != {"id": str(video.id)})
            ):
                wrong.append((name, after, sent_types, types))
    assert wrong == []
    rows = await fetch_rows("SELECT data FROM events WHERE video_id = %s", video.id)
    assert all("title" not in row["data"] for row in rows), "nothing is kept of what is removed"


async def test_events_of_a_private_time_stay_private(cast: Cast) -> None:
    start = await newest_number()
    video = await cast.make_ready("public")
    async with transaction():
        await record_outcome(EventType.CREATED, video.id)
    for audience in ("private", "public", "private", "public"):
        await change_video(video.id, title=f"Heron, {audience}")
        await change(video, audience)
        async with transaction():
            await record_outcome(EventType.CHAPTERS_CHANGED, video.id)
    nobody, reader = cast.senders["nobody"]
    events = await listed_events(nobody, start)
    public = ["video.updated", "video.chapters_changed"]
    types = ["video.created", "video.deleted", *public, "video.deleted", *public]
    assert [event["type"] for event in events] == types
    assert "Heron, private" not in json.dumps(events)
    assert await streamed_types(reader, start) == types
    own_events = await listed_events(cast.senders["its editor"][0], start)
    assert [event["sequence"] for event in own_events] == list(range(1, 10))
