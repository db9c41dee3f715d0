"""Probing: what is read from a source, and which sources are refused, with real files."""

import os
from fractions import Fraction
from pathlib import Path

import pytest
from aiohttp import web
from media_recipes import MakeMedia
from published import Write, cpu_of_children_s, rejection
from serving import Serve

from portal.transcoding.errors import FailCode, RejectCode, SourceRejected, TranscodeFailed
from portal.transcoding.probing.probe import SourceLimits, probe


async def test_a_plain_source_is_described(plain: Path) -> None:
    found = await probe(str(plain))
    assert (found.video.codec, found.video.pix_fmt) == ("h264", "yuv420p")
    assert (found.video.width, found.video.height) == (640, 360)
    assert found.video.fps == Fraction(30000, 1001)
    assert found.video.constant_rate
    assert found.video.duration_s == pytest.approx(10, abs=0.05)
    [sound] = found.audio
    assert (sound.codec, sound.channels, sound.sample_rate_hz) == ("aac", 1, 44100)


@pytest.mark.parametrize("rotation", [90, -90, 270])
async def test_a_source_turned_by_a_quarter_is_described_upright(
    make_media: MakeMedia, plain: Path, rotation: int
) -> None:
    turned = make_media(
        f"turned{rotation}.mp4", "-display_rotation", str(rotation), "-i", str(plain), "-c", "copy"
    )
    video = (await probe(str(turned))).video
    assert (video.width, video.height) == (360, 640)
    assert (video.coded_width, video.coded_height) == (640, 360)


async def test_cover_art_is_not_the_video(make_media: MakeMedia) -> None:
    cover = make_media("cover.png", "-f", "lavfi", "-i", "testsrc2=s=64x64", "-frames:v", "1")
    song = make_media(
        "song.m4a",
        *("-f", "lavfi", "-i", "sine=d=1", "-i", str(cover), "-map", "0", "-map", "1"),
        *("-c:a", "aac", "-c:v", "copy", "-disposition:v", "attached_pic", "-f", "mp4"),
    )
    assert await rejection(song) == RejectCode.NO_VIDEO_TRACK


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"Dear all, please find the minutes attached.\n" * 50,
        b"#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n",
        b"ffconcat version 1.0\nfile /etc/passwd\n",
        b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom",
        os.urandom(4096),
    ],
    ids=["empty", "text", "playlist", "concat script", "header only", "noise"],
)
async def test_what_is_no_video_is_refused_quickly(write: Write, content: bytes) -> None:
    source = write(content)
    began_s = cpu_of_children_s()
    assert await rejection(source) == RejectCode.NOT_A_VIDEO
    assert cpu_of_children_s() - began_s < 5


@pytest.mark.parametrize("share", [0.1, 0.9])
async def test_a_source_cut_off_behind_its_index_is_refused(
    make_media: MakeMedia, plain: Path, write: Write, share: float
) -> None:
    front = make_media("faststart.mp4", "-i", str(plain), "-c", "copy", "-movflags", "+faststart")
    content = front.read_bytes()
    assert await rejection(write(content[: int(len(content) * share)])) == RejectCode.TRUNCATED


async def test_a_source_that_lacks_a_little_is_taken(
    make_media: MakeMedia, plain: Path, write: Write
) -> None:
    front = make_media("faststart.mp4", "-i", str(plain), "-c", "copy", "-movflags", "+faststart")
    content = front.read_bytes()
    source = write(content[: int(len(content) * 0.95)])
    found = await probe(str(source))
    assert 0.9 <= found.readable_share < 1
    assert found.size_bytes == source.stat().st_size


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
        await probe(str(plain), limits=limits)
    assert caught.value.code == code
    assert words in caught.value.message


@pytest.mark.parametrize(("entry", "renamed"), [(b"mp4a", b"enca"), (b"avc1", b"encv")])
async def test_one_protected_track_is_enough(
    plain: Path, write: Write, entry: bytes, renamed: bytes
) -> None:
    content = plain.read_bytes()
    at = content.index(entry, content.index(b"stsd"))  # the brand in front stays
    source = write(content[:at] + renamed + content[at + 4 :])
    assert await rejection(source) == RejectCode.ENCRYPTED


async def test_a_protected_source_is_refused(make_media: MakeMedia, plain: Path) -> None:
    source = make_media(
        "protected.mp4",
        *("-i", str(plain), "-c", "copy", "-encryption_scheme", "cenc-aes-ctr"),
        *("-encryption_key", "00112233445566778899aabbccddeeff"),
        *("-encryption_kid", "000102030405060708090a0b0c0d0e0f"),
    )
    assert await rejection(source) == RejectCode.ENCRYPTED


async def test_pictures_that_do_not_decode_are_refused(plain: Path, write: Write) -> None:
    content = plain.read_bytes()
    start, end = content.index(b"mdat") + 4, content.index(b"moov") - 4
    zeroed = write(content[:start] + bytes(end - start) + content[end:])
    assert await rejection(zeroed) == RejectCode.DAMAGED


async def test_a_source_is_read_over_http_wherever_its_index_is(serve: Serve, plain: Path) -> None:
    assert (await probe(await serve(plain))).video.width == 640


async def test_few_requests_are_made_however_long_the_source(
    serve: Serve, make_video: MakeMedia
) -> None:
    source = make_video("minutes.mp4", "-g", "60", "-qp", "10", duration_s=60)
    asked: list[str] = []

    async def count(request: web.Request) -> web.StreamResponse:
        asked.append(request.headers.get("Range", ""))
        return web.FileResponse(source)

    assert (await probe(await serve(count))).video.closed_gops
    assert 2 < len(asked) < 12


@pytest.mark.parametrize("status", [403, 404, 503])
async def test_a_source_that_is_not_served_is_not_the_editors_fault(
    serve: Serve, status: int
) -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=status)

    with pytest.raises(TranscodeFailed) as caught:
        await probe(f"{await serve(refuse)}?X-Amz-Signature=secret")
    assert caught.value.code == FailCode.SOURCE_UNREACHABLE
    assert "secret" not in caught.value.detail + str(caught.value)
