"""Files to save are made once, on demand, from the stored segments, and removed a day later."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from aged_videos import hence, tidy
from api_client import Client, run_sql
from passes import ready_video, tools_for
from stored_objects import stored
from upload_client import multipart_uploads

from portal.database.models import Publication, Rendition, Video
from portal.database.work_models import Download
from portal.errors import DownloadsBusy
from portal.events.log import Actor, act_as
from portal.features.downloads import service as downloads
from portal.features.downloads.service import FileState, SavedFile
from portal.http.composition import WebContext
from portal.maintenance.recovery import recover
from portal.storage.bucket import Multiparts
from portal.storage.objects import SMALLEST_PART_BYTES, output_prefix
from portal.videos import metadata

pytestmark = pytest.mark.shared_app()


@dataclass(frozen=True)
class Saving:
    """Downloads of a ready video, requested by viewers and made by a worker."""

    video: Video
    name: str
    resources: WebContext
    work_dir: Path

    async def request(self) -> SavedFile:
        return await downloads.request_file(self.video.id, self.name)

    async def make(self) -> SavedFile:
        """Carry out the last request as a worker does."""
        row = await Download.get(video_id=self.video.id, name=self.name)
        tools = tools_for(self.resources, self.work_dir)
        await downloads.make_file(self.video.id, row.id, tools)
        return await downloads.find_file(await Video.get(id=self.video.id), self.name)

    async def end_jobs(self) -> None:
        database_url = self.resources.config.database_url
        await run_sql(database_url, "UPDATE procrastinate_jobs SET status = 'succeeded'")

    async def stored(self) -> list[str]:
        keys = await stored(self.resources.storage, self.video.id)
        return [key for key in keys if "/downloads/" in key]


@pytest.fixture
async def saving(
    client: Client, resources: WebContext, short_video: Path, tmp_path: Path
) -> Saving:
    video = await ready_video(client, resources, short_video, tmp_path)
    files = await downloads.list_files(video)
    assert [(file.kind, file.state) for file in files] == [
        ("original", "ready"),
        ("video", "absent"),
        ("sound", "absent"),
    ]
    return Saving(video, files[1].name, resources, tmp_path)


async def test_simultaneous_requests_make_one_file_that_is_removed_a_day_later(
    saving: Saving,
) -> None:
    first, second = await asyncio.gather(saving.request(), saving.request())
    assert first.state is second.state is FileState.PREPARING
    assert first.is_estimate
    lost = await Download.get()
    database_url = saving.resources.config.database_url
    await run_sql(database_url, f"DELETE FROM procrastinate_jobs WHERE id = {lost.job_id}")
    await recover()
    assert (await Download.get()).job_id > lost.job_id

    file = await saving.make()
    assert file.state is FileState.READY
    assert not file.is_estimate
    assert file.key is not None
    # A job that runs again makes no other file.
    row = await Download.get()
    assert await saving.make() == file
    assert await Download.get() == row
    assert (await saving.request()).state is FileState.READY
    content = await saving.resources.storage.get(file.key)
    assert len(content) == file.size_bytes
    signer = saving.resources.storage.public
    address = await signer.presign_download(file.key, file_name=file.file_name, ttl_s=60)
    async with (
        aiohttp.ClientSession() as session,
        session.get(address, headers={"Range": "bytes=4-11"}) as answer,
    ):
        assert answer.content_disposition is not None
        assert answer.content_disposition.filename == file.file_name
        assert answer.content_type == "video/mp4"
        assert await answer.read() == content[4:12]

    await Download.all().update(requested_at=hence(hours=-23))
    assert (await tidy(saving.resources))["downloads"] == 0
    await Download.all().update(requested_at=hence(hours=-25))
    # A job that is recorded as unfinished could still write the file.
    assert (await tidy(saving.resources))["downloads"] == 0
    assert await saving.stored() == [file.key]
    await saving.end_jobs()
    assert (await tidy(saving.resources))["downloads"] == 1
    assert await saving.stored() == []
    assert not await Download.exists()


async def test_file_of_several_parts_is_stored_after_an_interruption(
    saving: Saving, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = bytes(SMALLEST_PART_BYTES) + b"the second part"
    interruptions = [asyncio.CancelledError()]
    put_part = Multiparts.put_part

    async def join(*_: object, folder: Path, **options: object) -> Path:
        path = folder / "joined.mp4"
        path.write_bytes(content)
        return path

    async def put(parts: Multiparts, key: str, multipart_id: str, number: int, data: bytes) -> None:
        if number == 2 and interruptions:
            raise interruptions.pop()
        await put_part(parts, key, multipart_id, number, data)

    monkeypatch.setattr(downloads, "join_tracks", join)
    monkeypatch.setattr(Multiparts, "put_part", put)
    await saving.request()
    with pytest.raises(asyncio.CancelledError):
        await saving.make()
    assert (await Download.get()).tries == 0
    file = await saving.make()
    assert file.key is not None
    assert await saving.resources.storage.get(file.key) == content
    assert await multipart_uploads(saving.resources, file.key) == []


async def test_file_of_a_deleted_or_renamed_video_is_removed(saving: Saving) -> None:
    await saving.request()
    await saving.make()
    await metadata.patch_video(saving.video.id, versions=None, title="Another title")
    renamed = await downloads.find_file(await Video.get(id=saving.video.id), saving.name)
    assert renamed.state is FileState.ABSENT
    await saving.request()
    # The video is deleted while a worker makes the second file.
    row = await Download.get(video_id=saving.video.id)
    await Publication.filter(id=saving.video.id).delete()
    assert await Download.filter(video_id=None).count() == 2
    await saving.resources.storage.put(row.key or "", b"written late", content_type="video/mp4")

    await saving.end_jobs()
    assert (await tidy(saving.resources))["downloads"] == 2
    assert await saving.stored() == []


async def test_file_that_is_made_anew_replaces_the_outdated_one(saving: Saving) -> None:
    for title in ("One", "Two", "Three"):
        await metadata.patch_video(saving.video.id, versions=None, title=title)
        await saving.request()
        await saving.end_jobs()
        file = await saving.make()
        assert await saving.stored() == [file.key]
    assert await Download.all().count() == 1


async def test_one_address_does_not_take_all_places_of_the_queue(saving: Saving) -> None:
    for name in range(downloads.MAX_WAITING_OF_ONE):
        await Download.create(video_id=saving.video.id, name=name, requester="192.0.2.1")
    act_as(Actor("anyone", address="192.0.2.1"))
    with pytest.raises(DownloadsBusy, match="that you have requested"):
        await saving.request()
    act_as(Actor("anyone", address="192.0.2.2"))
    assert (await saving.request()).state is FileState.PREPARING
    # Nobody gets a place once all are taken.
    for name in range(100, 100 + downloads.MAX_WAITING):
        await Download.create(video_id=saving.video.id, name=name)
    await Download.filter(name=saving.name).delete()
    with pytest.raises(DownloadsBusy, match="Many files"):
        await saving.request()


async def test_failed_file_says_why_and_can_be_requested_again(saving: Saving) -> None:
    await saving.request()
    [track] = await Rendition.filter(version_id=saving.video.version_id, name=saving.name[:-4])
    key = f"{output_prefix(saving.video.id, track.attempt_number or 0)}{track.name}/init.mp4"
    init = await saving.resources.storage.get(key)
    await saving.resources.storage.delete(key)
    file = await saving.make()
    assert (file.state, file.error_code) == (FileState.FAILED, "rendition_unreadable")

    await saving.resources.storage.put(key, init, content_type="video/mp4")
    assert (await saving.request()).state is FileState.PREPARING
    assert (await saving.make()).state is FileState.READY
