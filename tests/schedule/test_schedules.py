"""Schedules of videos: what is due is done once, and what people change is checked."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from audit_lines import lines
from page_rows import change_video
from playable_videos import ready_video
from signed_in import Sender, make_video, person

from portal.accounts.permissions import EVERYONES
from portal.database.account_models import Account, Role
from portal.database.connection import execute
from portal.database.event_models import Event
from portal.database.models import Deletion, Video, VideoStatus, Visibility
from portal.database.work_models import Schedule
from portal.errors import InvalidRequest, NotAllowed
from portal.features.deletion.service import delete_undoably, undo_deletion
from portal.features.schedule import service
from portal.features.schedule.service import (
    ScheduleChanged,
    Times,
    apply_due,
    read_times,
    save_times,
)
from portal.videos.visibility import recorded_access
from portal.worker.run import worker_tasks

pytestmark = [pytest.mark.shared_app, pytest.mark.usefixtures("app")]
PRIVATE = {"visibility": Visibility.PRIVATE}
SITE = "https://blog.example.org"
PASS_TIME = """
UPDATE schedules SET publish_at = publish_at - %s, unpublish_at = unpublish_at - %s,
  delete_at = delete_at - %s
"""


def ahead(**delta: float) -> datetime:
    """Return a whole minute in the future."""
    minute = datetime.now(UTC).replace(second=0, microsecond=0)
    return minute + timedelta(minutes=1) + timedelta(**delta)


async def plan(video: Video, **times: datetime) -> None:
    await save_times(video.id, Times(**times), versions=None, by=EVERYONES)


async def pass_time(**delta: float) -> None:
    """Move all schedules this far into the past, as if time had passed."""
    elapsed = timedelta(**delta)
    await execute(PASS_TIME, elapsed, elapsed, elapsed)


async def event_types(video_id: UUID) -> list[str | None]:
    events = Event.filter(video_id=video_id, number__isnull=False).order_by("number")
    return [event.type for event in await events]


async def faults_of(video: Video, **times: Any) -> dict[str, str]:
    with pytest.raises(InvalidRequest) as refused:
        await plan(video, **times)
    return refused.value.by_field


async def test_video_becomes_public_private_and_is_deleted_at_its_times(olga: Account) -> None:
    shares = {"admitted_ids": [olga.id], "editor_ids": [olga.id], "embed_origins": [SITE]}
    video = await ready_video(olga, **PRIVATE, **shares, signed_in_only=True)
    times = {"publish_at": ahead(hours=1), "unpublish_at": ahead(hours=2)}
    await plan(video, **times, delete_at=ahead(days=30))
    await apply_due()
    assert await event_types(video.id) == []
    await pass_time(hours=1, minutes=1)
    await apply_due()
    public = await Video.get(id=video.id)
    assert (public.visibility, public.signed_in_only) == (Visibility.PUBLIC, False)
    assert recorded_access(public).shares == recorded_access(video).shares
    assert public.embed_origins == [SITE]
    assert set((await read_times(video.id)).by_name) == {"unpublish_at", "delete_at"}
    await pass_time(hours=1)
    await apply_due()
    assert (await Video.get(id=video.id)).visibility is Visibility.PRIVATE
    assert set((await read_times(video.id)).by_name) == {"delete_at"}
    await pass_time(days=30)
    await apply_due()
    assert not await Video.exists(id=video.id)
    assert await Deletion.exists(video_id=video.id)
    assert not await Schedule.exists(video_id=video.id)
    assert await event_types(video.id) == ["video.updated", "video.updated", "video.deleted"]
    done = [line for line in await lines() if line["actorKind"] == "portal"]
    assert [line["action"] for line in done] == ["video.access_changed"] * 2 + ["video.deleted"]


async def test_of_times_that_passed_together_the_last_counts() -> None:
    hidden = await ready_video(**PRIVATE, signed_in_only=True)
    deleted = await ready_video(**PRIVATE)
    times = {"publish_at": ahead(hours=1), "unpublish_at": ahead(hours=2)}
    await plan(hidden, **times)
    await plan(deleted, **times, delete_at=ahead(hours=3))
    await pass_time(days=1)
    await apply_due()
    # It was private all the time.
    video = await Video.get(id=hidden.id)
    assert (video.visibility, video.signed_in_only) == (Visibility.PRIVATE, True)
    assert await event_types(hidden.id) == []
    assert not await Schedule.exists()
    assert await event_types(deleted.id) == ["video.deletion_due", "video.deleted"]


@pytest.mark.parametrize("workers", [1, 2, 5])
async def test_what_is_due_is_done_once_by_any_number_of_workers(workers: int) -> None:
    videos = [await ready_video(**PRIVATE) for _ in range(6)]
    for video in videos[:3]:
        await plan(video, publish_at=ahead(hours=1))
    for video in videos[3:]:
        await plan(video, delete_at=ahead(days=20))
    await pass_time(days=21)
    await asyncio.gather(*(apply_due() for _ in range(workers)))
    await apply_due()
    for video in videos[:3]:
        assert await event_types(video.id) == ["video.updated"]
    for video in videos[3:]:
        assert await event_types(video.id) == ["video.deleted"]


async def test_deletion_by_a_person_at_that_moment_is_no_deadlock(owner: Sender) -> None:
    for _ in range(5):
        video = await ready_video(**PRIVATE)
        await plan(video, publish_at=ahead(hours=1))
        await pass_time(hours=2)
        deleting = owner.ask("DELETE", f"/api/videos/{video.id}")
        answer, *_ = await asyncio.gather(deleting, apply_due(), apply_due())
        assert answer.status_code == 202
        assert not await Schedule.exists(video_id=video.id)


async def test_video_that_fails_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    videos = [await ready_video(**PRIVATE) for _ in range(3)]
    for number, video in enumerate(videos):
        await plan(video, publish_at=ahead(minutes=number))
    await pass_time(hours=1)
    save_access = service.save_access

    async def fail(video_id: UUID, *values: Any, **named: Any) -> None:
        if video_id == videos[0].id:
            raise ValueError("odd")
        await save_access(video_id, *values, **named)

    monkeypatch.setattr(service, "save_access", fail)
    await apply_due()
    assert await Schedule.all().values_list("video_id", flat=True) == [videos[0].id]
    monkeypatch.undo()
    await apply_due()
    assert not await Schedule.exists()


@pytest.mark.parametrize("status", [VideoStatus.PROCESSING, VideoStatus.FAILED])
async def test_video_in_any_state_follows_its_schedule(status: VideoStatus) -> None:
    video = await make_video(None, **PRIVATE, status=status)
    await plan(video, publish_at=ahead(hours=1))
    await pass_time(hours=2)
    await apply_due()
    assert (await Video.get(id=video.id)).visibility is Visibility.PUBLIC


async def test_hidden_video_waits_until_its_deletion_is_undone() -> None:
    video = await ready_video(**PRIVATE)
    await plan(video, publish_at=ahead(hours=1))
    await pass_time(hours=2)
    await delete_undoably(video.id)
    await apply_due()
    assert (await Video.get(id=video.id)).visibility is Visibility.PRIVATE
    await undo_deletion(video.id)
    await apply_due()
    assert (await Video.get(id=video.id)).visibility is Visibility.PUBLIC


async def test_time_that_was_changed_meanwhile_does_nothing() -> None:
    video = await ready_video(**PRIVATE)
    await plan(video, delete_at=ahead(days=1))
    await pass_time(days=2)
    await plan(video, delete_at=ahead(days=50))
    await apply_due()
    assert await Video.exists(id=video.id)


async def test_notice_of_a_deletion_is_sent_once_a_week_before() -> None:
    late = await ready_video(**PRIVATE)
    await plan(late, delete_at=ahead(days=8), publish_at=ahead(days=2))
    await apply_due()
    assert await event_types(late.id) == []
    await pass_time(days=1, hours=1)
    for _ in range(2):
        await apply_due()
    assert await event_types(late.id) == ["video.deletion_due"]
    # It is sent at once if the deletion is near, and again only for another time.
    near = await ready_video(**PRIVATE)
    delete_at = ahead(days=3)
    await plan(near, delete_at=delete_at)
    await plan(near, delete_at=delete_at, publish_at=ahead(days=1))
    await apply_due()
    assert await event_types(near.id) == ["video.deletion_due"]
    await plan(near, delete_at=ahead(days=4))
    assert await event_types(near.id) == ["video.deletion_due"] * 2


async def test_times_are_whole_minutes_in_the_future_and_in_their_order() -> None:
    video = await ready_video(**PRIVATE)
    at = ahead(days=1)
    later = at + timedelta(minutes=1)
    assert await faults_of(video, publish_at=at.replace(second=30)) == {
        "publishAt": "Give a whole minute, without seconds."
    }
    assert await faults_of(video, unpublish_at=at - timedelta(days=2)) == {
        "unpublishAt": "Give a time in the future."
    }
    assert await faults_of(video, delete_at=at + timedelta(days=3700)) == {
        "deleteAt": "Give a time within the next 10 years."
    }
    assert await faults_of(video, publish_at=at, unpublish_at=at) == {
        "unpublishAt": "Give a time after the video becomes public."
    }
    for times in ({"publish_at": later}, {"unpublish_at": later}):
        assert await faults_of(video, **times, delete_at=later) == {
            "deleteAt": "Give a time after the video becomes public or private."
        }
    assert not await Schedule.exists()
    await plan(video, publish_at=at, unpublish_at=later, delete_at=later + timedelta(minutes=1))


async def test_publication_is_for_videos_that_are_not_public() -> None:
    video = await ready_video()
    assert await faults_of(video, publish_at=ahead(days=1)) == {
        "publishAt": "This video is public now. Make it private or unlisted first."
    }
    await plan(video, unpublish_at=ahead(days=1))
    # One that is made public earlier keeps its other times, which can be changed.
    await change_video(video.id, visibility=Visibility.UNLISTED)
    await plan(video, publish_at=ahead(hours=1), unpublish_at=ahead(days=1))
    await change_video(video.id, visibility=Visibility.PUBLIC)
    await plan(video, publish_at=ahead(hours=1), unpublish_at=ahead(days=2))
    await pass_time(hours=2)
    await apply_due()
    assert await event_types(video.id) == []
    assert set((await read_times(video.id)).by_name) == {"unpublish_at"}


async def test_change_is_recorded_once_and_only_of_the_version_that_was_read(
    olga: Account,
) -> None:
    video = await ready_video(olga, **PRIVATE)
    none = await read_times(video.id)
    at = ahead(days=1)
    for _ in range(2):
        await save_times(video.id, Times(publish_at=at), versions={none.version}, by=person(olga))
    with pytest.raises(ScheduleChanged):
        await save_times(video.id, Times(), versions={none.version}, by=person(olga))
    saved = await read_times(video.id)
    await save_times(video.id, Times(), versions={saved.version}, by=person(olga))
    assert await read_times(video.id) == none
    changes = [line for line in await lines() if line["action"] == "video.schedule_changed"]
    texts = [at.strftime("%Y-%m-%dT%H:%M:00.000000Z"), "never"]
    assert [line["detail"] for line in changes] == [{"publish_at": text} for text in texts]


async def test_only_people_who_may_delete_a_video_set_or_change_its_deletion(
    olga: Account, edith: Account
) -> None:
    video = await ready_video(olga, **PRIVATE, admitted_ids=[edith.id], editor_ids=[edith.id])
    edits = person(edith)
    assert edits.role is Role.EDITOR
    await save_times(video.id, Times(publish_at=ahead(days=1)), versions=None, by=edits)
    delete_at = ahead(days=9)
    with pytest.raises(NotAllowed, match="Only people who may delete this video"):
        await save_times(video.id, Times(delete_at=delete_at), versions=None, by=edits)
    await plan(video, delete_at=delete_at)
    with pytest.raises(NotAllowed):
        await save_times(video.id, Times(), versions=None, by=edits)
    times = Times(publish_at=ahead(days=2), delete_at=delete_at)
    await save_times(video.id, times, versions=None, by=edits)
    assert await read_times(video.id) == times


async def test_worker_runs_the_work_of_each_minute() -> None:
    video = await ready_video(**PRIVATE)
    await plan(video, publish_at=ahead(hours=1))
    await pass_time(hours=2)
    tasks = worker_tasks()
    await tasks.tasks["each_minute"].func(timestamp=0)
    assert (await Video.get(id=video.id)).visibility is Visibility.PUBLIC
    minutes = {task.cron for task in tasks.periodic_registry.periodic_tasks.values()}
    assert "* * * * *" in minutes
