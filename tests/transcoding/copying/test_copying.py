"""A copy holds every packet of its source at its own time, or is refused with a reason."""

import asyncio
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from decoded_media import Packet, open_media, packets
from media_recipes import MakeMedia, with_late
from published import check_durations, frames, ignore, joined, playlist
from serving import Hanging, Serve, begin_range, children_naming, cut

from portal.transcoding.copying.remux import Selection, remux
from portal.transcoding.errors import CopyUndeliverable, FailCode, TranscodeFailed
from portal.transcoding.probing.source import without_private_units

VIDEO = "video"
SOUND = "audio"
GROUPS = ("-g", "60", "-bf", "2")
SMALL = "320x180"
SIGNED = "?X-Amz-Signature=secret"

Make = Callable[[MakeMedia, MakeMedia], Path]


@dataclass(frozen=True)
class Copied:
    """A copy, beside its source; the renditions are named for what they are of."""

    source: Path
    folder: Path
    dropped: Mapping[str, str]

    def packets(self, kind: str) -> tuple[list[Packet], list[Packet]]:
        """Return the packets of the copy, and those of its source.

        The encoder's name, at the beginning of the first picture, is not copied.
        """
        copied = packets(joined(self.folder, kind), kind)
        first, *others = packets(self.source, kind)
        if kind == VIDEO and first.data.endswith(copied[0].data):
            first = replace(first, data=copied[0].data)
        return copied, [first, *others]


async def copy(
    source: Path, folder: Path, *, address: str = "", end_s: float = 1e6, **how: Any
) -> Copied:
    """Copy the first picture and the first sound."""
    with open_media(source) as container:
        tracks = {VIDEO: container.streams.video[0].index}
        if sounds := container.streams.audio:
            tracks[SOUND] = sounds[0].index
    defaults = {"on_progress": ignore, "paused": asyncio.Event(), "timeout_s": 60}
    selection = Selection(tracks=tracks, end_s=end_s)
    remuxed = await remux(address or str(source), selection, work_dir=folder, **{**defaults, **how})
    return Copied(source, folder, remuxed.dropped)


def made(name: str, *options: str, **scene: Any) -> Make:
    """A test picture with a tone, as ffmpeg writes it: the index at the end."""
    return lambda video, _: video(f"copy {name}.mp4", *GROUPS, *options, size=SMALL, **scene)


def late(track: str, late_s: float) -> Make:
    def make(video: MakeMedia, media: MakeMedia) -> Path:
        whole = video("copy plain.mp4", *GROUPS, size=SMALL, duration_s=12)
        return with_late(media, f"copy late {track[-1]} {late_s}.mp4", whole, track, late_s)

    return make


FINE = ("-fps_mode", "passthrough", "-enc_time_base", "1:90000", "-video_track_timescale", "90000")
JITTER = ("-vf", "settb=1/90000,setpts='PTS+600*random(1)'", *FINE)
EXACT = {
    "B-frames in pyramids": made("pyramids", "-bf", "5", "-b-pyramid", "normal", duration_s=12),
    "jittering": made("jittering", *JITTER, duration_s=12),
    "a coarse time scale": made("coarse", "-video_track_timescale", "600", duration_s=12),
    "late picture": late("0:v", 0.4),
    "fragments": made("pieces", "-movflags", "+frag_keyframe+delay_moov", duration_s=12),
}


@pytest.mark.parametrize("make", EXACT.values(), ids=EXACT)
async def test_every_packet_keeps_its_bytes_and_its_times(
    make: Make, make_video: MakeMedia, make_media: MakeMedia, tmp_path: Path
) -> None:
    copied = await copy(make(make_video, make_media), tmp_path)

    assert not copied.dropped
    video, own_video = copied.packets(VIDEO)
    # The encoder's remark in the first packet is dropped.
    assert own_video[0].data.endswith(video[0].data)
    assert [packet.data for packet in video[1:]] == [packet.data for packet in own_video[1:]]
    assert [packet.shown_s for packet in video[1:]] == [packet.shown_s for packet in own_video[1:]]
    check_durations(copied.folder, VIDEO)
    assert video[0].shown_s == 0, "shown from the beginning, however late it is in the source"
    sound, own_sound = copied.packets(SOUND)
    assert [packet.data for packet in sound] == [packet.data for packet in own_sound]
    # To half a sample, where the source's ticks are no samples.
    for packet, own in zip(sound, own_sound, strict=True):
        assert abs(packet.shown_s - own.shown_s) * 44_100 <= 40


