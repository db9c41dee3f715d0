"""A whole transcode with real media: what is written plays, and failures leave nothing behind."""

import asyncio
import csv
import io
import os
from collections.abc import Awaitable, Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import av
import pytest
from aiohttp import web

from portal.transcoding import (
    FailCode,
    MediaPlaylist,
    Output,
    SourceRejected,
    Stage,
    TranscodeFailed,
    parse_media_playlist,
    transcode,
)
from portal.transcoding.probe import probe
from portal.transcoding.selfcheck import check_output

MakeMedia = Callable[..., Path]
FindProcesses = Callable[[str], list[int]]
Eventually = Callable[..., Awaitable[None]]

CORPUS = os.environ.get("PORTAL_CORPUS", "")


class Folder(Protocol):
    folder: Path
    names: list[str]
    content_types: dict[str, str]

    async def put(self, name: str, data: Path | bytes, content_type: str) -> None: ...


class Recorded(Protocol):
    all: list[tuple[Stage, float, float | None]]

    async def __call__(self, stage: Stage, percent: float, left: float | None) -> None: ...


async def ignore(stage: Stage, percent: float, seconds_left: float | None) -> None:
    pass


def playlist(sink: Folder, rendition: str) -> MediaPlaylist:
    return parse_media_playlist((sink.folder / rendition / "playlist.m3u8").read_text())


def frames(sink: Folder, rendition: str, *segments: int) -> list[av.VideoFrame]:
    """Decode some segments the way a player does: after the init segment."""
    folder = sink.folder / rendition
    uris = [playlist(sink, rendition).segments[number].uri for number in segments]
    data = b"".join((folder / uri).read_bytes() for uri in ("init.mp4", *uris))
    with av.open(io.BytesIO(data), format="mov") as container:
        return list(container.decode(container.streams[0]))


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def left_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def leave_in(folder: Path, name: str) -> None:
    folder.mkdir()
    (folder / name).touch()


async def test_all_renditions_play_and_switch_at_the_same_instants(
    plain: Path, sink: Folder, work_dir: Path
) -> None:
    output = await transcode(str(plain), sink=sink, work_dir=work_dir, on_progress=ignore)
    names = [rendition.name for rendition in output.renditions]
    assert names == ["240p", "360p"]
    reference = [segment.duration_s for segment in playlist(sink, "240p").segments]
    assert len(reference) == 3
    assert sum(reference) == pytest.approx(10, abs=0.1)
    for rendition in output.renditions:
        written = playlist(sink, rendition.name)
        assert [segment.duration_s for segment in written.segments] == reference
        assert all(4 <= segment.duration_s <= 6 for segment in written.segments[:-1])
        for number in range(len(reference)):
            first = frames(sink, rendition.name, number)[0]
            assert (first.width, first.height) == (rendition.width, rendition.height)
            assert first.key_frame
            assert first.time == pytest.approx(sum(reference[:number]), abs=0.001)
    assert sum(frame.samples for frame in frames(sink, "audio", 0, 1, 2)) == pytest.approx(
        10 * 48000, rel=0.01
    )


async def test_picture_and_sound_begin_together(plain: Path, sink: Folder, work_dir: Path) -> None:
    await transcode(str(plain), sink=sink, work_dir=work_dir, on_progress=ignore)
    assert frames(sink, "240p", 0)[0].time == pytest.approx(0, abs=0.001)
    # The encoder's priming samples come before zero and are skipped.
    assert frames(sink, "audio", 0)[0].time == pytest.approx(0, abs=0.022)


async def test_the_rate_of_29_97_stays_exact(plain: Path, sink: Folder, work_dir: Path) -> None:
    output = await transcode(str(plain), sink=sink, work_dir=work_dir, on_progress=ignore)
    assert {rendition.fps for rendition in output.renditions} == {Fraction(30000, 1001)}
    decoded = frames(sink, "240p", 0, 1, 2)
    assert len(decoded) == 300
    gaps = {(b.pts - a.pts) * b.time_base for a, b in pairwise(decoded)}
    assert gaps == {Fraction(1001, 30000)}


