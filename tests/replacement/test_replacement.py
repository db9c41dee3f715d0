"""Replacement of a video's file: the former one plays until the new one is ready, and returns."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from api_client import Client, answered, presign, rows, run_sql
from passes import first_attempt, make_source, published_file, ready_video, tools_for
from running_portal import make_video, run_ffmpeg
from stored_objects import stored

from portal import errors
from portal.database.connection import transaction
from portal.database.event_models import Event
from portal.database.models import Attempt, Caption, Deletion, Rendition, Version, Video
from portal.features import VERSION_HOOKS
from portal.features.captions import service as captions
from portal.features.captions.service import CaptionChange
from portal.features.deletion import service as deletion
from portal.features.posters import service as posters
from portal.features.replacement import service as replacement
from portal.features.replacement.service import Replacement
from portal.films import attempts, passes, removal, renditions
from portal.films.attempts import Failure
from portal.films.captions import CaptionText
from portal.films.versions import VersionState
from portal.http.composition import WebContext
from portal.maintenance import janitor
from portal.videos import publishing

pytestmark = pytest.mark.shared_app

# Lets a former file expire.
AGE = "UPDATE versions SET retired_at = retired_at - interval '8 days' WHERE retired_at IS NOT NULL"


@dataclass(frozen=True)
class Replaced:
    """Ready video whose file is replaced through the portal's functions."""

    video: Video
    client: Client
    resources: WebContext
    work_dir: Path

    async def begin(self, file: Path | bytes, *, name: str = "new.mp4") -> str:
        """Upload a file, let it replace the present one, and return its key."""
        key = (await presign(self.client))["key"]
        await self.resources.storage.put(key, file, content_type="video/mp4")
        await self.repeat(key, name=name)
        return key

    async def repeat(self, key: str, *, name: str = "new.mp4") -> None:
        await replacement.request(
            self.video.id,
            key=key,
            file_name=name,
            storage=self.resources.storage,
            max_source_bytes=0,
            owner_id=None,
        )

    async def process(self) -> None:
        """Run the first pass over the file that waits, as a worker does."""
        [version] = await Version.filter(video_id=self.video.id, status="processing")
        tools = tools_for(self.resources, self.work_dir)
        await passes.publish_version(version.id, tools, may_encode=True, hooks=VERSION_HOOKS)

    async def withdraw(self) -> None:
        resources = self.resources
        await replacement.withdraw(self.video.id, storage=resources.storage, hooks=VERSION_HOOKS)

    async def read(self) -> Replacement:
        present = await replacement.read(self.video.id)
        assert present is not None
        return present

    async def record(self) -> dict[str, Any]:
        return await answered(await self.client.get(f"/api/videos/{self.video.id}"))

    async def playlist(self) -> str:
        """Return the address of a media playlist that the stream names now."""
        address = f"/hls/{self.video.id}/master.m3u8"
        text = await (await self.client.get(address)).get_data(as_text=True)
        name = next(line for line in text.splitlines() if line.endswith(".m3u8"))
        return f"/hls/{self.video.id}/{name}"

    async def plays(self, playlist: str) -> bool:
        return (await self.client.get(playlist)).status_code == 200

    async def events(self) -> list[str]:
        events = Event.filter(video_id=self.video.id, number__isnull=False).order_by("number")
        return [str(event.type).removeprefix("video.") for event in await events]

    async def tidy(self) -> None:
        later = datetime.now(UTC) + timedelta(days=3)
        resources = self.resources
        await janitor.tidy(resources.config, storage=resources.storage, now=later)


@pytest.fixture
async def replaced(
    client: Client, resources: WebContext, short_video: Path, tmp_path: Path
) -> Replaced:
    video = await ready_video(client, resources, short_video, tmp_path)
    return Replaced(video, client, resources, tmp_path)


async def test_former_file_plays_until_the_new_one_is_ready_and_a_day_longer(
    replaced: Replaced, tmp_path: Path
) -> None:
    video = replaced.video
    change = CaptionChange(content=CaptionText.of([]))
    await captions.add(video.id, "en", change)
    await posters.request_poster(video.id, time_s=1.0)
    await posters.make_poster(video.id, 1, tools_for(replaced.resources, tmp_path))
    before = await replaced.record()
    former_playlist = await replaced.playlist()
    key = await replaced.begin(make_video(tmp_path / "new.mp4", seconds=3))
    assert await replaced.record() == before
    assert (await replaced.read()).state is VersionState.PROCESSING
    await replaced.repeat(key)
    await replaced.process()

    after = await replaced.record()
    unchanged = {"id", "title", "description", "categoryIds", "tags", "status", "createdAt"}
    unchanged |= {"playbackUrl"}
    assert {name for name in before if before[name] == after[name]} >= unchanged
    assert (after["storageKey"], after["fileName"]) == (key, "new.mp4")
    assert after["transcodeJobId"] != before["transcodeJobId"]
    changed = await Video.get(id=video.id)
    assert changed.duration_s == pytest.approx(3, abs=0.1)
    assert (await replaced.client.get(f"/videos/{video.id}/poster.jpg")).status_code == 302
    assert changed.captions_job_id is not None
    await captions.store(video.id, tools_for(replaced.resources))
    playlist = await replaced.playlist()
    assert playlist != former_playlist
    assert await replaced.plays(former_playlist)
    assert (await replaced.events())[-1] == "replaced"
    await run_sql(replaced.resources.config.database_url, AGE)
    assert not await replaced.plays(former_playlist)
    assert await replaced.plays(playlist)


