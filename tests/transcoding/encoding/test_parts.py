"""A pass of several parts gives the same renditions as one part over the whole film."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from decoded_media import Packet, packets
from media_recipes import EXACT_TIMES, IRREGULAR, MakeMedia, join_streams, lavfi
from published import (
    FolderSink,
    Result,
    encode_parts,
    frames,
    ignore,
    joined,
    make_pass,
    playlist,
    probe,
)

from portal.transcoding.encoding.encode import encode_part
from portal.transcoding.encoding.parts import (
    Part,
    PartsDontJoin,
    Pass,
    check_joins,
    is_whole,
)
from portal.transcoding.encoding.sink import ignore_stored
from portal.transcoding.packaging.cmaf import inspect_segment, time_scale
from portal.transcoding.packaging.hls import INIT_NAME
from portal.transcoding.planning.ladder import Rung, plan_renditions

# Parts of a film of five segments in the order in which they are made.
PARTS = (
    Part(first=0, until=1, prefix="0-"),
    Part(first=3, until=5, prefix="3-"),
    Part(first=1, until=3, prefix="1-"),
)
TWO_RUNGS = "544x308"
ONE_RUNG = "96x64"
X264 = ("-c:v", "libx264", "-preset", "ultrafast", "-level:v", "5.1", "-pix_fmt", "yuv420p")
B_FRAMES = (*X264, "-bf", "3", "-g", "75")
LATE = ("-vf", "settb=AVTB,setpts=PTS+0.0213/TB")
HEVC = ("-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1", "-x265-params")
OPEN = "log-level=error:open-gop=1:bframes=4:keyint=75:min-keyint=75:scenecut=0"
REFRESH = ("-preset", "veryfast", "-x264-params", "intra-refresh=1:keyint=50")
TICK_S = 0.001


@pytest.mark.parametrize(
    ("size", "rate", "options"),
    [
        pytest.param(ONE_RUNG, "30", (*LATE, *B_FRAMES, *EXACT_TIMES), id="begins late"),
        # A frame is repeated where a part begins, once long after it is shown.
        pytest.param(
            "64x48",
            "10",
            ("-vf", "select='lt(mod(t,13),2.6)'", *X264, "-g", "999", "-fps_mode", "vfr"),
            id="pauses",
        ),
        pytest.param(
            ONE_RUNG, "30000/1001", (*HEVC, OPEN), id="open groups", marks=pytest.mark.slow
        ),
        pytest.param(
            ONE_RUNG,
            "240",
            ("-vf", IRREGULAR, *B_FRAMES, *EXACT_TIMES),
            id="variable",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            TWO_RUNGS, "25", (*X264, *REFRESH), id="gradual refresh", marks=pytest.mark.slow
        ),
        pytest.param(
            "64x48",
            "10",
            ("-vf", "select='lt(t,5)'", *X264, "-bf", "2"),
            id="picture ends early",
            marks=pytest.mark.slow,
        ),
    ],
)
async def test_parts_have_no_seam(
    size: str, rate: str, options: tuple[str, ...], make_media: MakeMedia, tmp_path: Path
) -> None:
    # Only times are compared, and a plain picture is quick to encode.
    inputs = lavfi(f"color=teal:s={size}:r={rate}:d=19", "sine=f=440:d=19:r=48000")
    path = make_media("parts.mp4", *inputs, *options)
    whole = tmp_path / "whole"
    parts = tmp_path / "parts"
    undivided, divided = await made_both(path, whole, parts)
    for each in undivided.renditions:
        check_alike(whole, parts, each.name)
        segments = playlist(parts, each.name).segments
        assert {segment.uri[:-9] for segment in segments} == {"0-", "1-", "3-"}
    assert divided.output.duration_s == pytest.approx(undivided.output.duration_s, abs=TICK_S)
    sounds = [packets(joined(folder, "audio"), "audio") for folder in (whole, parts)]
    assert [packet.data for packet in sounds[0]] == [packet.data for packet in sounds[1]]


@pytest.mark.slow
async def test_segments_beside_a_copy_may_have_many_frames(
    make_media: MakeMedia, tmp_path: Path
) -> None:
    """An encoder with long groups of pictures sets a key frame at a cut, and the next one late."""
    inputs = lavfi(f"color=teal:s={TWO_RUNGS}:r=60:d=14", "sine=f=440:d=14:r=48000")
    keys = ("-g", "9999", "-force_key_frames", "0,1.5,11.5")
    path = make_media("long groups.mp4", *inputs, *B_FRAMES, "-level:v", "4", *keys)
    result = await make_pass(path, sink=FolderSink(tmp_path / "all"), work_dir=tmp_path)
    assert [each.copied for each in result.renditions] == [False, True]
    for each in result.renditions:
        starts_s = playlist(tmp_path / "all", each.name).starts_s
        assert starts_s == pytest.approx([0, 11.5], abs=TICK_S)


@pytest.mark.slow
async def test_rate_holds_where_parts_meet(make_media: MakeMedia, tmp_path: Path) -> None:
    # This picture takes all bits that the cap allows.
    hard = f"mandelbrot=s={ONE_RUNG}:r=30:end_pts=900,noise=c0s=4:c0f=t,trim=duration=19"
    path = make_media("hard.mp4", *lavfi(hard), *HEVC, OPEN)
    sink = FolderSink(tmp_path / "parts")
    result = await make_pass(path, sink=sink, work_dir=tmp_path, parts=PARTS)
    for rung in result.plan.video:
        assert most_in_buffer(packets(joined(sink.folder, rung.name)), rung) <= 1


def most_in_buffer(frames: Sequence[Packet], rung: Rung) -> float:
    """Return the most bits above the cap in any window of time, as a share of the buffer."""
    bits = most = 0.0
    for before, packet in pairwise((frames[0], *frames)):
        drained = float(packet.decoded_s - before.decoded_s) * rung.max_bitrate_bps
        bits = max(0.0, bits - drained) + 8 * len(packet.data)
        most = max(most, bits)
    return most / rung.buffer_bits


async def made_both(path: Path, whole: Path, parts: Path) -> tuple[Result, Result]:
    """Make a film in one part, and in `PARTS`, into these folders."""
    undivided = await make_pass(path, sink=FolderSink(whole), work_dir=parts.parent)
    divided = await make_pass(path, sink=FolderSink(parts), work_dir=parts.parent, parts=PARTS)
    return undivided, divided


def times_s(folder: Path, name: str) -> list[float]:
    """Return the sorted times at which frames are shown."""
    frames = packets(joined(folder, name))
    assert all(a.decoded_s < b.decoded_s for a, b in pairwise(frames)), "decode times fall"
    return sorted(float(frame.shown_s) for frame in frames)


def check_alike(whole: Path, parts: Path, name: str) -> None:
    """Check that frames and segments are the same, and that segments follow each other."""
    assert times_s(parts, name) == pytest.approx(times_s(whole, name), abs=TICK_S)
    divided = playlist(parts, name)
    assert divided.starts_s == pytest.approx(playlist(whole, name).starts_s, abs=TICK_S)
    scale = time_scale((parts / name / INIT_NAME).read_bytes())
    segments = [
        inspect_segment((parts / name / each.uri).read_bytes()) for each in divided.segments
    ]
    assert all(segment.is_closed for segment in segments)
    gaps_s = [(b.from_ticks - a.until_ticks) / scale for a, b in pairwise(segments)]
    assert max(map(abs, gaps_s)) <= TICK_S


async def test_parts_of_other_shapes_and_fields_are_those_of_a_whole_pass(
    make_media: MakeMedia, tmp_path: Path
) -> None:
    def stream(name: str, size: str, filters: str, *options: str) -> Path:
        inputs = lavfi(f"testsrc2=s={size}:r=20:d=5")
        encoding = ("-vf", filters, *X264, "-g", "10", *options, "-r", "10", "-f", "h264")
        return make_media(f"{name}.h264", *inputs, *encoding)

    interlacing = "tinterlace=interleave_top,fieldorder=tff,setpts=N/10/TB"
    streams = (
        stream("progressive", "96x64", "select='not(mod(n,2))',setpts=N/10/TB"),
        stream("interlaced", "96x64", interlacing, "-x264-params", "tff=1"),
        stream("upright", "64x96", "select='not(mod(n,2))',setpts=N/10/TB"),
    )
    path = join_streams(make_media, *streams, rate="10")
    whole = FolderSink(tmp_path / "whole")
    again = FolderSink(tmp_path / "parts")
    two = (Part(first=0, until=2), Part(first=2, until=4, prefix="2-"))

    (rendition,) = (await make_pass(path, sink=whole, work_dir=tmp_path)).renditions
    await make_pass(path, sink=again, work_dir=tmp_path, parts=two)

    check_alike(whole.folder, again.folder, rendition.name)
    undivided = frames(whole.folder, rendition.name)
    divided = frames(again.folder, rendition.name)
    for expected, frame in zip(undivided, divided, strict=True):
        luma = bytes(frame.planes[0])
        pairs = zip(bytes(expected.planes[0]), luma, strict=True)
        assert sum(abs(a - b) for a, b in pairs) / len(luma) < 4


@pytest.mark.slow
async def test_parts_of_a_later_pass_begin_at_the_segments_of_the_first(
    make_media: MakeMedia, tmp_path: Path
) -> None:
    inputs = lavfi(f"color=teal:s={TWO_RUNGS}:r=30000/1001:d=9")
    path = make_media("later.mp4", *inputs, *B_FRAMES)
    sink = FolderSink(tmp_path / "whole")
    again = FolderSink(tmp_path / "parts")
    first = await make_pass(path, sink=sink, work_dir=tmp_path)
    name = first.renditions[0].name
    reference = playlist(sink.folder, name)
    two = (Part(first=0, until=1), Part(first=1, until=3, prefix="1-"))
    await make_pass(
        path, sink=again, reference=reference, wanted=[name], work_dir=tmp_path, parts=two
    )
    # A rendition is encoded in the same way in both passes, so either can resume the other.
    inits = [(each.folder / name / INIT_NAME).read_bytes() for each in (sink, again)]
    assert inits[0] == inits[1]
    check_alike(sink.folder, again.folder, name)


async def test_joins_lengths_and_init_segments_are_checked(
    make_media: MakeMedia, sink: FolderSink, tmp_path: Path
) -> None:
    path = make_media("joins.mp4", *lavfi("color=teal:s=64x48:r=10:d=9"), *X264)
    source = await probe(path)
    plan = plan_renditions(source)
    [rung] = plan.video
    starts_s = [0.0, 4.0, 8.0]
    of_pass = Pass(
        source_url=str(path), probe=source, plan=plan, rungs=plan.video, starts_s=starts_s
    )
    storing = {"sink": sink, "work_dir": tmp_path}
    _, renditions = await encode_parts(of_pass, [Part()], ignore, storing)
    segments = renditions[rung.name].segments
    assert all(is_whole(segment, rung, starts_s) for segment in segments)
    assert not is_whole(replace(segments[0], duration_s=3.8), rung, starts_s)
    check_joins(renditions)
    without_middle = replace(renditions[rung.name], segments=(segments[0], segments[2]))
    with pytest.raises(PartsDontJoin, match="gap of 4"):
        check_joins({rung.name: without_middle})
    with pytest.raises(PartsDontJoin, match="init segment"):
        await encode_part(
            of_pass,
            Part(first=2, until=3),
            inits={rung.name: b"another"},
            on_progress=ignore,
            on_stored=ignore_stored,
            **storing,
        )