async def test_the_master_comes_last_and_names_only_what_is_there(
    plain: Path, sink: Folder, work_dir: Path
) -> None:
    output = await transcode(str(plain), sink=sink, work_dir=work_dir, on_progress=ignore)
    assert sink.names[-1] == output.master_name == "master.m3u8"
    assert len(sink.names) == len(set(sink.names))
    master = (sink.folder / "master.m3u8").read_text()
    named = [line for line in master.splitlines() if not line.startswith("#")]
    assert sorted(named) == ["240p/playlist.m3u8", "360p/playlist.m3u8"]
    assert 'URI="audio/playlist.m3u8"' in master
    assert 'CODECS="avc1.64' in master
    media = [name for name in sink.names if name.endswith(".m4s")]
    listed = [
        f"{rendition}/{segment.uri}"
        for rendition in ("240p", "360p", "audio")
        for segment in playlist(sink, rendition).segments
    ]
    assert sorted(media) == sorted(listed)
    on_disk = sum(path.stat().st_size for path in files_in(sink.folder))
    assert output.size_bytes == on_disk


async def test_every_kind_of_file_has_its_content_type(
    plain: Path, sink: Folder, work_dir: Path
) -> None:
    await transcode(str(plain), sink=sink, work_dir=work_dir, on_progress=ignore)
    by_suffix = {Path(name).suffix: kind for name, kind in sink.content_types.items()}
    assert by_suffix == {
        ".m3u8": "application/vnd.apple.mpegurl",
        ".m4s": "video/iso.segment",
        ".mp4": "video/mp4",
        ".jpg": "image/jpeg",
    }


async def test_progress_never_falls_and_ends_at_100(
    plain: Path, sink: Folder, work_dir: Path, reports: Recorded
) -> None:
    await transcode(str(plain), sink=sink, work_dir=work_dir, on_progress=reports)
    percents = [percent for _, percent, _ in reports.all]
    assert percents == sorted(percents)
    assert (percents[0], percents[-1]) == (0.0, 100.0)
    stages = list(dict.fromkeys(stage for stage, _, _ in reports.all))
    assert stages == [Stage.PROBING, Stage.TRANSCODING, Stage.FINISHING]
    assert any(1 < percent < 97 for percent in percents)


async def test_nothing_is_left_on_disk(plain: Path, sink: Folder, work_dir: Path) -> None:
    leave_in(work_dir, "of an earlier attempt.m4s")
    await transcode(str(plain), sink=sink, work_dir=work_dir, on_progress=ignore)
    assert left_in(work_dir) == []


async def test_the_poster_is_a_picture_and_not_the_black_lead(
    make_media: MakeMedia, sink: Folder, work_dir: Path
) -> None:
    source = make_media(
        "black lead.mp4",
        *("-f", "lavfi", "-i", "color=black:s=640x360:r=25:d=2"),
        *("-f", "lavfi", "-i", "testsrc2=s=640x360:r=25:d=4"),
        *("-filter_complex", "[0][1]concat", "-pix_fmt", "yuv420p"),
    )
    output = await transcode(str(source), sink=sink, work_dir=work_dir, on_progress=ignore)
    assert output.poster_name == "poster.jpg"
    with av.open(str(sink.folder / "poster.jpg")) as container:
        frame = next(container.decode(video=0))
    assert (frame.width, frame.height) == (640, 360)
    assert max(bytes(frame.planes[0])) > 200, "no brighter than black"


async def test_a_source_without_sound_becomes_a_silent_stream(
    make_video: MakeMedia, sink: Folder, work_dir: Path
) -> None:
    source = make_video("mute.mp4", audio_s=0)
    output = await transcode(str(source), sink=sink, work_dir=work_dir, on_progress=ignore)
    assert not output.has_audio
    assert "AUDIO" not in (sink.folder / "master.m3u8").read_text()
    assert not (sink.folder / "audio").exists()