async def test_failed_or_cancelled_file_is_removed_and_leaves_the_present_one(
    replaced: Replaced,
) -> None:
    storage = replaced.resources.storage
    before = await replaced.record()
    notes = await replaced.begin(b"These are notes.")
    await replaced.process()
    assert await storage.list_some(notes) == []
    failed = await replaced.read()
    assert (failed.state, failed.file_name) == (VersionState.FAILED, "new.mp4")
    assert failed.failure is not None
    assert failed.failure.message
    after = await replaced.record()
    assert {**after, "updatedAt": before["updatedAt"]} == before
    assert await replaced.plays(await replaced.playlist())
    assert (await replaced.events())[-1] == "replacement_failed"
    await replaced.withdraw()
    assert await replacement.read(replaced.video.id) is None
    with pytest.raises(errors.ReplacementNotFound):
        await replaced.withdraw()
    cancelled = await replaced.begin(b"These are others.")
    assert await storage.list_some(cancelled) == [cancelled]
    await replaced.withdraw()
    assert await storage.list_some(cancelled) == []
    assert await storage.list_some(replaced.video.storage_key) == [replaced.video.storage_key]


async def test_replacement_is_cancelled_while_a_worker_makes_it(
    replaced: Replaced, short_video: Path
) -> None:
    key = await replaced.begin(short_video)
    [version] = await Version.filter(storage_key=key)
    attempt = await attempts.begin(version.id, worker="test")
    assert attempt is not None
    await replaced.withdraw()
    with pytest.raises(attempts.LeaseLost):
        await attempts.hold(attempt)
    assert await attempts.begin(version.id, worker="test") is None
    assert await replacement.read(replaced.video.id) is None
    # The janitor removes the uploaded file and the output.
    await run_sql(
        replaced.resources.config.database_url,
        "UPDATE attempts SET lease_expires_at = now() - interval '2 days',"
        " started_at = now() - interval '2 days'",
    )
    await replaced.tidy()
    assert not await Version.exists(id=version.id)
    assert await replaced.resources.storage.list_some(key) == []
    assert await replaced.plays(await replaced.playlist())


def with_subtitles(film: Path, words: str, folder: Path) -> Path:
    """Make a copy of a film with a caption."""
    path = folder / f"{words}.srt"
    path.write_text(f"1\n00:00:00,250 --> 00:00:00,750\n{words}\n", encoding="utf-8")
    inputs = ("-i", str(film), "-i", str(path))
    return run_ffmpeg(folder / f"{words}.mp4", *inputs, "-c", "copy", "-c:s", "mov_text")


async def test_subtitles_of_the_new_file_take_the_place_of_the_former_ones(
    replaced: Replaced, short_video: Path, tmp_path: Path
) -> None:
    for words in ("Ahoy", "Goodbye"):
        await replaced.begin(with_subtitles(short_video, words, tmp_path))
        await replaced.process()
        [track] = await Caption.filter(video_id=replaced.video.id)
        assert words in (track.text or "")
    await replaced.withdraw()
    [track] = await Caption.filter(video_id=replaced.video.id)
    assert "Ahoy" in (track.text or "")


async def test_former_file_comes_back_within_a_week(
    replaced: Replaced, short_video: Path, tmp_path: Path
) -> None:
    before = await replaced.record()
    await replaced.begin(with_subtitles(short_video, "Ahoy", tmp_path))
    await replaced.process()
    # Tracks of a file come and go with it.
    tracks = Caption.filter(video_id=replaced.video.id, source="file")
    assert await tracks.exists()
    live = await replaced.read()
    assert live.state is VersionState.LIVE
    assert live.revertible_until is not None
    assert live.revertible_until > datetime.now(UTC) + timedelta(days=6)
    second = await replaced.record()
    second_playlist = await replaced.playlist()
    await replaced.withdraw()
    assert not await tracks.exists()
    back = await replaced.record()
    assert {**back, "updatedAt": before["updatedAt"]} == before
    for playlist in (await replaced.playlist(), second_playlist):
        assert await replaced.plays(playlist)
    assert (await replaced.events())[-1] == "replaced"

    # Going back can be undone, too, until the other file is too old.
    await replaced.withdraw()
    assert (await replaced.record())["storageKey"] == second["storageKey"]
    assert await tracks.exists()
    await run_sql(replaced.resources.config.database_url, AGE)
    assert await replacement.read(replaced.video.id) is None
    with pytest.raises(errors.ReplacementNotFound):
        await replaced.withdraw()
    await replaced.tidy()
    resources = replaced.resources
    keys = await stored(resources.storage, replaced.video.id, before["storageKey"])
    numbers = {key.split("/")[2] for key in keys}
    assert numbers == {second_playlist.split("/")[3]}
    assert await Attempt.filter(video_id=replaced.video.id).count() == 1
    assert await replaced.plays(await replaced.playlist())


