"""A resumed pass gives the same renditions as one that was never interrupted."""

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

TWO_RUNGS = "544x308"
ONE_RUNG = "320x180"
X264 = ("-c:v", "libx264", "-preset", "ultrafast", "-level:v", "5.1", "-pix_fmt", "yuv420p")
B_FRAMES = (*X264, "-bf", "3", "-g", "75")
OPEN_GOP_PARAMS = "log-level=error:open-gop=1:bframes=4:keyint=50:min-keyint=50:scenecut=0"
X265 = ("-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1")
OPEN_GOP = (*X265, "-x265-params", OPEN_GOP_PARAMS)
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
    """Segments that passes stored, by rendition and number."""

    def __init__(self) -> None:
        self.made: dict[str, dict[int, MadeSegment]] = {}

    def __call__(self, name: str, number: int, segment: MadeSegment) -> None:
        self.made.setdefault(name, {})[number] = segment

    def run_after(self, sink: FolderSink, count: int, prefix: str) -> OneRun:
        """Return a run after the first segments of each video rendition."""
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
    """Make a pass, resume it after its first segment, and resume that after three."""
    record = Record()
    await make_pass(path, sink=sink, on_made=record, **options)
    for count, prefix in ((1, "2-"), (3, "3-")):
        run = record.run_after(sink, count, prefix)
        result = await make_pass(path, sink=sink, on_made=record, runs=run, **options)
    return result


def times_s(folder: Path, name: str) -> list[float]:
    """Return the sorted times at which frames are shown."""
    frames = packets(joined(folder, name))
    assert all(a.decoded_s < b.decoded_s for a, b in pairwise(frames)), "decode times fall"
    return sorted(float(frame.shown_s) for frame in frames)


def check_alike(whole: Path, parts: Path, name: str, *, within_s: float) -> None:
    """Check that frames and segments are the same, and that segments follow each other."""
    assert times_s(parts, name) == pytest.approx(times_s(whole, name), abs=within_s)
    resumed = playlist(parts, name)
    starts_s = playlist(whole, name).starts_s
    assert resumed.starts_s == pytest.approx(starts_s, abs=within_s + 1e-6)
    uris = [segment.uri for segment in resumed.segments]
    assert uris[:4] == ["00000.m4s", "2-00001.m4s", "2-00002.m4s", "3-00003.m4s"]
    scale = time_scale((parts / name / INIT_NAME).read_bytes())
    segments = [inspect_segment((parts / name / uri).read_bytes()) for uri in uris]
    assert all(segment.is_closed for segment in segments)
    for before, after in pairwise(segments):
        assert abs(after.from_ticks - before.until_ticks) / scale <= TICK_S


@pytest.mark.parametrize(
    "kind",
    [
        kind if kind in ("ntsc", "pauses") else pytest.param(kind, marks=pytest.mark.slow)
        for kind in SOURCES
    ],
)
async def test_frames_and_sound_are_those_of_an_unbroken_pass(
    kind: str, make_media: MakeMedia, tmp_path: Path
) -> None:
    path = moving(make_media, kind)
    whole = FolderSink(tmp_path / "whole")
    parts = FolderSink(tmp_path / "parts")
    unbroken = await make_pass(path, sink=whole, work_dir=tmp_path)
    result = await continued(path, parts, work_dir=tmp_path)
    within_s = 0.0 if unbroken.source.video.constant_rate else TICK_S
    for each in unbroken.renditions:
        check_alike(whole.folder, parts.folder, each.name, within_s=within_s)
    assert result.output.duration_s == pytest.approx(unbroken.output.duration_s, abs=TICK_S)
    sounds = [packets(joined(sink.folder, "audio"), "audio") for sink in (whole, parts)]
    assert [packet.data for packet in sounds[0]] == [packet.data for packet in sounds[1]]


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
async def test_later_renditions_resume_at_the_cuts_of_the_first(
    make_media: MakeMedia, tmp_path: Path
) -> None:
    path = moving(make_media, "ntsc")
    sink = FolderSink(tmp_path / "whole")
    again = FolderSink(tmp_path / "parts")
    first = await make_pass(path, sink=sink, work_dir=tmp_path)
    name = first.renditions[0].name
    reference = playlist(sink.folder, name)
    await continued(path, again, reference=reference, wanted=[name], work_dir=tmp_path)
    # A rendition is encoded in the same way in both passes, so either can resume the other.
    inits = [(each.folder / name / INIT_NAME).read_bytes() for each in (sink, again)]
    assert inits[0] == inits[1]
    check_alike(sink.folder, again.folder, name, within_s=0.0)


async def test_a_pass_is_not_resumed_after_segments_that_do_not_fit(
    make_media: MakeMedia, tmp_path: Path
) -> None:
    path = moving(make_media, "ntsc")
    sink = FolderSink(tmp_path / "sink")
    record = Record()
    options = {"sink": sink, "work_dir": tmp_path}
    [low, _] = (await make_pass(path, on_made=record, **options)).renditions
    run = record.run_after(sink, 2, "2-")
    with pytest.raises(NotContinuable, match="other renditions"):
        await make_pass(path, runs=run, wanted=[low.name], **options)
    with pytest.raises(NotContinuable, match="no segment"):
        await make_pass(path, runs=record.run_after(sink, 0, "2-"), **options)
    for rendition in run.run.made.values():
        object.__setattr__(rendition, "init", rendition.init.replace(b"avcC\x01d", b"avcC\x01M"))
    with pytest.raises(NotContinuable, match="init segment"):
        await make_pass(path, runs=run, **options)
