"""A pass that goes on after what is made: as one that was never ended."""

import asyncio
import io
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from decoded_media import open_media
from media_recipes import EXACT_TIMES, MakeMedia, jittering, lavfi
from published import FolderSink, Result, joined, make_pass, payloads, playlist

from portal.transcoding.encoding.continuation import MadeRendition, MadeSegment, NotContinuable
from portal.transcoding.encoding.transcode import Resume
from portal.transcoding.packaging.cmaf import inspect_segment, time_scale
from portal.transcoding.packaging.hls import INIT_NAME

DURATION_S = 13
MOVING = "testsrc2=s={size}:r={rate}:d={duration_s}"
TWO_RUNGS, ONE_RUNG = "544x308", "320x180"
X264 = ("-c:v", "libx264", "-preset", "ultrafast", "-level:v", "5.1", "-pix_fmt", "yuv420p")
B_FRAMES = (*X264, "-bf", "3", "-g", "75")
OPEN_GOP = (
    *("-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1"),
    *("-x265-params", "log-level=error:open-gop=1:bframes=4:keyint=50:min-keyint=50:scenecut=0"),
)
IRREGULAR = (
    "select='gte(t-prev_selected_t,0.0165+0.045*mod(n*7919,1000)/1000)+eq(n,0)',"
    "settb=1/1000000,setpts='PTS+mod(N*7919,900)'"
)
TICK_S = 0.001
OTHERS = ("sparse", "fast", "open_gop", "jittering", "variable", "interlaced")

Make = Callable[[MakeMedia], Path]


def moving(
    make_media: MakeMedia,
    name: str,
    rate: str,
    *options: str,
    filters: str = "null",
    size: str = ONE_RUNG,
) -> Path:
    picture = MOVING.format(size=size, rate=rate, duration_s=DURATION_S)
    inputs = lavfi(picture, f"sine=f=440:d={DURATION_S}:r=48000")
    return make_media(f"continued {name}.mp4", *inputs, "-vf", filters, *options)


SOURCES: dict[str, Make] = {
    "ntsc": lambda make: moving(make, "ntsc", "30000/1001", *B_FRAMES, size=TWO_RUNGS),
    "sparse": lambda make: moving(make, "sparse", "25", *X264, "-g", "999"),
    "fast": lambda make: moving(make, "fast", "120", *B_FRAMES),
    "open_gop": lambda make: moving(make, "open_gop", "30", *OPEN_GOP),
    "jittering": lambda make: moving(
        make, "jittering", "30", *B_FRAMES, *EXACT_TIMES, filters=jittering("null", 9000)
    ),
    "variable": lambda make: moving(
        make, "variable", "240", *B_FRAMES, *EXACT_TIMES, filters=IRREGULAR
    ),
    "interlaced": lambda make: moving(
        make, "interlaced", "50", *X264, "-flags", "+ilme+ildct", filters="interlace"
    ),
}


@dataclass
class Record:
    """What passes told of the segments that they stored."""

    segments: dict[str, dict[int, MadeSegment]] = field(default_factory=dict)
    enough: asyncio.Event = field(default_factory=asyncio.Event)
    wanted: int = 0

    def __call__(self, name: str, number: int, segment: MadeSegment) -> None:
        self.segments.setdefault(name, {})[number] = segment
        if self.whole() >= self.wanted:
            self.enough.set()

    def whole(self) -> int:
        """How many segments there are of each rendition, without a gap."""
        counts = [0]
        for made in self.segments.values():
            counts.append(next(n for n in range(len(made) + 1) if n not in made))
        return min(counts[1:], default=0)

    def kept(self, sink: FolderSink, prefix: str, count: int | None = None) -> Resume:
        """The first segments of each rendition, or all."""
        number = self.whole() if count is None else count
        renditions = {
            name: MadeRendition(
                init=(sink.folder / name / INIT_NAME).read_bytes(),
                segments=tuple(made[each] for each in range(number)),
            )
            for name, made in self.segments.items()
        }
        return Resume(renditions=renditions, prefix=prefix)


async def continued(
    path: Path, *, sink: FolderSink, counts: tuple[int, ...], **options: Any
) -> Result:
    """Make a pass, and go on with it after so many segments, several times."""
    record = Record()
    result = await make_pass(path, sink=sink, on_made=record, **options)
    for number, count in enumerate(counts, start=2):
        kept = record.kept(sink, f"{number}-", count)
        result = await make_pass(path, sink=sink, on_made=record, resume=kept, **options)
    return result


async def ended_after(path: Path, record: Record, count: int, **options: Any) -> None:
    """Begin a pass and cancel it when so many segments are stored."""
    record.wanted, record.enough = count, asyncio.Event()
    making = asyncio.create_task(make_pass(path, on_made=record, **options))
    await asyncio.wait(
        {making, asyncio.create_task(record.enough.wait())}, return_when="FIRST_COMPLETED"
    )
    assert not making.done(), "the pass was too fast to be ended"
    making.cancel()
    with suppress(asyncio.CancelledError):
        await making


def times_s(folder: Path, name: str) -> list[float]:
    """When each frame is shown, in the order of showing."""
    with open_media(io.BytesIO(joined(folder, name))) as container:
        stream = container.streams.video[0]
        packets = [it for it in container.demux(stream) if it.size]
        decoded = [float(it.dts * stream.time_base) for it in packets]
        assert all(a < b for a, b in pairwise(decoded)), "decode times fall"
        return sorted(float(it.pts * stream.time_base) for it in packets)


