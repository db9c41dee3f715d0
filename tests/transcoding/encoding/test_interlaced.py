"""Interlaced parts of films lose their combs, and no frames."""

from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest
from media_recipes import MakeMedia, join_streams, lavfi
from published import Studio, frames
from published_checks import check_published

from portal.transcoding.errors import Note

PERIOD_PX = 64
STEP_PX = 2  # movement of the bar from one field to the next
BRIGHT = 110


def left_edges(frame: av.VideoFrame) -> list[int]:
    """Return the left edge of the bar in each line of the middle."""
    luma = np.frombuffer(frame.planes[0], np.uint8).reshape(-1, frame.planes[0].line_size)
    lit = luma[frame.height // 4 : frame.height * 3 // 4, : frame.width] > BRIGHT
    edges: list[int] = np.where(lit.any(axis=1), lit.argmax(axis=1), frame.width).tolist()
    return edges


def combing_px(frame: av.VideoFrame) -> float:
    """Return the mean distance of the bar's edges in neighbouring lines."""
    edges = left_edges(frame)
    return sum(abs(a - b) for a, b in pairwise(edges)) / (len(edges) - 1)


def moving_part(make_media: MakeMedia, kind: str, frames: int) -> Path:
    """Make raw H.264 of a bar that moves fifty times a second: progressive, tff or bff."""
    duration_s = frames / 25
    moving = f"color=black:s=96x64:r=50:d={duration_s}[b]"
    moving += f";color=white:s=16x64:r=50:d={duration_s}[w]"
    moving += f";[b][w]overlay=x=mod(n*{STEP_PX}\\,{PERIOD_PX})"
    filters = {
        "progressive": "select='not(mod(n,2))'",
        "tff": "tinterlace=interleave_top,fieldorder=tff",
        "bff": "tinterlace=interleave_bottom,fieldorder=bff",
    }
    flags = () if kind == "progressive" else ("-x264-params", f"{kind}=1")
    encoding = ("-c:v", "libx264", "-preset", "ultrafast", "-level:v", "5.1", "-g", "10")
    return make_media(
        f"{kind}.h264",
        *lavfi(moving),
        *("-vf", f"{filters[kind]},setpts=N/25/TB,format=yuv420p", "-r", "25"),
        *(*encoding, *flags, "-f", "h264"),
    )


@pytest.mark.parametrize(
    ("order", "is_noted"),
    [
        ((("progressive", 30), ("tff", 30)), True),
        ((("tff", 30), ("bff", 30)), True),
        # The interlaced part is so short that no sampled key frame is in it.
        ((("progressive", 100), ("tff", 10), ("progressive", 130)), False),
    ],
)
async def test_interlaced_parts_lose_their_combs_anywhere(
    order: tuple[tuple[str, int], ...], is_noted: bool, studio: Studio
) -> None:
    parts = [moving_part(studio.make, kind, count) for kind, count in order]
    source = join_streams(studio.make, *parts, rate="25")
    with av.open(str(source)) as container:
        decoded = list(container.decode(video=0))
    combed = [frame for frame in decoded if frame.interlaced_frame]
    assert combed
    assert combing_px(combed[len(combed) // 2]) > STEP_PX / 2, "the source should have a comb"

    published = await studio.publish(source)

    (rendition,) = published.result.renditions
    smooth = frames(published.folder, rendition.name)
    assert len(smooth) == len(decoded)
    for number, frame in enumerate(decoded):
        if frame.interlaced_frame:
            assert combing_px(smooth[number]) < 0.35
        elif number % 7 == 0:
            assert left_edges(smooth[number]) == left_edges(frame), "progressive frames stay"
    for sources, (before, after) in zip(pairwise(decoded), pairwise(smooth), strict=True):
        if all(frame.interlaced_frame for frame in sources):
            moved_px = left_edges(after)[16] - left_edges(before)[16]
            assert moved_px % PERIOD_PX < PERIOD_PX / 2, "moves back and forth"
    assert (Note.DEINTERLACED in published.result.output.notes) == is_noted
    assert not any(rung.copied for rung in published.result.plan.video)
    check_published(published)
