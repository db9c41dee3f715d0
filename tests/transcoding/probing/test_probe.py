"""Probing: what is read from a source, and which sources are refused, with real files."""

import os
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import pytest
from aiohttp import web
from media_recipes import MakeMedia, with_late
from mp4_writer import FRAME_MS, box, movie, picture_entry, sample_sizes, track
from published import Write, probe, rejection
from serving import Serve

from portal.transcoding.errors import FailCode, RejectCode, SourceRejected, TranscodeFailed
from portal.transcoding.probing.probe import DECODERS, SourceLimits, reading_options

UNIT = 1 << 16
# Rows of the display matrix: whether it flips, and what is shown of 640x360.
MATRICES = {
    "turned by a quarter": ((0, UNIT, -UNIT, 0), False, (360, 640)),
    "flipped upside down": ((UNIT, 0, 0, -UNIT), True, (640, 360)),
    "turned and flipped": ((0, UNIT, UNIT, 0), True, (360, 640)),
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
    video = (await probe(source)).video
    assert (video.width, video.height, video.mirrored) == (*size, mirrored)
    assert (video.coded_width, video.coded_height) == (640, 360)
    picture = make_media(f"{name}.png", "-i", str(source), "-frames:v", "1")
    assert struct.unpack(">II", picture.read_bytes()[16:24]) == size


async def test_stream_and_index_are_described(make_video: MakeMedia) -> None:
    source = make_video("keys.mp4", "-g", "15", "-bf", "2", rate="30000/1001", duration_s=4)
    result = await probe(source)
    assert (result.size_bytes, result.readable_share) == (source.stat().st_size, 1.0)
    video = result.video
    assert (video.codec, video.profile, video.pix_fmt) == ("h264", "Main", "yuv420p")
    assert (video.width, video.height, video.fps) == (640, 360, Fraction(30000, 1001))
    assert (video.frame_count, video.start_s, video.constant_rate) == (120, 0.0, True)
    assert video.duration_s == pytest.approx(4, abs=0.05)
    assert video.max_key_distance_s == pytest.approx(0.5, abs=0.01)
    assert video.bitrate_bps is not None
    assert 0.8 < video.bitrate_bps / (source.stat().st_size * 8 / 4) < 1
    assert video.peak_bitrate_bps is not None
    assert 1 <= video.peak_bitrate_bps / video.bitrate_bps < 2
    assert video.closed_gops
    assert (video.has_alpha, video.mirrored) == (False, False)
    [sound] = result.audio
    assert (sound.codec, sound.channels, sound.sample_rate_hz) == ("aac", 1, 44100)


async def test_bytes_that_samples_share_count_once_and_are_not_copied(
    make_video: MakeMedia, write: Write
) -> None:
    with av.open(str(make_video("picture.mp4", duration_s=1))) as film:
        [stream] = film.streams.video
        avcc = stream.codec_context.extradata or b""
        picture = bytes(next(film.demux(stream)))
        size = (stream.width, stream.height)
    sizes = sample_sizes([len(picture)] * 100)
    entry = picture_entry(b"avc1", *size, box(b"avcC", avcc))
    frames = track(entry, sizes, frames=100, size=size, shared=True)
    result = (await probe(write(movie(picture, frames, duration_ms=100 * FRAME_MS)))).video
    assert result.frame_count == 100
    assert result.bitrate_bps == pytest.approx(len(picture) * 8000 / (100 * FRAME_MS), rel=0.05)
    assert not result.closed_gops


@pytest.mark.parametrize("params", ["open-gop=1:keyint=15:bframes=2", "intra-refresh=1:keyint=15"])
async def test_what_cannot_be_cut_at_key_frames_is_noticed(
    make_video: MakeMedia, params: str
) -> None:
    options = ("-preset", "fast", "-x264-params", params)
    source = make_video(f"{params[:5]}.mp4", *options, duration_s=4)
    assert not (await probe(source)).video.closed_gops


async def test_frames_that_an_edit_list_hides_are_not_counted_and_a_late_start_is_told(
    make_media: MakeMedia, make_video: MakeMedia
) -> None:
    source = make_video("edited.mp4", "-g", "15", "-bf", "2", duration_s=4)
    cut = make_media("trimmed.mp4", "-ss", "1.2", "-i", str(source), "-c", "copy")
    video = (await probe(cut)).video
    assert video.frame_count == 84
    assert not video.closed_gops
    late = with_late(make_media, "late.mp4", source, "0:v", 1.5)
    assert (await probe(late)).video.start_s == pytest.approx(1.5, abs=0.05)


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        # Half a recording, four seconds of nothing, and the other half.
        pytest.param(
            ("-bsf:v", "setts=ts=TS+gt(TS*TB\\,5)*4/TB", "-movflags", "+frag_every_frame"),
            {"longest_frame_s": pytest.approx(4.03, abs=0.04)},
            id="a pause in fragments",
        ),
        pytest.param((), {"is_sar_certain": True}, id="plain"),
        pytest.param(
            ("-bsf:v", "h264_metadata=sample_aspect_ratio=4/3"),
            {"width": 640, "height": 360, "is_sar_certain": False},
            id="another aspect ratio in the stream",
        ),
    ],
)
async def test_remuxed_source_is_described(
    options: tuple[str, ...], facts: dict[str, Any], make_media: MakeMedia, plain: Path
) -> None:
    source = make_media("remuxed.mp4", "-i", str(plain), "-c", "copy", *options)
    video = (await probe(source)).video
    assert {name: getattr(video, name) for name in facts} == facts


