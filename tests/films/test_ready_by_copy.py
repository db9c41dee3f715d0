"""Videos that are ready by copying the source's stream; other renditions follow."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from api_client import answered
from passes import (
    Worker,
    begun,
    first_attempt,
    make_source,
    states,
)
from running_portal import until
from yarl import URL

from portal.database.event_models import Event
from portal.database.models import Attempt, Outcome, Rendition, Video, VideoStatus
from portal.database.work_models import MadeSegment
from portal.films import passes, whole_films
from portal.films.outputs import open_rendition
from portal.transcoding.copying.remux import Remuxed, remux
from portal.transcoding.errors import CopyUndeliverable
from portal.transcoding.planning import ladder


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a film with a key frame each 5 s."""
    path = tmp_path_factory.mktemp("media") / "film.mp4"
    return make_source(path, "-g", "25", "-b:v", "1M", seconds=21, rate=5)


async def made_later(video: Video, worker: Worker) -> list[tuple[str, ...]]:
    """Complete a video's ladder; return the targets of each pass."""
    targets = []
    while (await Video.get(id=video.id)).complete_job_id is not None:
        attempt = await begun(video.id)
        await passes.make_missing(attempt, worker.tools)
        targets.append(attempt.targets)
    return targets


@pytest.mark.slow
async def test_a_video_is_ready_by_its_copy_and_completed_in_turn(
    worker: Worker, film: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ladder, "_APART_FROM_ENCODE_S", 0.3)
    video = await worker.look_into(await worker.publish(film))

    assert video.status is VideoStatus.READY
    assert (video.has_poster, video.has_storyboard) == (True, False)
    present = await states(video)
    assert {name for name, state in present.items() if state == "complete"} == {"720p", "audio"}

    assert await made_later(video, worker) == [("360p",), ("240p", "480p")]

    events = await Event.filter(video_id=video.id).order_by("number").values_list("type", flat=True)
    kinds = ("created", "ready", "rendition_added", "rendition_added")
    assert list(map(str, events)) == [f"video.{kind}" for kind in kinds]
    assert set((await states(video)).values()) == {"complete"}
    rows = await Rendition.filter(version_id=video.version_id, kind="video").order_by("position")
    assert [row.copied for row in rows] == [False, False, False, True]
    files = [await open_rendition(row, video.id, worker.resources.storage) for row in rows]
    playlists = [each.playlist for each in files]
    assert {playlist.target_duration_s for playlist in playlists} == {5}
    for playlist in playlists:
        assert playlist.starts_s == pytest.approx(playlists[-1].starts_s, abs=0.001)