@pytest.mark.parametrize(
    ("keys_s", "film_s", "expected_s"),
    [
        pytest.param("0,1,3.92,7,9.52,10,11,14", 16, [0, 3.92, 9.52, 14], id="irregular"),
        pytest.param("0,4,8", 8.04, [0, 4], id="a few frames at the end are no segment"),
    ],
)
async def test_segments_begin_where_the_rule_says_and_decode_alone(
    keys_s: str, film_s: float, expected_s: list[float], make_video: MakeMedia, tmp_path: Path
) -> None:
    keys = ("-g", "999", "-force_key_frames", keys_s, "-bf", "2")
    await copy(make_video("keys.mp4", *keys, size=SMALL, rate="25", duration_s=film_s), tmp_path)

    # Half a frame of 1024 samples.
    for name, within_s, per_s in ((VIDEO, 0.001, 25), (SOUND, 0.012, 44_100 / 1024)):
        written = playlist(tmp_path, name)
        assert written.starts_s == pytest.approx(expected_s, abs=within_s)
        assert written.duration_s == pytest.approx(film_s, abs=0.03)
        for number, segment in enumerate(written.segments):
            alone = frames(tmp_path, name, number)
            assert len(alone) == pytest.approx(segment.duration_s * per_s, abs=2)
            assert alone[0].time == pytest.approx(expected_s[number], abs=0.05)
        files = {path.name for path in (tmp_path / name).iterdir()}
        named = {segment.uri for segment in written.segments}
        assert files == named | {"init.mp4", "playlist.m3u8"}


async def test_nothing_of_the_sources_metadata_is_copied(
    make_video: MakeMedia, make_media: MakeMedia, tmp_path: Path
) -> None:
    about = ("-metadata", "title=Secret", "-metadata", "location=+48.2+16.3/")
    track = ("-metadata:s:v", "handler_name=Secret", "-metadata:s:a", "language=deu")
    plain = make_video("secret.mp4", *GROUPS, *about, *track)
    # A camera may also write into the stream.
    remark = "h264_metadata=sei_user_data=17ee8c60f84d11d98cd60800200c9a66+GPS 48.1371 11.5754"
    source = make_media("marked.mp4", "-i", str(plain), "-c", "copy", "-bsf:v", remark)
    assert b"Secret" in source.read_bytes()
    assert b"GPS 48.1371" in source.read_bytes()

    copied = await copy(source, tmp_path)

    for name in (VIDEO, SOUND):
        init = (tmp_path / name / "init.mp4").read_bytes()
        assert b"Secret" not in init
        assert b"+48.2" not in init
        assert b"\x55\xc4" in init, "the language is undetermined"
    video, own_video = copied.packets(VIDEO)
    assert len(frames(tmp_path, VIDEO)) == len(video) == len(own_video)
    assert not any(b"GPS" in packet.data or b"x264" in packet.data for packet in video)


def test_captions_in_the_stream_are_copied_and_units_for_private_use_are_not() -> None:
    picture = b"\x65\x88\x84"
    timing = b"\x06\x01\x04\x00\x00\x03\x00\x10\x80"
    captions = b"\x06\x04\x07\xb5\x00\x31GA94\x80"
    maker = b"\x06\x04\x07\xb5\x00\x30GPS1\x80"
    remark = b"\x06\x05\xff\x02" + bytes(257) + b"\x80"
    both = b"\x06\x01\x01\x00\x05\x01\x00\x80"

    def sample(*units: bytes) -> bytes:
        return b"".join(len(unit).to_bytes(4) + unit for unit in units)

    given = sample(timing, captions, maker, remark, both, b"\x1fGPS", picture)
    assert without_private_units(given, 4) == sample(timing, captions, picture)


def starting_within_a_group(video: MakeMedia, media: MakeMedia) -> Path:
    whole = video("copy plain.mp4", *GROUPS, size=SMALL, duration_s=12)
    return media("copy trimmed.mp4", "-ss", "1.5", "-i", str(whole), "-c", "copy")


def changing_parameter_sets(video: MakeMedia, media: MakeMedia) -> Path:
    """Two recordings one after the other; the second one's parameter sets lie between frames."""
    sizes = ("320x180", "640x360")
    parts = [video(f"copy {size}.mp4", *GROUPS, size=size, audio_s=0) for size in sizes]
    listing = parts[0].with_name("copy parts.txt")
    listing.write_text("".join(f"file '{part}'\n" for part in parts))
    return media("copy both.mp4", "-f", "concat", "-safe", "0", "-i", str(listing), "-c", "copy")


OPEN_GOP = ("-preset", "fast", "-x264-params", "open-gop=1:keyint=30")
REFUSED = {
    "groups of 12 s": (made("long", "-g", "999", duration_s=12), "long_gop"),
    "open groups": (made("open", *OPEN_GOP, duration_s=12), "long_gop"),
    "another codec": (made("mpeg4", "-c:v", "mpeg4"), "codec"),
    "cut by an edit list": (starting_within_a_group, "edited"),
    "changing parameter sets": (changing_parameter_sets, "parameter_sets"),
}