@pytest.mark.parametrize(("picture_s", "sound_s"), [(2, 7), (7, 2)])
async def test_tracks_of_different_length_are_both_kept(
    make_video: MakeMedia, sink: Folder, work_dir: Path, picture_s: float, sound_s: float
) -> None:
    source = make_video(f"{picture_s}-{sound_s}.mp4", duration_s=picture_s, audio_s=sound_s)
    output = await transcode(str(source), sink=sink, work_dir=work_dir, on_progress=ignore)
    assert playlist(sink, "240p").duration_s == pytest.approx(picture_s, abs=0.1)
    assert playlist(sink, "audio").duration_s == pytest.approx(sound_s, abs=0.1)
    assert output.duration_s == pytest.approx(7, abs=0.1)


async def test_a_picture_that_begins_late_stands_from_the_start(
    make_media: MakeMedia, plain: Path, sink: Folder, work_dir: Path
) -> None:
    source = make_media(
        "late.mp4",
        *("-itsoffset", "1.5", "-i", str(plain), "-i", str(plain)),
        *("-map", "0:v", "-map", "1:a", "-c", "copy"),
    )
    await transcode(str(source), sink=sink, work_dir=work_dir, on_progress=ignore)
    decoded = frames(sink, "240p", 0)
    assert decoded[0].time == pytest.approx(0, abs=0.001)
    assert decoded[1].time == pytest.approx(1.5 + 1001 / 30000, abs=0.03)


async def test_a_portrait_recording_stands_upright(
    make_media: MakeMedia, plain: Path, sink: Folder, work_dir: Path
) -> None:
    turned = make_media(
        "turned90.mp4", "-display_rotation", "90", "-i", str(plain), "-c", "copy", "-t", "2"
    )
    output = await transcode(str(turned), sink=sink, work_dir=work_dir, on_progress=ignore)
    assert (output.width, output.height) == (360, 640)
    frame = frames(sink, "360p", 0)[0]
    assert (frame.width, frame.height, frame.rotation) == (360, 640, 0)


async def test_oblong_pixels_become_square_ones(
    make_video: MakeMedia, sink: Folder, work_dir: Path
) -> None:
    source = make_video("sar.mp4", "-vf", "setsar=16/11", size="352x288")
    output = await transcode(str(source), sink=sink, work_dir=work_dir, on_progress=ignore)
    assert (output.width, output.height) == (512, 288)
    folder = sink.folder / "288p"
    data = (folder / "init.mp4").read_bytes() + (folder / "00000.m4s").read_bytes()
    with av.open(io.BytesIO(data), format="mov") as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height) == (512, 288)
        assert stream.sample_aspect_ratio in (None, 1)


async def test_odd_sizes_become_even_ones(
    make_video: MakeMedia, sink: Folder, work_dir: Path
) -> None:
    source = make_video("odd.mp4", "-vf", "scale=321:243,setsar=1", "-pix_fmt", "yuv444p")
    await transcode(str(source), sink=sink, work_dir=work_dir, on_progress=ignore)
    frame = frames(sink, "243p", 0)[0]
    assert (frame.width, frame.height, frame.format.name) == (320, 242, "yuv420p")


async def test_120_frames_a_second_become_exactly_60(
    make_video: MakeMedia, sink: Folder, work_dir: Path
) -> None:
    source = make_video("fast.mp4", rate="120", size="320x180")
    await transcode(str(source), sink=sink, work_dir=work_dir, on_progress=ignore)
    decoded = frames(sink, "180p", 0)
    assert len(decoded) == 120
    gaps = {(b.pts - a.pts) * b.time_base for a, b in pairwise(decoded)}
    assert gaps == {Fraction(1, 60)}


async def test_a_variable_rate_keeps_each_frames_own_time(
    make_media: MakeMedia, sink: Folder, work_dir: Path
) -> None:
    source = make_media(
        "variable.mp4",
        *("-f", "lavfi", "-i", "testsrc2=s=320x180:r=30:d=6"),
        *("-vf", "select='lt(t,2)+not(mod(n,7))'", "-fps_mode", "passthrough"),
        *("-pix_fmt", "yuv420p"),
    )
    with av.open(str(source)) as container:
        times = [frame.time for frame in container.decode(video=0)]
    await transcode(str(source), sink=sink, work_dir=work_dir, on_progress=ignore)
    decoded = frames(sink, "180p", *range(len(playlist(sink, "180p").segments)))
    assert [frame.time for frame in decoded] == pytest.approx(times, abs=0.0001)


