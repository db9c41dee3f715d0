"""Each change of a video has its public event, with the video's record as the change left it."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
from api_client import Client
from page_rows import change_video, make_attempt, make_row
from passes import ready_video, tools_for

from portal.database.connection import transaction
from portal.database.event_models import Event
from portal.database.models import Video, Visibility
from portal.errors import PortalError
from portal.events.log import AuditAction, EventType, record_action, record_outcome
from portal.events.records import VideoColumns, audience_columns
from portal.features.captions import service as captions
from portal.features.captions.service import CaptionChange
from portal.features.deletion import service as deletion
from portal.features.posters import service as posters
from portal.films import attempts, renditions
from portal.films.attempts import OpenAttempt
from portal.films.captions import CaptionText
from portal.http.composition import WebContext
from portal.transcoding.planning.chapters import Chapter
from portal.videos import chapters, metadata, publishing
from portal.videos.visibility import VideoAccess, save_access

pytestmark = [pytest.mark.shared_app, pytest.mark.usefixtures("app")]
Change = Callable[[], Awaitable[object]]


async def read_record(video_id: UUID) -> dict[str, object]:
    video = await Video.get(id=video_id)
    columns = VideoColumns.model_validate(video, from_attributes=True)
    return columns.model_dump(mode="json", by_alias=False)


async def public_events(video_id: UUID) -> list[Event]:
    return await Event.filter(video_id=video_id, number__isnull=False).order_by("number")


async def event_types(video_id: UUID) -> list[str]:
    return [str(event.type).removeprefix("video.") for event in await public_events(video_id)]


def edits_of(video: Video, resources: WebContext, work_dir: Path) -> list[tuple[Change, list[str]]]:
    """Return changes of a ready video, and the types of the events of each."""
    edit = partial(metadata.patch_video, video.id, versions=None)
    access = VideoAccess(visibility=Visibility.PRIVATE, signed_in_only=True)
    text = CaptionChange(content=CaptionText.of([]))
    chapter = Chapter(0.0, "Beginning")

    async def replace_poster() -> None:
        await posters.request_poster(video.id, time_s=0.0)
        await posters.make_poster(video.id, 1, tools_for(resources, work_dir))

    async def add_rendition() -> None:
        row = await make_attempt(video, number=9)
        attempt = OpenAttempt(
            id=row.id, version=await video.current_version(), number=9, targets=("180p",)
        )
        await renditions.finish_pass(attempt)

    async def fail() -> None:
        await change_video(video.id, status="processing", published_attempt=None)
        async with transaction():
            await attempts.fail_version(video.id, code="too_long", message="Too long.")

    return [
        (partial(edit, title="New", passthrough="a"), ["updated"]),
        (partial(edit, tags="new", visibility=Visibility.UNLISTED), ["updated", "updated"]),
        (partial(save_access, video.id, access, versions=None), ["updated"]),
        (partial(captions.put, video.id, "en", text), ["captions_changed"]),
        (partial(captions.remove, video.id, "en", versions=None), ["captions_changed"]),
        (partial(chapters.save_chapters, video.id, [chapter], versions=None), ["chapters_changed"]),
        (replace_poster, ["updated"]),
        (add_rendition, ["rendition_added", "completed"]),
        (fail, ["failed"]),
        (partial(publishing.retry_transcode, video), ["updated"]),
        (partial(deletion.delete_undoably, video.id), ["deleted"]),
        (partial(deletion.undo_deletion, video.id), ["updated"]),
    ]


async def test_every_kind_of_change_has_an_event_with_the_record_after_it(
    client: Client, resources: WebContext, short_video: Path, tmp_path: Path
) -> None:
    video = await ready_video(client, resources, short_video, tmp_path)
    types = ["created", "ready", "completed"]
    assert await event_types(video.id) == types
    for change, added in edits_of(video, resources, tmp_path):
        await change()
        types += added
        assert await event_types(video.id) == types
        last = (await public_events(video.id))[-1]
        assert last.sequence == len(types)
        record = await read_record(video.id)
        assert last.data == (audience_columns(record) if added == ["deleted"] else record)
    await deletion.delete_video(video.id)
    assert await event_types(video.id) == [*types, "deleted"]
    assert not any("title" in (event.data or {}) for event in await public_events(video.id))


async def test_events_have_the_record_of_the_commit_and_no_event_survives_a_rollback() -> None:
    video = await make_row()

    async def change_and_fail() -> None:
        async with transaction():
            await record_action(AuditAction.VIDEO_EDITED, video.id)
            raise PortalError

    async with transaction():
        await record_action(AuditAction.VIDEO_EDITED, video.id, detail={"fields": "title"})
        with pytest.raises(PortalError):
            await change_and_fail()
        await record_outcome(EventType.FAILED, video.id)
        await change_video(video.id, title="Last")
    with pytest.raises(PortalError):
        await change_and_fail()
    edited, failed = await public_events(video.id)
    assert (edited.type, failed.type) == ("video.updated", "video.failed")
    assert edited.data == failed.data == await read_record(video.id)
    with pytest.raises(TypeError, match="No transaction is open"):
        await record_outcome(EventType.FAILED, video.id)


async def test_numbers_become_visible_in_ascending_order() -> None:
    """A transaction that is slow before its commit delays no other, and has a later number."""
    slow_video = await make_row(1)
    quick_video = await make_row(2)
    has_begun = asyncio.Event()
    may_end = asyncio.Event()

    async def change_slowly() -> None:
        async with transaction():
            await record_outcome(EventType.UPDATED, slow_video.id)
            has_begun.set()
            await may_end.wait()

    slow = asyncio.create_task(change_slowly())
    await has_begun.wait()
    async with transaction():
        await record_outcome(EventType.UPDATED, quick_video.id)
    [quick_event] = await public_events(quick_video.id)
    assert await public_events(slow_video.id) == []
    may_end.set()
    await slow
    [slow_event] = await public_events(slow_video.id)
    assert (slow_event.number or 0) > (quick_event.number or 0)