@pytest.mark.parametrize("reordered", ["0", "2"])
async def test_fragments_are_described_like_the_same_film_with_an_index(
    make_media: MakeMedia, make_video: MakeMedia, reordered: str
) -> None:
    indexed = make_video("indexed.mp4", "-g", "30", "-bf", reordered, duration_s=4)
    movflags = ("-movflags", "+frag_keyframe+empty_moov+delay_moov")
    fragmented = make_media("pieces.mp4", "-i", str(indexed), "-c", "copy", *movflags)
    expected = (await probe(indexed)).video
    assert expected.closed_gops
    result = await probe(fragmented)
    assert result.lead_s is None
    assert result.video == expected


async def test_an_impossible_sample_aspect_ratio_is_ignored(make_video: MakeMedia) -> None:
    for name, ratio, size in (("low.mp4", "1/100", (640, 360)), ("wide.mp4", "2/1", (1280, 360))):
        source = make_video(name, "-vf", f"setsar={ratio}", duration_s=1)
        video = (await probe(source)).video
        assert (video.width, video.height) == size


async def test_a_high_speed_camera_is_no_damage(make_video: MakeMedia) -> None:
    source = make_video("fast.mp4", "-video_track_timescale", "12000", size="64x36", rate="1200")
    video = (await probe(source)).video
    assert (video.frame_count, video.fps) == (2400, 1200)


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
    result = await probe(source)
    assert [(track.index, track.language, track.title) for track in result.audio] == [
        (3, "deu", "Director's commentary"),
        (1, "eng", None),
        *((index, None, None) for index in (2, 4, 5, 6, 7, 8)),
    ]
    assert [(track.codec, track.language, track.title) for track in result.subtitles] == [
        ("mov_text", None, None),
        ("mov_text", "fra", "Pour tous"),
    ]


async def test_cover_art_is_not_the_video(make_media: MakeMedia) -> None:
    cover = make_media("cover.png", "-f", "lavfi", "-i", "testsrc2=s=64x64", "-frames:v", "1")
    song = make_media(
        "song.m4a",
        *("-f", "lavfi", "-i", "sine=d=1", "-i", str(cover), "-map", "0", "-map", "1"),
        *("-c:a", "aac", "-c:v", "copy", "-disposition:v", "attached_pic", "-f", "mp4"),
    )
    assert await rejection(song) == RejectCode.NO_VIDEO_TRACK


@pytest.mark.parametrize(
    ("first", "second", "enabled", "chosen", "is_noted"),
    [
        ("640x360:r=1:d=1", "320x180:r=10:d=2", "default", 1, False),
        ("64x36:r=10:d=2", "320x180:r=10:d=2", "default", 1, False),
        ("320x180:r=10:d=2", "160x90:r=10:d=2", "default", 0, True),
        ("320x180:r=2:d=2", "320x180:r=10:d=2", "default", 1, True),
        ("320x180:r=10:d=2", "640x360:r=10:d=2", "0", 0, False),
    ],
    ids=["still picture", "small one", "two films", "slides", "disabled"],
)
async def test_the_best_of_several_pictures_is_taken(
    make_media: MakeMedia, first: str, second: str, enabled: str, chosen: int, *, is_noted: bool
) -> None:
    source = make_media(
        f"{first} {second}.mp4".replace(":", " "),
        *("-f", "lavfi", "-i", f"testsrc2=s={first}", "-f", "lavfi", "-i", f"testsrc2=s={second}"),
        *("-map", "0", "-map", "1", "-c:v", "libx264", "-disposition:v:0", "default"),
        *("-disposition:v:1", enabled),
    )
    result = await probe(source)
    assert (result.video.index, result.has_other_picture) == (chosen, is_noted)


@pytest.mark.parametrize(
    ("codec", "name"), [("cinepak", "cinepak"), ("msmpeg4", "msmpeg4v3"), ("rawvideo", "rawvideo")]
)
async def test_a_codec_that_is_not_taken_is_refused_by_name(
    make_media: MakeMedia, codec: str, name: str
) -> None:
    source = make_media("rare.mov", "-f", "lavfi", "-i", "testsrc2=s=64x48:d=1", "-c:v", codec)
    with pytest.raises(SourceRejected, match=f"take: {name}\\.") as caught:
        await probe(source)
    assert caught.value.code == RejectCode.UNSUPPORTED_CODEC