async def test_a_source_is_read_over_http(
    serve: Callable[..., Awaitable[str]], make_video: MakeMedia, sink: Folder, work_dir: Path
) -> None:
    address = await serve(make_video("short.mp4"))
    output = await transcode(
        f"{address}?X-Amz-Signature=abc", sink=sink, work_dir=work_dir, on_progress=ignore
    )
    assert output.duration_s == pytest.approx(2, abs=0.1)


async def test_a_refused_source_writes_nothing(
    tmp_path: Path, sink: Folder, work_dir: Path
) -> None:
    source = tmp_path / "notes.mp4"
    source.write_text("no video")
    with pytest.raises(SourceRejected):
        await transcode(str(source), sink=sink, work_dir=work_dir, on_progress=ignore)
    assert sink.names == []


@pytest.fixture
def long_video(make_video: MakeMedia) -> Path:
    """Takes long enough to be interrupted."""
    return make_video("long.mp4", duration_s=40, size="854x480")


class FailingSink:
    """Takes two files and refuses the third, like a storage that went away."""

    def __init__(self) -> None:
        self.taken = 0

    async def put(self, name: str, data: Path | bytes, content_type: str) -> None:
        self.taken += 1
        if self.taken > 2:
            raise ConnectionError("storage went away")


async def test_a_failing_sink_stops_ffmpeg_and_says_why(
    long_video: Path, work_dir: Path, processes_naming: FindProcesses
) -> None:
    with pytest.raises(ConnectionError, match="storage went away"):
        await transcode(str(long_video), sink=FailingSink(), work_dir=work_dir, on_progress=ignore)
    assert not processes_naming(str(long_video))
    assert left_in(work_dir) == []