@pytest.mark.slow
async def test_undeliverable_copy_is_encoded_with_a_note(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise CopyUndeliverable("parameter_sets")

    monkeypatch.setattr("portal.transcoding.encoding.copying.remux", refuse)
    short = make_source(worker.folder / "film.mp4", "-g", "25", seconds=6, size="320x180", rate=5)
    created = await worker.publish(short)

    video = await worker.look_into(created)
    assert video.status is VideoStatus.PROCESSING
    assert video.notes == ["copy_undeliverable"]
    assert not await Attempt.exists()
    assert not await Rendition.filter(copied=True).exists()

    video = await worker.make_playable(video)
    assert (video.status, video.notes) == (VideoStatus.READY, ["copy_undeliverable"])
    assert (await states(video))["180p"] == "complete"
    transcode = await (await worker.client.get(f"/api/videos/{video.id}/transcode")).get_json()
    assert [note["code"] for note in transcode["notes"]] == ["copy_undeliverable"]


@pytest.fixture
def shown_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show viewers every copy that is being made, however short."""
    monkeypatch.setattr(whole_films, "SHOWN_FROM_BYTES", 0)


async def previewed(worker: Worker, video: Video) -> str | None:
    """Return the playlist of the picture in the preview of a video, if it has one."""
    state = await answered(await worker.client.get(f"/api/videos/{video.id}/transcode"))
    if state["previewUrl"] is None:
        return None
    address = urljoin(URL(state["previewUrl"]).path, "720p/playlist.m3u8")
    return str(await (await worker.client.get(address)).get_data(as_text=True))


@pytest.mark.usefixtures("shown_copies")
async def test_copy_can_be_watched_while_it_is_made(worker: Worker, film: Path) -> None:
    video = await worker.publish(film)
    await worker.end_after(await first_attempt(video), segments=2)
    playlist = await previewed(worker, video) or ""
    assert "../../1/720p/00001.m4s" in playlist
    assert "ENDLIST" not in playlist
    # The next attempt copies into its own folder.
    video = await worker.look_into(video)
    assert (video.status, video.published_attempt) == (VideoStatus.READY, 2)
    assert not await MadeSegment.exists()


@pytest.mark.usefixtures("shown_copies")
@pytest.mark.parametrize("is_sound", [False, True])
async def test_shown_copy_that_fails_is_made_again_at_other_addresses(
    worker: Worker, film: Path, monkeypatch: pytest.MonkeyPatch, is_sound: bool
) -> None:
    video = await worker.publish(film)

    async def is_shown() -> bool:
        return await MadeSegment.filter(number=0).count() == 2

    async def fail_in_the_end(*args: Any, **options: Any) -> Remuxed:
        copied = await remux(*args, **options)
        if (await Attempt.get(video_id=video.id, outcome=None)).number == 1:
            await until(is_shown, timeout_s=10)
        if not is_sound:
            raise CopyUndeliverable("truncated")
        return replace(copied, dropped={"audio": "gaps"})

    monkeypatch.setattr("portal.transcoding.encoding.copying.remux", fail_in_the_end)
    with pytest.raises(whole_films.ShownCopyFailed):
        await worker.look_into(video)
    failed = await Attempt.get(video_id=video.id)
    assert (failed.outcome, failed.error_code) == (Outcome.HANDED_BACK, "copy_undeliverable")
    assert await previewed(worker, video) is None
    video = await worker.look_into(video)
    if not is_sound:
        assert (video.status, video.notes) == (VideoStatus.PROCESSING, ["copy_undeliverable"])
        video = await worker.make_playable(video)
    assert (video.status, video.published_attempt) == (VideoStatus.READY, 2)
    assert not await MadeSegment.exists()


@pytest.mark.parametrize(("lost", "status"), [(1, "ready"), (2, "processing")])
async def test_a_copy_whose_worker_was_killed_is_copied_again_once(
    worker: Worker, film: Path, lost: int, status: str
) -> None:
    video = await worker.publish(film)
    for _ in range(lost):
        attempt = await first_attempt(video)
        await Attempt.filter(id=attempt.id).update(lease_expires_at=datetime.now(UTC))
    video = await worker.look_into(video)
    # After two killed workers the file may be the cause, so the video is encoded.
    assert video.status == status


@pytest.mark.slow
async def test_copy_that_does_not_decode_is_replaced_by_an_encode(
    worker: Worker, film: Path
) -> None:
    """Players stop at faults that ffmpeg decodes around; a lower rendition reveals them."""
    damaged = worker.folder / "damaged.mp4"
    content = bytearray(film.read_bytes())
    # A poster is chosen from the part before, which would reveal the damage.
    late = len(content) * 4 // 5
    content[late : late + 200] = bytes(byte ^ 0x55 for byte in content[late : late + 200])
    damaged.write_bytes(content)
    video = await worker.look_into(await worker.publish(damaged))
    assert video.status is VideoStatus.READY

    assert await made_later(video, worker) == [("240p", "360p", "480p"), ("720p",)]
    rows = await Rendition.filter(version_id=video.version_id, kind="video")
    assert not any(row.copied for row in rows)
    assert {str(row.state) for row in rows} == {"complete"}
    assert "copy_undeliverable" in (await Video.get(id=video.id)).notes