async def test_an_unknown_codec_is_refused_by_the_code_in_the_file(
    plain: Path, write: Write
) -> None:
    content = plain.read_bytes().replace(b"avc1", b'z<"1').replace(b"avcC", b"free")
    with pytest.raises(SourceRejected, match=r"take: z\?\?1\."):
        await probe(write(content))


async def test_sound_in_a_codec_that_is_not_taken_is_left_out(make_media: MakeMedia) -> None:
    inputs = ("-f", "lavfi", "-i", "testsrc2=s=64x48:d=1", "-f", "lavfi", "-i", "sine=d=1")
    result = await probe(str(make_media("rare sound.mov", *inputs, "-c:a", "adpcm_ima_qt")))
    assert (result.audio, result.unheard) == ((), ["ima4"])


def test_ffmpeg_may_use_no_other_decoders() -> None:
    assert reading_options("file")["codec_whitelist"] == DECODERS
    unknown = [name for name in DECODERS.split(",") if name not in av.codecs_available]
    assert unknown == []


NOT_VIDEOS = {
    "empty": b"",
    "text": b"Dear all, please find the minutes attached.\n" * 50,
    "header only": b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom",
    "noise": os.urandom(4096),
}


@pytest.mark.parametrize("content", NOT_VIDEOS.values(), ids=NOT_VIDEOS)
async def test_what_is_no_video_is_refused(write: Write, content: bytes) -> None:
    assert await rejection(write(content)) == RejectCode.NOT_A_VIDEO


async def test_a_source_cut_off_is_refused_unless_it_lacks_a_little(
    make_media: MakeMedia, plain: Path, write: Write
) -> None:
    front = make_media("faststart.mp4", "-i", str(plain), "-c", "copy", "-movflags", "+faststart")
    content = front.read_bytes()
    assert await rejection(write(content[: int(len(content) * 0.85)])) == RejectCode.TRUNCATED
    source = write(content[: int(len(content) * 0.95)])
    result = await probe(source)
    assert 0.9 <= result.readable_share < 1
    assert result.size_bytes == source.stat().st_size


LIMITS = [
    (SourceLimits(max_pixels=640 * 360 - 1), RejectCode.TOO_LARGE, "0.23 megapixels"),
    (SourceLimits(max_duration_s=9), RejectCode.TOO_LONG, "9 s"),
    (SourceLimits(max_size_bytes=100_000), RejectCode.FILE_TOO_LARGE, "0.0001 GB"),
]


@pytest.mark.parametrize(("limits", "code", "words"), LIMITS, ids=[row[1] for row in LIMITS])
async def test_a_source_over_a_limit_is_refused_in_words_that_name_it(
    plain: Path, limits: SourceLimits, code: RejectCode, words: str
) -> None:
    with pytest.raises(SourceRejected) as caught:
        await probe(plain, limits=limits)
    assert caught.value.code == code
    assert words in caught.value.message


async def test_a_protected_source_is_refused_even_if_only_its_sound_is(
    make_media: MakeMedia, plain: Path, write: Write
) -> None:
    source = make_media(
        "protected.mp4",
        *("-i", str(plain), "-c", "copy", "-encryption_scheme", "cenc-aes-ctr"),
        *("-encryption_key", "00112233445566778899aabbccddeeff"),
        *("-encryption_kid", "000102030405060708090a0b0c0d0e0f"),
    )
    assert await rejection(source) == RejectCode.ENCRYPTED
    content = plain.read_bytes()
    at = content.index(b"mp4a", content.index(b"stsd"))
    source = write(content[:at] + b"enca" + content[at + 4 :])
    assert await rejection(source) == RejectCode.ENCRYPTED


async def test_pictures_that_do_not_decode_are_refused(plain: Path, write: Write) -> None:
    content = plain.read_bytes()
    start = content.index(b"mdat") + 4
    end = content.index(b"moov") - 4
    zeroed = write(content[:start] + bytes(end - start) + content[end:])
    assert await rejection(zeroed) == RejectCode.DAMAGED


async def test_few_requests_are_made_however_long_the_source(
    serve: Serve, make_video: MakeMedia
) -> None:
    source = make_video("minutes.mp4", "-g", "60", "-qp", "1", size="320x180", duration_s=60)
    requests: list[str] = []

    async def count(request: web.Request) -> web.StreamResponse:
        requests.append(request.headers.get("Range", ""))
        return web.FileResponse(source)

    assert (await probe(await serve(count))).video.closed_gops
    assert 2 < len(requests) < 20


@pytest.mark.parametrize("status", [403, 503])
async def test_a_source_that_is_not_served_is_not_the_editors_fault(
    serve: Serve, status: int
) -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=status)

    with pytest.raises(TranscodeFailed) as caught:
        await probe(f"{await serve(refuse)}?X-Amz-Signature=secret")
    assert caught.value.code == FailCode.SOURCE_UNREACHABLE
    assert "secret" not in caught.value.detail + str(caught.value)