def check_segments(folder: Path, name: str) -> None:
    """Each segment is shown, and decoded, from where the one before it ends."""
    scale = time_scale((folder / name / INIT_NAME).read_bytes())
    segments = [
        inspect_segment((folder / name / it.uri).read_bytes())
        for it in playlist(folder, name).segments
    ]
    assert all(segment.is_closed for segment in segments)
    for one, next_one in pairwise(segments):
        assert abs(next_one.from_ticks - one.until_ticks) / scale <= TICK_S


def check_alike(whole: Path, parts: Path, name: str, *, within_s: float) -> None:
    expected, found = times_s(whole, name), times_s(parts, name)
    assert len(found) == len(expected)
    assert found == pytest.approx(expected, abs=within_s)
    starts = playlist(whole, name).starts_s
    assert playlist(parts, name).starts_s == pytest.approx(starts, abs=within_s + 1e-6)
    check_segments(parts, name)


@pytest.mark.parametrize(
    "kind", ["ntsc", *(pytest.param(each, marks=pytest.mark.slow) for each in OTHERS)]
)
async def test_frames_and_sound_are_those_of_an_unbroken_pass(
    kind: str, make_media: MakeMedia, tmp_path: Path
) -> None:
    path = SOURCES[kind](make_media)
    whole, parts = FolderSink(tmp_path / "whole"), FolderSink(tmp_path / "parts")
    unbroken = await make_pass(path, sink=whole, work_dir=tmp_path)
    result = await continued(path, sink=parts, counts=(1, 3), work_dir=tmp_path)
    within_s = 0.0 if unbroken.source.video.constant_rate else TICK_S
    names = [each.name for each in unbroken.renditions]
    for name in names:
        check_alike(whole.folder, parts.folder, name, within_s=within_s)
        uris = [segment.uri for segment in playlist(parts.folder, name).segments]
        assert uris[:4] == ["00000.m4s", "2-00001.m4s", "2-00002.m4s", "3-00003.m4s"]
    assert result.duration_s == pytest.approx(unbroken.duration_s, abs=TICK_S)
    sounds = [io.BytesIO(joined(each, "audio")) for each in (whole.folder, parts.folder)]
    assert payloads(sounds[0], kind="audio") == payloads(sounds[1], kind="audio")


@pytest.mark.slow
async def test_later_renditions_go_on_at_the_cuts_of_the_first(
    make_media: MakeMedia, tmp_path: Path
) -> None:
    path = SOURCES["ntsc"](make_media)
    sink, again = FolderSink(tmp_path / "whole"), FolderSink(tmp_path / "parts")
    first = await make_pass(path, sink=sink, work_dir=tmp_path)
    [low, *_] = first.renditions
    reference = playlist(sink.folder, low.name)
    options = {"reference": reference, "work_dir": tmp_path, "wanted": [low.name]}
    await continued(path, sink=again, counts=(1, 2), **options)
    check_alike(sink.folder, again.folder, low.name, within_s=0.0)


@pytest.mark.slow
async def test_a_pass_that_was_ended_makes_no_segment_again(
    make_video: MakeMedia, tmp_path: Path
) -> None:
    path = make_video("continued long.mp4", duration_s=28, rate="30", size="1280x720")
    sink, record, seen = FolderSink(tmp_path / "sink"), Record(), []

    async def note(stage: object, percent: float, seconds_left: float | None) -> None:
        seen.append(percent)

    options = {"sink": sink, "work_dir": tmp_path, "on_progress": note}
    await ended_after(path, record, 2, **options)
    kept = record.kept(sink, "2-")
    until = len(seen)
    await ended_after(path, record, record.whole() + 2, resume=kept, **options)
    assert min(seen[until + 1 :]) >= 95 * 8 / 28, "what is made counts from the start"
    result = await make_pass(path, on_made=record, resume=record.kept(sink, "3-"), **options)
    assert result.renditions
    for each in result.renditions:
        stored = [it for it in sink.names if it.startswith(f"{each.name}/") and ".m4s" in it]
        assert len(stored) <= len(playlist(sink.folder, each.name).segments) + 8
        check_segments(sink.folder, each.name)
        assert len(times_s(sink.folder, each.name)) == 28 * 30


async def test_what_does_not_fit_is_not_gone_on_with(make_media: MakeMedia, tmp_path: Path) -> None:
    path, sink, record = SOURCES["ntsc"](make_media), FolderSink(tmp_path / "sink"), Record()
    options = {"sink": sink, "work_dir": tmp_path}
    result = await make_pass(path, on_made=record, **options)
    kept = record.kept(sink, "2-", 2)
    for rendition in kept.renditions.values():
        object.__setattr__(rendition, "init", rendition.init.replace(b"avcC\x01d", b"avcC\x01M"))
    with pytest.raises(NotContinuable, match="another way"):
        await make_pass(path, resume=kept, **options)
    with pytest.raises(NotContinuable, match="no segment"):
        await make_pass(path, resume=record.kept(sink, "2-", 0), **options)
    [low, *_] = result.renditions
    with pytest.raises(NotContinuable, match="other renditions"):
        await make_pass(path, resume=record.kept(sink, "2-", 2), wanted=[low.name], **options)
