"""A pass that goes on after what is made: as one that was never ended."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from decoded_media import packets
from media_recipes import EXACT_TIMES, IRREGULAR, MakeMedia, join_streams, lavfi
from published import FolderSink, Result, frames, joined, make_pass, playlist

from portal.transcoding.encoding.continuation import (
    MadeRendition,
    MadeSegment,
    NotContinuable,
    Run,
)
from portal.transcoding.encoding.runs import OneRun
from portal.transcoding.packaging.cmaf import inspect_segment, time_scale
from portal.transcoding.packaging.hls import INIT_NAME

TWO_RUNGS, ONE_RUNG = "544x308", "320x180"
X264 = ("-c:v", "libx264", "-preset", "ultrafast", "-level:v", "5.1", "-pix_fmt", "yuv420p")
B_FRAMES = (*X264, "-bf", "3", "-g", "75")
OPEN_GOP = (
    *("-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1"),
    *("-x265-params", "log-level=error:open-gop=1:bframes=4:keyint=50:min-keyint=50:scenecut=0"),
)
TICK_S = 0.001
# Size, rate and options.
SOURCES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "ntsc": (TWO_RUNGS, "30000/1001", B_FRAMES),
    "thinned out": (ONE_RUNG, "120", (*X264, "-g", "999")),
    "open groups": (ONE_RUNG, "30", OPEN_GOP),
    "variable": (ONE_RUNG, "240", ("-vf", IRREGULAR, *B_FRAMES, *EXACT_TIMES)),
    "pauses": (
        "64x48",
        "10",
        ("-vf", "select='lt(mod(t,7),0.7)'", *X264, "-bf", "2", "-g", "999", "-fps_mode", "vfr"),
    ),
    "picture ends early": ("64x48", "10", ("-vf", "select='lt(t,3)'", *X264, "-bf", "2")),
    "interlaced": (ONE_RUNG, "50", ("-vf", "interlace", *X264, "-flags", "+ilme+ildct")),
}


def moving(make_media: MakeMedia, kind: str) -> Path:
    size, rate, options = SOURCES[kind]
    # Only times are compared, and a plain picture is quick to encode.
    inputs = lavfi(f"color=teal:s={size}:r={rate}:d=13", "sine=f=440:d=13:r=48000")
    return make_media(f"continued {kind}.mp4", *inputs, *options)


class Record:
    """What passes told of the segments that they stored, by rendition and number."""

    def __init__(self) -> None:
        self.made: dict[str, dict[int, MadeSegment]] = {}

    def __call__(self, name: str, number: int, segment: MadeSegment) -> None:
        self.made.setdefault(name, {})[number] = segment

    def kept(self, sink: FolderSink, count: int, prefix: str) -> OneRun:
        """The first segments of each picture."""
        renditions = {
            name: MadeRendition(
                init=(sink.folder / name / INIT_NAME).read_bytes(),
                segments=tuple(segments[number] for number in range(count)),
            )
            for name, segments in self.made.items()
            if name != "audio"
        }
        return OneRun(Run(made=renditions, prefix=prefix))


async def continued(path: Path, sink: FolderSink, **options: Any) -> Result:
    """Make a pass, go on with it after its first segment, and with that after three."""
    record = Record()
    await make_pass(path, sink=sink, on_made=record, **options)
    for count, prefix in ((1, "2-"), (3, "3-")):
        kept = record.kept(sink, count, prefix)
        result = await make_pass(path, sink=sink, on_made=record, runs=kept, **options)
    return result


def times_s(folder: Path, name: str) -> list[float]:
    """When each frame is shown, in the order of showing."""
    made = packets(joined(folder, name))
    assert all(a.decoded_s < b.decoded_s for a, b in pairwise(made)), "decode times fall"
    return sorted(float(packet.shown_s) for packet in made)


def check_alike(whole: Path, parts: Path, name: str, *, within_s: float) -> None:
    """The same frames in the same segments, each shown from where the one before it ends."""
    assert times_s(parts, name) == pytest.approx(times_s(whole, name), abs=within_s)
    made = playlist(parts, name)
    starts_s = playlist(whole, name).starts_s
    assert made.starts_s == pytest.approx(starts_s, abs=within_s + 1e-6)
    uris = [segment.uri for segment in made.segments]
    assert uris[:4] == ["00000.m4s", "2-00001.m4s", "2-00002.m4s", "3-00003.m4s"]
    scale = time_scale((parts / name / INIT_NAME).read_bytes())
    segments = [inspect_segment((parts / name / uri).read_bytes()) for uri in uris]
    assert all(segment.is_closed for segment in segments)
    for one, next_one in pairwise(segments):
        assert abs(next_one.from_ticks - one.until_ticks) / scale <= TICK_S


@pytest.mark.parametrize(
    "kind",
    [
        it if it in ("ntsc", "pauses") else pytest.param(it, marks=pytest.mark.slow)
        for it in SOURCES
    ],
)
async def test_frames_and_sound_are_those_of_an_unbroken_pass(
    kind: str, make_media: MakeMedia, tmp_path: Path
) -> None:
    path = moving(make_media, kind)
    whole, parts = FolderSink(tmp_path / "whole"), FolderSink(tmp_path / "parts")
    unbroken = await make_pass(path, sink=whole, work_dir=tmp_path)
    result = await continued(path, parts, work_dir=tmp_path)
    within_s = 0.0 if unbroken.source.video.constant_rate else TICK_S
    for each in unbroken.renditions:
        check_alike(whole.folder, parts.folder, each.name, within_s=within_s)
    assert result.output.duration_s == pytest.approx(unbroken.output.duration_s, abs=TICK_S)
    one, other = (packets(joined(it.folder, "audio"), "audio") for it in (whole, parts))
    assert [packet.data for packet in one] == [packet.data for packet in other]


async def test_parts_of_other_shapes_and_fields_are_those_of_an_unbroken_pass(
    make_media: MakeMedia, tmp_path: Path
) -> None:
    def part(name: str, size: str, filters: str, *options: str) -> Path:
        inputs = lavfi(f"testsrc2=s={size}:r=20:d=5")
        encoding = ("-vf", filters, *X264, "-g", "10", *options, "-r", "10", "-f", "h264")
        return make_media(f"{name}.h264", *inputs, *encoding)

    interlacing = "tinterlace=interleave_top,fieldorder=tff,setpts=N/10/TB"
    parts = (
        part("progressive", "96x64", "select='not(mod(n,2))',setpts=N/10/TB"),
        part("interlaced", "96x64", interlacing, "-x264-params", "tff=1"),
        part("upright", "64x96", "select='not(mod(n,2))',setpts=N/10/TB"),
    )
    path = join_streams(make_media, *parts, rate="10")
    whole = FolderSink(tmp_path / "whole")
    again = FolderSink(tmp_path / "parts")

    (rendition,) = (await make_pass(path, sink=whole, work_dir=tmp_path)).renditions
    await continued(path, again, work_dir=tmp_path)

    check_alike(whole.folder, again.folder, rendition.name, within_s=TICK_S)
    unbroken = frames(whole.folder, rendition.name)
    resumed = frames(again.folder, rendition.name)
    for expected, frame in zip(unbroken, resumed, strict=True):
        luma = bytes(frame.planes[0])
        pairs = zip(bytes(expected.planes[0]), luma, strict=True)
        assert sum(abs(a - b) for a, b in pairs) / len(luma) < 4


@pytest.mark.slow
async def test_later_renditions_go_on_at_the_cuts_of_the_first(
    make_media: MakeMedia, tmp_path: Path
) -> None:
    path = moving(make_media, "ntsc")
    sink, again = FolderSink(tmp_path / "whole"), FolderSink(tmp_path / "parts")
    first = await make_pass(path, sink=sink, work_dir=tmp_path)
    name = first.renditions[0].name
    reference = playlist(sink.folder, name)
    await continued(path, again, reference=reference, wanted=[name], work_dir=tmp_path)
    # Made alone it is encoded in the same way, so that either may go on with the other.
    inits = [(it.folder / name / INIT_NAME).read_bytes() for it in (sink, again)]
    assert inits[0] == inits[1]
    check_alike(sink.folder, again.folder, name, within_s=0.0)


async def test_what_does_not_fit_is_not_gone_on_with(make_media: MakeMedia, tmp_path: Path) -> None:
    path, sink, record = moving(make_media, "ntsc"), FolderSink(tmp_path / "sink"), Record()
    options = {"sink": sink, "work_dir": tmp_path}
    [low, _] = (await make_pass(path, on_made=record, **options)).renditions
    kept = record.kept(sink, 2, "2-")
    with pytest.raises(NotContinuable, match="other renditions"):
        await make_pass(path, runs=kept, wanted=[low.name], **options)
    with pytest.raises(NotContinuable, match="no segment"):
        await make_pass(path, runs=record.kept(sink, 0, "2-"), **options)
    for rendition in kept.run.made.values():
        object.__setattr__(rendition, "init", rendition.init.replace(b"avcC\x01d", b"avcC\x01M"))
    with pytest.raises(NotContinuable, match="init segment"):
        await make_pass(path, runs=kept, **options)
