"""Probing: what the index and the tracks of a source tell, with real files."""

import struct
from pathlib import Path

import av
import pytest
from media_recipes import MakeMedia, with_late
from mp4_writer import FRAME_MS, box, movie, picture_entry, sample_sizes, track
from published import Write

from portal.transcoding.probing.probe import probe

UNIT = 1 << 16
MATRICES = {
    "flipped sideways": ((-UNIT, 0, 0, UNIT), True, (640, 360)),
    "flipped upside down": ((UNIT, 0, 0, -UNIT), True, (640, 360)),
    "turned and flipped": ((0, UNIT, UNIT, 0), True, (360, 640)),
    "turned and flipped the other way": ((0, -UNIT, -UNIT, 0), True, (360, 640)),
    "turned by 45 degrees": ((46341, 46341, -46341, 46341), False, (640, 360)),
    "no angle at all": ((0, 0, 0, 0), False, (640, 360)),
}


@pytest.mark.parametrize("name", MATRICES)
async def test_the_size_is_that_of_the_frames_that_ffmpeg_gives(
    make_media: MakeMedia, plain: Path, write: Write, name: str
) -> None:
    (a, b, c, d), mirrored, size = MATRICES[name]
    upright = struct.pack(">9i", UNIT, 0, 0, 0, UNIT, 0, 0, 0, 1 << 30)
    turned = struct.pack(">9i", a, b, 0, c, d, 0, 0, 0, 1 << 30)
    content = plain.read_bytes()
    at = content.index(upright, content.index(b"tkhd"))
    source = write(content[:at] + turned + content[at + len(turned) :])
    video = (await probe(str(source))).video
    assert (video.width, video.height) == size
    assert video.mirrored == mirrored
    shown = make_media(f"{name}.png", "-i", str(source), "-frames:v", "1")
    assert struct.unpack(">II", shown.read_bytes()[16:24]) == size


async def test_the_index_tells_frames_bytes_and_key_frames(make_video: MakeMedia) -> None:
    source = make_video("keys.mp4", "-g", "15", "-bf", "2", duration_s=4)
    found = await probe(str(source))
    assert (found.size_bytes, found.readable_share) == (source.stat().st_size, 1.0)
    video = found.video
    assert (video.profile, video.frame_count, video.start_s) == ("Main", 120, 0.0)
    assert video.max_key_distance_s == pytest.approx(0.5, abs=0.01)
    assert video.bitrate_bps is not None
    assert 0.8 < video.bitrate_bps / (source.stat().st_size * 8 / 4) < 1
    assert video.peak_bitrate_bps is not None
    assert 1 <= video.peak_bitrate_bps / video.bitrate_bps < 2
    assert video.closed_gops
    assert (video.full_range, video.has_alpha, video.mirrored) == (False, False, False)


@pytest.mark.parametrize("shared", [False, True], ids=["each its own", "all the same"])
async def test_bytes_that_samples_share_count_once_and_are_not_copied(
    make_video: MakeMedia, write: Write, shared: bool
) -> None:
    with av.open(str(make_video("picture.mp4", duration_s=1))) as film:
        [stream] = film.streams.video
        avcc, picture = stream.codec_context.extradata or b"", bytes(next(film.demux(stream)))
        size = (stream.width, stream.height)
    sizes = sample_sizes([len(picture)] * 100)
    entry = picture_entry(b"avc1", *size, box(b"avcC", avcc))
    frames = track(entry, sizes, frames=100, size=size, shared=shared)
    stored = picture if shared else picture * 100
    found = (await probe(str(write(movie(stored, frames, duration_ms=100 * FRAME_MS))))).video
    assert found.frame_count == 100
    assert found.bitrate_bps == pytest.approx(len(stored) * 8000 / (100 * FRAME_MS), rel=0.05)
    assert found.closed_gops is not shared


OPEN = {
    "open": ("-x264-params", "open-gop=1:keyint=15:bframes=2"),
    "periodic": ("-x264-params", "intra-refresh=1:keyint=15"),
    "another codec": ("-c:v", "mpeg4"),
}


@pytest.mark.parametrize("kind", OPEN)
async def test_what_cannot_be_cut_at_key_frames_is_noticed(
    make_video: MakeMedia, kind: str
) -> None:
    source = make_video(f"{kind}.mp4", "-preset", "fast", *OPEN[kind], duration_s=4)
    assert not (await probe(str(source))).video.closed_gops


async def test_frames_that_an_edit_list_hides_are_not_counted(
    make_media: MakeMedia, make_video: MakeMedia
) -> None:
    source = make_video("keys.mp4", "-g", "15", "-bf", "2", duration_s=4)
    cut = make_media("trimmed.mp4", "-ss", "1.2", "-i", str(source), "-c", "copy")
    video = (await probe(str(cut))).video
    assert video.frame_count == 84
    assert not video.closed_gops


async def test_a_late_start_is_told(make_media: MakeMedia, plain: Path) -> None:
    late = with_late(make_media, "late.mp4", plain, "0:v", 1.5)
    assert (await probe(str(late))).video.start_s == pytest.approx(1.5, abs=0.05)


async def test_a_fragmented_source_has_no_index_to_tell_from(
    make_media: MakeMedia, plain: Path
) -> None:
    source = make_media(
        "fragments.mp4", "-i", str(plain), "-c", "copy", "-movflags", "+frag_keyframe+empty_moov"
    )
    video = (await probe(str(source))).video
    assert (video.duration_s, video.frame_count, video.max_key_distance_s) == (None, None, None)
    assert video.grid_lead is None
    assert not video.closed_gops


async def test_tracks_are_listed_with_their_names_and_the_default_first(
    make_media: MakeMedia, plain: Path, tmp_path: Path
) -> None:
    lines = tmp_path / "lines.srt"
    lines.write_text("1\n00:00:00,000 --> 00:00:02,000\nGood morning\n")
    source = make_media(
        "tracks.mp4",
        *("-i", str(plain), "-f", "srt", "-i", str(lines)),
        *("-map", "0:v", *("-map", "0:a") * 10, "-map", "1", "-map", "1", "-c", "copy"),
        *("-c:s", "mov_text", "-disposition:a", "0", "-disposition:a:2", "default"),
        *("-metadata:s:a:0", "language=eng", "-metadata:s:a:2", "language=deu"),
        *("-metadata:s:a:2", "handler_name=Director's commentary"),
        *("-metadata:s:s:1", "language=fra", "-metadata:s:s:1", "handler_name=Pour tous"),
    )
    found = await probe(str(source))
    assert [track.index for track in found.audio] == [3, 1, 2, 4, 5, 6, 7, 8]
    assert (found.audio[0].language, found.audio[0].title) == ("deu", "Director's commentary")
    assert (found.audio[1].language, found.audio[1].title) == ("eng", None)
    assert found.audio[2].language is None
    assert [(track.codec, track.language, track.title) for track in found.subtitles] == [
        ("mov_text", None, None),
        ("mov_text", "fra", "Pour tous"),
    ]