async def test_requests_that_are_refused_leave_everything(
    replaced: Replaced, short_video: Path
) -> None:
    key = await replaced.begin(short_video)
    with pytest.raises(errors.ReplacementInProgress):
        await replaced.begin(short_video)
    await replaced.repeat(key)
    other = await answered(await replaced.client.get(f"/api/videos/{replaced.video.id}"))
    await replaced.repeat(other["storageKey"])
    with pytest.raises(errors.InvalidRequest):
        await replaced.repeat("videos/" + 32 * "0" + ".mp4")
    await replaced.process()
    with pytest.raises(errors.UploadNotFound):
        await replaced.repeat((await presign(replaced.client))["key"])
    with pytest.raises(errors.KeyAlreadyUsed):
        await replaced.repeat(other["storageKey"])
    assert await Version.filter(video_id=replaced.video.id).count() == 2
    assert await Version.filter(video_id=replaced.video.id, status="failed").count() == 0


async def test_deletion_removes_all_files(replaced: Replaced, short_video: Path) -> None:
    before = await replaced.record()
    await replaced.begin(short_video)
    await replaced.process()
    key = await replaced.begin(short_video)
    await deletion.delete_video(replaced.video.id)
    storage = replaced.resources.storage
    database_url = replaced.resources.config.database_url
    await run_sql(database_url, "UPDATE deletions SET settles_at = now()")
    await removal.remove_files(replaced.video.id, tools_for(replaced.resources))
    assert not await Deletion.exists()
    assert await stored(storage, replaced.video.id, before["storageKey"]) == []
    assert await storage.list_some(key) == []
    assert await rows(database_url, "SELECT id FROM versions") == []


async def test_replaced_file_is_not_completed_until_it_comes_back(
    client: Client, resources: WebContext, tmp_path: Path, short_video: Path
) -> None:
    source = make_source(tmp_path / "long.mp4", seconds=4, size="640x360", rate=5)
    video = await ready_video(client, resources, source, tmp_path)
    replaced = Replaced(video, client, resources, tmp_path)
    former_id = video.version_id
    await Rendition.filter(version_id=former_id, name="240p").update(state="planned")
    former = await Version.get(id=former_id)
    async with transaction():
        planned = Rendition.filter(version_id=former_id, state="planned")
        await renditions.plan_again(former, planned)
    attempt = await renditions.begin_next(former_id, worker="test")
    assert attempt is not None
    await replaced.begin(short_video)
    await replaced.process()
    # The worker ends its pass, and nothing more is queued.
    await passes.make_missing(attempt, tools_for(resources, tmp_path))
    assert (await Version.get(id=former_id)).complete_job_id is None
    assert await renditions.begin_next(former_id, worker="test") is None
    assert (await replaced.events())[-1] in ("replaced", "completed")

    await Rendition.filter(version_id=former_id, name="240p").update(state="planned")
    await replaced.withdraw()
    assert (await Version.get(id=former_id)).complete_job_id is not None
    assert await renditions.begin_next(former_id, worker="test") is not None


async def test_failed_file_that_is_tried_again_does_not_come_back(
    client: Client, resources: WebContext, tmp_path: Path, short_video: Path
) -> None:
    video = await published_file(client, resources, short_video)
    replaced = Replaced(video, client, resources, tmp_path)
    with pytest.raises(errors.NotPlayable):
        await replaced.begin(short_video)
    await attempts.reject(await first_attempt(video), Failure("transcode_failed"), message="No.")
    key = await replaced.begin(short_video)
    await publishing.retry_transcode(video)
    former = await first_attempt(video)
    [pending] = await Version.filter(storage_key=key)
    tools = tools_for(resources, tmp_path)
    await passes.publish_version(pending.id, tools, may_encode=True, hooks=VERSION_HOOKS)
    await passes.make_playable(former, tools, hooks=VERSION_HOOKS)
    assert (await replaced.record())["storageKey"] == key
    assert await replacement.read(video.id) is None