@pytest.mark.parametrize(("make", "reason"), REFUSED.values(), ids=REFUSED)
async def test_a_video_that_players_may_fail_at_is_refused(
    make: Make, reason: str, make_video: MakeMedia, make_media: MakeMedia, tmp_path: Path
) -> None:
    with pytest.raises(CopyUndeliverable) as caught:
        await copy(make(make_video, make_media), tmp_path)
    assert caught.value.reason == reason


DROPPED = {
    "gaps": (made("gaps", "-af", "aselect='not(between(t,3,3.5))'", duration_s=8), "gaps"),
    "a late start": (late("0:a", 3.2), "gaps"),
    "an early end": (made("short sound", duration_s=8, audio_s=2), "gaps"),
    "another codec": (made("surround", "-ac", "6"), "codec"),
}


@pytest.mark.parametrize(("make", "reason"), DROPPED.values(), ids=DROPPED)
async def test_sound_that_cannot_be_copied_is_left_to_be_encoded(
    make: Make, reason: str, make_video: MakeMedia, make_media: MakeMedia, tmp_path: Path
) -> None:
    copied = await copy(make(make_video, make_media), tmp_path)

    assert copied.dropped == {SOUND: reason}
    video, own_video = copied.packets(VIDEO)
    assert [packet.data for packet in video[1:]] == [packet.data for packet in own_video[1:]]
    assert not (tmp_path / SOUND / "playlist.m3u8").exists()


@pytest.fixture
def large(make_video: MakeMedia) -> Path:
    """Large enough that a connection holds a part of it only."""
    rates = ("-b:v", "8M", "-minrate", "8M", "-maxrate", "8M", "-bufsize", "8M")
    # The encoder fills a constant rate with data that nothing decodes.
    options = (*GROUPS, *rates, "-x264-params", "nal-hrd=cbr", "-movflags", "+faststart")
    return make_video("copy large.mp4", *options, size=SMALL, duration_s=20)


PROGRAM = "portal.transcoding.copying"


async def test_reading_continues_after_broken_connections(
    large: Path, serve: Serve, tmp_path: Path
) -> None:
    content = large.read_bytes()
    request_count = 0
    positions: list[float] = []

    async def unsteady(request: web.Request) -> web.StreamResponse:
        nonlocal request_count
        request_count += 1
        start, response = await begin_range(request, len(content))
        if request_count <= 2:
            await response.write(content[start : (start + len(content)) // 2])
            cut(request)
            return response
        with suppress(ConnectionError):
            await response.write(content[start:])
        return response

    async def on_progress(copied_s: float) -> None:
        positions.append(copied_s)

    copied = await copy(large, tmp_path, address=await serve(unsteady), on_progress=on_progress)

    assert request_count > 2
    video, own_video = copied.packets(VIDEO)
    assert [packet.data for packet in video[1:]] == [packet.data for packet in own_video[1:]]
    assert positions == sorted(positions)
    assert positions[-1] == pytest.approx(20, abs=0.1)
    assert not children_naming(PROGRAM)


async def test_an_unreachable_source_is_not_damaged(
    large: Path, serve: Serve, tmp_path: Path
) -> None:
    content = large.read_bytes()
    request_count = 0

    async def going(request: web.Request) -> web.StreamResponse:
        nonlocal request_count
        request_count += 1
        if request_count > 1:
            return web.Response(status=403)
        start, response = await begin_range(request, len(content))
        await response.write(content[start : len(content) // 2])
        cut(request)
        return response

    with pytest.raises(TranscodeFailed) as caught:
        await copy(large, tmp_path, address=await serve(going) + SIGNED)
    assert caught.value.code == FailCode.SOURCE_UNREACHABLE
    assert "secret" not in caught.value.detail


async def test_a_copy_without_progress_is_ended(
    plain: Path, hanging: Hanging, tmp_path: Path
) -> None:
    with pytest.raises(TranscodeFailed, match=FailCode.STALLED):
        await copy(plain, tmp_path, address=hanging.address, stall_s=0.5)
    assert not children_naming(PROGRAM)


CRASHED = (signal.SIGSEGV, CopyUndeliverable)
KILLED = (signal.SIGKILL, TranscodeFailed)


@pytest.mark.parametrize(("number", "expected"), [CRASHED, KILLED])
async def test_a_source_that_crashes_its_copy_is_encoded_and_a_killed_copy_is_retried(
    number: int, expected: type[Exception], plain: Path, hanging: Hanging, tmp_path: Path
) -> None:
    task = asyncio.create_task(copy(plain, tmp_path, address=hanging.address))
    await hanging.requested.wait()
    children_naming(PROGRAM)[0].send_signal(number)
    with pytest.raises(expected):
        await task