async def test_a_storage_that_dies_halfway_is_a_failure_and_not_a_short_video(
    serve: Callable[..., Awaitable[str]],
    long_video: Path,
    sink: Folder,
    work_dir: Path,
    processes_naming: FindProcesses,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("portal.transcoding.command._RECONNECT_MAX_S", 1)
    content = await asyncio.to_thread(long_video.read_bytes)

    async def serve_until_segments_arrive(request: web.Request) -> web.StreamResponse:
        if sink.names:
            return web.Response(status=503)
        part = request.http_range
        start = part.start or 0
        headers = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
        response = web.StreamResponse(status=206, headers=headers)
        response.content_length = len(content) - start
        await response.prepare(request)
        for at in range(start, len(content), 65536):
            if sink.names:
                request.transport.abort()
                break
            await response.write(content[at : at + 65536])
        return response

    address = await serve(serve_until_segments_arrive)
    with pytest.raises(TranscodeFailed) as caught:
        await transcode(address, sink=sink, work_dir=work_dir, on_progress=ignore)
    assert caught.value.code == FailCode.SOURCE_UNREACHABLE
    assert "master.m3u8" not in sink.names
    assert not processes_naming(address)


async def test_cancelling_leaves_no_process_and_no_file(
    long_video: Path,
    sink: Folder,
    work_dir: Path,
    processes_naming: FindProcesses,
    eventually: Eventually,
) -> None:
    task = asyncio.create_task(
        transcode(str(long_video), sink=sink, work_dir=work_dir, on_progress=ignore)
    )
    await eventually(lambda: sink.names)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not processes_naming(str(long_video))
    assert left_in(work_dir) == []
    assert "master.m3u8" not in sink.names


class SlowSink:
    """Takes nothing until it is opened."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.names: list[str] = []

    async def put(self, name: str, data: Path | bytes, content_type: str) -> None:
        await self.opened.wait()
        self.names.append(name)


async def test_a_slow_sink_holds_ffmpeg_up_instead_of_filling_the_disk(
    long_video: Path, work_dir: Path, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.transcoding.shipping._MAX_BACKLOG_FILES", 6)
    monkeypatch.setattr("portal.transcoding.shipping._RELEASE_BACKLOG_FILES", 3)
    sink, percents = SlowSink(), [0.0]

    async def remember(stage: Stage, percent: float, seconds_left: float | None) -> None:
        percents.append(percent)

    task = asyncio.create_task(
        transcode(str(long_video), sink=sink, work_dir=work_dir, on_progress=remember)
    )
    await eventually(lambda: len(files_in(work_dir)) > 6)
    finished, _ = await asyncio.wait({task}, timeout=5)
    assert not finished
    assert len(files_in(work_dir)) < 30, "more than 40 would be there without a brake"
    assert percents[-1] < 97
    sink.opened.set()
    output = await task
    assert output.duration_s == pytest.approx(40, abs=0.2)
    assert len([name for name in sink.names if name.startswith("240p/")]) == 10 + 2


@pytest.fixture
async def checked(
    plain: Path, sink: Folder, work_dir: Path
) -> tuple[Output, dict[str, MediaPlaylist], dict[str, int]]:
    """A good output and what the self-check is told about it."""
    output = await transcode(str(plain), sink=sink, work_dir=work_dir, on_progress=ignore)
    playlists = {name: playlist(sink, name) for name in ("240p", "360p", "audio")}
    sizes_bytes = {
        str(path.relative_to(sink.folder)): path.stat().st_size
        for path in files_in(sink.folder)
        if path.suffix in {".m4s", ".mp4"}
    }
    return output, playlists, sizes_bytes


async def test_the_self_check_finds_what_is_missing_empty_or_short(
    plain: Path, checked: tuple[Output, dict[str, MediaPlaylist], dict[str, int]]
) -> None:
    _, playlists, sizes_bytes = checked
    found = await probe(str(plain))

    def check(lists: dict[str, MediaPlaylist], sizes: dict[str, int]) -> None:
        check_output(lists, sizes_bytes=sizes, video_names=("240p", "360p"), probe=found)

    check(playlists, sizes_bytes)
    short = MediaPlaylist(
        segments=playlists["240p"].segments[:-1],
        map_uri="init.mp4",
        target_duration_s=4,
        complete=True,
    )
    fewer = {name: size for name, size in sizes_bytes.items() if not name.endswith("00002.m4s")}
    broken: list[tuple[dict[str, MediaPlaylist], dict[str, int], str]] = [
        (playlists, {**sizes_bytes, "360p/00001.m4s": 0}, "360p/00001.m4s"),
        (playlists, {**sizes_bytes, "360p/init.mp4": 0}, "360p/init.mp4"),
        ({**playlists, "240p": short}, sizes_bytes, "another number"),
        ({"240p": short, "360p": playlists["360p"]}, {**sizes_bytes, **fewer}, "another number"),
        ({"240p": short, "360p": short}, fewer, "were written of"),
    ]
    for lists, sizes, reason in broken:
        with pytest.raises(TranscodeFailed) as caught:
            check(lists, sizes)
        assert caught.value.code == FailCode.OUTPUT_INCOMPLETE
        assert reason in caught.value.detail


def corpus() -> list[tuple[str, str]]:
    if not CORPUS:
        return []
    with (Path(CORPUS) / "manifest.csv").open(newline="") as manifest:
        return [(row["path"], row["expected"]) for row in csv.DictReader(manifest)]


@pytest.mark.skipif(not CORPUS, reason="PORTAL_CORPUS names no folder of media")
@pytest.mark.parametrize(("path", "expected"), corpus())
async def test_the_corpus_is_published_or_refused(
    path: str, expected: str, sink: Folder, work_dir: Path
) -> None:
    source = str(Path(CORPUS) / path)
    if expected in {"playable", "partial"}:
        output = await transcode(source, sink=sink, work_dir=work_dir, on_progress=ignore)
        assert frames(sink, output.renditions[0].name, 0)
    else:
        with pytest.raises(SourceRejected):
            await transcode(source, sink=sink, work_dir=work_dir, on_progress=ignore)
