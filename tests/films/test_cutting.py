"""Cut versions: which frames and sound they play, what they encode, and their playlists."""

import asyncio
import subprocess
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import pytest
from api_client import Client
from cut_films import cut, pictures, save_stream, whole_video
from decoded_media import listen, look, packets
from media_recipes import EXACT_TIMES
from numbered_film import FPS, make_numbered, shown_numbers, time_of_tone
from page_rows import make_attempt
from passes import make_playable, published_file, states, tools_for
from published_checks import check_playlists
from running_portal import run_ffmpeg

from portal.database.event_models import Event
from portal.database.models import Rendition, Version, Video
from portal.features import VERSION_HOOKS
from portal.features.cuts import service as cuts
from portal.films import cutting, passes, renditions, storyboards
from portal.films.attempts import OpenAttempt
from portal.films.outputs import open_rendition
from portal.films.sources import Source
from portal.films.versions import VersionState
from portal.http.composition import WebContext
from portal.storage.objects import output_prefix
from portal.transcoding.encoding.assembly import PassOutput
from portal.transcoding.encoding.joining import StoredTrack, join_tracks
from portal.transcoding.packaging import hls
from portal.transcoding.packaging.master import Kind
from portal.transcoding.planning.kept import Interval, Kept
from portal.transcoding.probing.segment_bounds import SEGMENT_S

FILM_S = 14
OPEN_GROUPS = "log-level=error:open-gop=1:bframes=4:keyint=30:min-keyint=30:scenecut=0"
# Times of frames in units of 1/25 s, with pauses after 40 frames.
UNEVEN = "N+0.3*mod(N*7919,3)+3*floor(N/40)"


