"""Videos that are ready by copying the source's stream; other renditions follow."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from api_client import Client
from passes import (
    begun,
    first_attempt,
    looked_into,
    make_playable,
    make_source,
    published_file,
    states,
    tools_for,
)

from portal.database.event_models import Event
from portal.database.models import Attempt, Rendition, Video, VideoStatus
from portal.films import passes
from portal.http.composition import WebContext
from portal.transcoding.errors import CopyUndeliverable
from portal.transcoding.packaging.hls import parse_media_playlist
from portal.transcoding.planning import ladder


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a film with a key frame each 5 s."""
    path = tmp_path_factory.mktemp("media") / "film.mp4"
    return make_source(path, "-g", "25", "-b:v", "1M", seconds=21, rate=5)


async def made_later(video: Video, resources: WebContext, work_dir: Path) -> list[tuple[str, ...]]:
    """Complete a video's ladder; return the targets of each pass."""
    targets = []
    while (await Video.get(id=video.id)).complete_job_id is not None:
        attempt = await begun(video.id)
        await passes.make_missing(attempt, tools_for(resources, work_dir))
        targets.append(attempt.targets)
    return targets


@pytest.mark.slow
async def test_a_video_is_ready_by_its_copy_and_completed_in_turn(
    client: Client,
    resources: WebContext,
    film: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ladder, "_APART_FROM_ENCODE_S", 0.3)
    video = await looked_into(await published_file(client, resources, film), resources, tmp_path)

    assert video.status is VideoStatus.READY
    assert (video.has_poster, video.has_storyboard) == (True, False)
    present = await states(video)
    assert {name for name, state in present.items() if state == "complete"} == {"720p", "audio"}

    assert await made_later(video, resources, tmp_path) == [("360p",), ("240p", "480p")]

    events = await Event.filter(video_id=video.id).order_by("number").values_list("type", flat=True)
    assert list(map(str, events)) == [
        "video.created",
        "video.ready",
        "video.rendition_added",
        "video.rendition_added",
    ]
    assert set((await states(video)).values()) == {"complete"}
    rows = await Rendition.filter(version_id=video.version_id, kind="video").order_by("position")
    assert [row.copied for row in rows] == [False, False, False, True]
    playlists = [
        parse_media_playlist(
            (
                await resources.storage.get(
                    f"hls/{video.id}/{row.attempt_number}/{row.name}/playlist.m3u8"
                )
            ).decode()
        )
        for row in rows
    ]
    assert {playlist.target_duration_s for playlist in playlists} == {5}
    for playlist in playlists:
        assert playlist.starts_s == pytest.approx(playlists[-1].starts_s, abs=0.001)


@pytest.mark.slow
async def test_undeliverable_copy_is_encoded_with_a_note(
    client: Client, resources: WebContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise CopyUndeliverable("parameter_sets")

    monkeypatch.setattr("portal.transcoding.encoding.encode.remux", refuse)
    short = make_source(tmp_path / "film.mp4", "-g", "25", seconds=6, size="320x180", rate=5)
    created = await published_file(client, resources, short)

    video = await looked_into(created, resources, tmp_path)
    assert video.status is VideoStatus.PROCESSING
    assert video.notes == ["copy_undeliverable"]
    assert not await Attempt.exists()
    assert not await Rendition.filter(copied=True).exists()

    video = await make_playable(video, resources, tmp_path)
    assert (video.status, video.notes) == (VideoStatus.READY, ["copy_undeliverable"])
    assert (await states(video))["180p"] == "complete"
    transcode = await (await client.get(f"/api/videos/{video.id}/transcode")).get_json()
    assert [note["code"] for note in transcode["notes"]] == ["copy_undeliverable"]


@pytest.mark.parametrize(("lost", "status"), [(1, "ready"), (2, "processing")])
async def test_a_copy_whose_worker_was_killed_is_copied_again_once(
    client: Client, resources: WebContext, film: Path, tmp_path: Path, lost: int, status: str
) -> None:
    video = await published_file(client, resources, film)
    for _ in range(lost):
        attempt = await first_attempt(video)
        await Attempt.filter(id=attempt.id).update(lease_expires_at=datetime.now(UTC))
    video = await looked_into(video, resources, tmp_path)
    # After two killed workers the file may be the cause, so the video is encoded.
    assert video.status == status


@pytest.mark.slow
async def test_copy_that_does_not_decode_is_replaced_by_an_encode(
    client: Client, resources: WebContext, film: Path, tmp_path: Path
) -> None:
    """Players stop at faults that ffmpeg decodes around; a lower rendition reveals them."""
    damaged = tmp_path / "damaged.mp4"
    content = bytearray(film.read_bytes())
    # A poster is chosen from the part before, which would reveal the damage.
    late = len(content) * 4 // 5
    content[late : late + 200] = bytes(byte ^ 0x55 for byte in content[late : late + 200])
    damaged.write_bytes(content)
    video = await looked_into(await published_file(client, resources, damaged), resources, tmp_path)
    assert video.status is VideoStatus.READY

    assert await made_later(video, resources, tmp_path) == [("240p", "360p", "480p"), ("720p",)]
    rows = await Rendition.filter(version_id=video.version_id, kind="video")
    assert not any(row.copied for row in rows)
    assert {str(row.state) for row in rows} == {"complete"}
    assert "copy_undeliverable" in (await Video.get(id=video.id)).notes