def uneven_s(number: int) -> float:
    """Return when a frame of a film with uneven times is shown."""
    return (number + 0.3 * (number * 7919 % 3) + 3 * (number // 40)) / FPS


async def sounds(video: Video) -> list[Rendition]:
    """Return the sound renditions of a video."""
    return await Rendition.filter(version_id=video.version_id, kind=Kind.AUDIO).order_by("position")


async def saved_file(
    row: Rendition | None, video: Video, resources: WebContext, folder: Path
) -> Path:
    """Return the file to save with all sound, and with this picture if there is one."""
    picture, *tracks = [
        each and StoredTrack(files=await open_rendition(each, video.id, resources.storage))
        for each in (row, *await sounds(video))
    ]
    folder = folder / (row.name if row else "sound")
    folder.mkdir()
    return await join_tracks(picture, tracks, title="", folder=folder, timeout_s=60)


async def check_cut(
    video: Video, expected: Sequence[int], resources: WebContext, folder: Path
) -> None:
    """Check the frames and the sound of each rendition of a cut, and all its playlists."""
    assert set((await states(video)).values()) == {"complete"}
    for row in await pictures(video.version_id):
        saved = await saved_file(row, video, resources, folder)
        assert shown_numbers(saved) == expected
        decoded_s = [packet.decoded_s for packet in packets(saved, "audio")]
        assert all(before < after for before, after in pairwise(decoded_s))
    check_sound(saved, Kept.of(video.keep or ()), tracks=len(await sounds(video)))
    await check_stream(video, expected, resources, folder)


def check_sound(film: Path, keep: Kept, *, tracks: int) -> None:
    """Check at both ends of each interval that the film has the sound of that time."""
    for track in range(tracks):
        heard = listen(film, track)
        for (start_s, end_s), join_s in zip(keep.intervals, keep.joins_s, strict=True):
            for begin_s in (start_s + 0.1, end_s - 0.5):
                from_s = join_s + begin_s - start_s
                frequency_hz = heard.frequency_hz(from_s, from_s + 0.4)
                assert time_of_tone(frequency_hz, track) == pytest.approx(begin_s + 0.2, abs=0.02)


async def check_stream(
    video: Video, expected: Sequence[int], resources: WebContext, folder: Path
) -> None:
    """Check that the playlists of a video keep to the rules, and that ffmpeg plays them."""
    folder = folder / "stream"
    master = await save_stream(video, resources, folder)
    rows = await Rendition.filter(version_id=video.version_id)
    check_playlists(master, [renditions.finished_rendition(row) for row in rows])
    for row in rows:
        playlist = folder / str(row.attempt_number) / hls.media_playlist_name(row.name)
        assert await warnings_of_ffmpeg(playlist) == ""
        check_size(row, playlist)
        if row.kind is Kind.VIDEO:
            assert shown_numbers(playlist) == expected


def check_size(row: Rendition, playlist: Path) -> None:
    """Check that a rendition's recorded size is that of its folder and of the segments it names."""
    segments = hls.parse_media_playlist(playlist.read_text()).segments
    named = {(playlist.parent / segment.uri).resolve() for segment in segments}
    files = named | {path.resolve() for path in playlist.parent.iterdir()}
    assert row.size_bytes == sum(path.stat().st_size for path in files)


async def warnings_of_ffmpeg(playlist: Path) -> str:
    """Return the warnings with which ffmpeg plays a stream."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-nostdin", "-v", "warning", "-i", str(playlist)]
    # Frames keep their times.
    command += ["-fps_mode", "passthrough", "-enc_time_base:v", "demux", "-f", "null", "-"]
    result = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, check=True, text=True
    )
    return result.stderr


@pytest.mark.slow
async def test_end_after_the_picture_is_recorded_as_the_end_of_the_film(
    client: Client, resources: WebContext, tmp_path: Path
) -> None:
    # Key frames every second, so that picture and sound are copied.
    sources = ("-f", "lavfi", "-i", "testsrc2=s=320x180:r=25:d=3")
    sources += ("-f", "lavfi", "-i", "sine=d=3.059")
    codecs = ("-c:v", "libx264", "-g", "25", "-pix_fmt", "yuv420p", "-c:a", "aac")
    film = run_ffmpeg(tmp_path / "film.mp4", *sources, *codecs)
    whole = await whole_video(client, resources, film, tmp_path)
    film_s = whole.duration_s or 0.0
    assert film_s > 3.05

    video = await cut(whole, resources, tmp_path, (0.0, 1.0), (2.0, film_s))

    assert video.keep == [[0.0, 1.0], [2.0, pytest.approx(film_s)]]
    keep = [Interval(0.0, 1.0), Interval(2.0, film_s)]
    repeated = await cuts.save(video.id, keep, expected=None, hooks=VERSION_HOOKS)
    assert repeated.state is VersionState.LIVE


@pytest.mark.slow
async def test_open_groups_of_hevc_and_uneven_times_are_cut_at_the_wanted_frames(
    client: Client, resources: WebContext, tmp_path: Path
) -> None:
    film = make_numbered(
        tmp_path / "film.mp4",
        *("-vf", f"settb=1/1000000,setpts='({UNEVEN})/{FPS}/TB'", *EXACT_TIMES),
        *("-c:v", "libx265", "-tag:v", "hvc1", "-x265-params", OPEN_GROUPS),
        seconds=10,
        size="320x180",
    )
    whole = await whole_video(client, resources, film, tmp_path)
    # A segment begins two frames before the last one.
    bounds = ((10, 75), (100, 113), (130, 190))
    intervals = [(uneven_s(first), uneven_s(until)) for first, until in bounds]
    video = await cut(whole, resources, tmp_path, *intervals)

    assert video.has_poster
    expected = [number for first, until in bounds for number in range(first, until)]
    await check_cut(video, expected, resources, tmp_path)


@pytest.mark.slow
async def test_a_film_is_cut_in_the_middle_of_frames_that_are_shown_for_long(
    client: Client, resources: WebContext, tmp_path: Path
) -> None:
    distance = 125
    thinned = ("-vf", f"select='not(mod(n,{distance}))'", "-fps_mode", "vfr")
    film = make_numbered(tmp_path / "film.mp4", *thinned, seconds=20, size="320x180")
    whole = await whole_video(client, resources, film, tmp_path)
    intervals = ((0.0, 6.26), (8.9, 9.5), (13.1, 20.0))

    video = await cut(whole, resources, tmp_path, *intervals)

    assert video.keep == [pytest.approx(each, abs=0.02) for each in intervals]
    # A frame is repeated where an interval begins, and where segments begin without one.
    repeated = {int(start_s * FPS) for start_s in (8.9, 13.1, *range(0, 20, SEGMENT_S))}
    expected = [
        number // distance * distance
        for number in sorted(repeated | set(range(0, 20 * FPS, distance)))
        if any(start_s * FPS <= number + 0.5 < end_s * FPS for start_s, end_s in intervals)
    ]
    await check_cut(video, expected, resources, tmp_path)


@pytest.mark.slow
async def test_a_cut_gets_the_renditions_that_its_film_gets_later(
    client: Client, resources: WebContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    film = make_numbered(tmp_path / "film.mp4", "-g", "999", seconds=4)
    whole = await whole_video(client, resources, film, tmp_path)
    [lowest, _] = await pictures(whole.version_id)
    await Rendition.filter(id=lowest.id).update(state="failed")
    make_first = cutting.make_first

    async def add_to_film(*args: Any, **named: Any) -> tuple[Source, PassOutput]:
        first = await make_first(*args, **named)
        await Rendition.filter(id=lowest.id).update(state="complete")
        return first

    monkeypatch.setattr(cutting, "make_first", add_to_film)
    video = await cut(whole, resources, tmp_path, (0.52, 3.0))

    complete = {"240p": "complete", "360p": "complete", "audio": "complete"}
    assert await states(video) == complete

    # A pass over the film may end after the cut has become the current version.
    await Rendition.filter(version_id=video.version_id, name=lowest.name).delete()
    attempt = await make_attempt(whole, number=9)
    film_version = await Version.get(id=whole.version_id)
    finished = OpenAttempt(id=attempt.id, version=film_version, number=9, targets=(lowest.name,))
    await renditions.finish_pass(finished)
    assert await states(video) == complete | {lowest.name: "planned"}
    assert (await Video.get(id=video.id)).complete_job_id is not None


async def events_of(video: Video) -> list[str]:
    """Return the types of a video's public events, in their order."""
    events = await Event.filter(video_id=video.id, number__isnull=False).order_by("number")
    return [str(event.type) for event in events]


@pytest.mark.slow
async def test_a_film_is_cut_while_its_qualities_are_made(
    client: Client, resources: WebContext, tmp_path: Path
) -> None:
    film = make_numbered(tmp_path / "film.mp4", "-g", str(FPS), "-sc_threshold", "0", seconds=6)
    whole = await make_playable(await published_file(client, resources, film), resources, tmp_path)
    assert await states(whole) == {"240p": "planned", "360p": "complete", "audio": "complete"}

    video = await cut(whole, resources, tmp_path, (1, 3))
    await storyboards.make(video.version_id, tools_for(resources, tmp_path))
    assert await states(video) == {"360p": "complete", "audio": "complete"}
    assert "video.completed" not in await events_of(video)
    # The former version is completed for the cut, which then has the same qualities.
    await storyboards.make(whole.version_id, tools_for(resources, tmp_path))
    await passes.complete_ladder(whole.version_id, tools_for(resources, tmp_path))
    assert "video.completed" not in await events_of(video)
    await passes.complete_ladder(video.version_id, tools_for(resources, tmp_path))
    video = await Video.get(id=video.id)
    await check_cut(video, [*range(25, 75)], resources, tmp_path)
    assert (await events_of(video)).count("video.completed") == 1


async def make_init_of_another_encoder(row: Rendition, resources: WebContext) -> None:
    """Raise the level in an init segment, as if another version of the encoder had made it."""
    key = f"{output_prefix(row.version_id, row.attempt_number or 0)}{row.name}/{hls.INIT_NAME}"
    init = bytearray(await resources.storage.get(key))
    init[init.index(b"avcC") + 7] += 1
    await resources.storage.put(key, bytes(init), content_type="video/mp4")


@pytest.mark.slow
async def test_a_copied_stream_is_split_at_key_frames_and_encoded_elsewhere(
    client: Client, resources: WebContext, tmp_path: Path
) -> None:
    options = ("-g", str(FPS), "-sc_threshold", "0")
    film = make_numbered(tmp_path / "film.mp4", *options, seconds=FILM_S, sounds=2)
    whole = await whole_video(client, resources, film, tmp_path)
    [lowest, *_, copy] = await pictures(whole.version_id)
    assert copy.copied
    await make_init_of_another_encoder(lowest, resources)

    intervals = ((1, 6), (9.2, 9.8), (11, FILM_S))
    expected = [*range(25, 150), *range(230, 245), *range(275, FILM_S * FPS)]

    video = await cut(whole, resources, tmp_path, *intervals)

    assert video.version_id != whole.version_id
    # The last frame lasts until the end of the sound.
    assert video.duration_s == pytest.approx(len(expected) / FPS, abs=0.02)
    assert video.keep == [pytest.approx(each, abs=0.02) for each in intervals]
    assert video.has_poster
    rows = await pictures(video.version_id)
    assert [row.name for row in rows] == [row.name for row in await pictures(whole.version_id)]
    for row in (*rows, *await sounds(video)):
        playlist = (await open_rendition(row, video.id, resources.storage)).playlist
        assert sum(segment.is_discontinuous for segment in playlist.segments) == 2
        assert playlist.duration_s == pytest.approx(video.duration_s, abs=0.05)
        own = [segment for segment in playlist.segments if not segment.uri.startswith("../")]
        if row.copied:
            # Only the second interval has cuts between key frames.
            [encoded] = [segment for segment in own if "-" not in segment.uri]
            assert encoded.duration_s == pytest.approx(0.6)
        elif row.kind is Kind.VIDEO:
            assert len(own) == 4
            assert playlist.map_uri == hls.INIT_NAME, "an init segment of both encoders"
    await check_cut(video, expected, resources, tmp_path)

    for row in rows:
        times_s = [picture.time_s for picture in look(tmp_path / row.name / "joined.mp4")]
        every_s = [number / FPS for number in range(len(expected))]
        assert times_s == pytest.approx(every_s, abs=0.001)
    frames = packets(await saved_file(None, video, resources, tmp_path), "audio")
    # Decoders discard sound before zero.
    assert -1024 / 48_000 <= float(frames[0].shown_s) <= 0
    gaps_s = [float(after.shown_s - before.shown_s) for before, after in pairwise(frames)]
    assert 0 < min(gaps_s) <= max(gaps_s) < 2 * 1024 / 48_000
