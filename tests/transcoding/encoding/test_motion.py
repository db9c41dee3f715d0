"""Motion: interlaced pictures lose their combs, variable rates keep every picture's own time."""

from itertools import pairwise

import av
import pytest
from media_recipes import CORNERS, MakeMedia, as_yuv, beeps, card, lavfi
from published import Publish, PublishCard, frames
from published_checks import check_published

from portal.transcoding.errors import Note

SIZE = "544x304"
_STEP_PX = 2  # the bar's way from one field to the next
_BRIGHT = 110
AS_IT_COMES = ("-fps_mode", "passthrough")


def bar() -> str:
    """A white bar that moves to the right fifty times a second."""
    background = f"color=black:s={SIZE}:r=50:d=4[b]"
    foreground = f"color=white:s=64x{SIZE.partition('x')[2]}:r=50:d=4[w]"
    return f"{background};{foreground};[b][w]overlay=x=n*{_STEP_PX}"


def left_edges(frame: av.VideoFrame) -> list[int]:
    """Where the bar begins in each line of the middle."""
    plane = frame.planes[0]
    data, stride = bytes(plane), plane.line_size
    edges = []
    for row in range(plane.height // 4, plane.height * 3 // 4):
        line = data[row * stride : row * stride + plane.width]
        edges.append(next((x for x, luma in enumerate(line) if luma > _BRIGHT), plane.width))
    return edges


def combing_px(frame: av.VideoFrame) -> float:
    """How far neighbouring lines are apart, in the mean."""
    edges = left_edges(frame)
    return sum(abs(a - b) for a, b in pairwise(edges)) / (len(edges) - 1)


@pytest.mark.parametrize(("first", "flag"), [("top", "tff"), ("bottom", "bff")])
async def test_no_comb_is_left_of_interlaced_pictures(
    first: str, flag: str, make_media: MakeMedia, publish: Publish
) -> None:
    source = make_media(
        f"interlaced {flag}.mp4",
        *lavfi(bar()),
        *("-vf", f"tinterlace=interleave_{first},fieldorder={flag},format=yuv420p"),
        *("-c:v", "libx264", "-preset", "ultrafast", "-flags", "+ilme+ildct"),
        *("-x264-params", f"{flag}=1", "-g", "25"),
    )
    with av.open(str(source)) as container:
        combed = list(container.decode(video=0))
    assert combed[0].interlaced_frame
    assert combing_px(combed[20]) > _STEP_PX / 2, "the source should have a comb"

    published = await publish(source)

    for name in published.pictures:
        smooth = frames(published.folder, name)
        assert len(smooth) == len(combed)
        assert max(combing_px(frame) for frame in smooth[2:-2:9]) < 0.35
        middles = [left_edges(frame)[40] for frame in smooth[2:-2]]
        assert all(a <= b for a, b in pairwise(middles)), "moves back and forth"
    assert Note.DEINTERLACED in published.result.notes
    check_published(published)


@pytest.mark.slow
async def test_a_minute_of_variable_rate_neither_judders_nor_drifts(
    publish_card: PublishCard,
) -> None:
    """As a phone records: mostly 30 a second, less in the dark, now and then one missing."""
    picture = card(size="320x180", rate="30", duration_s=60, flashes_s=(0.5, 58.5))
    chosen = "select='if(lt(mod(t,20),12),mod(n,31),not(mod(n,3)))',"
    sound = beeps(duration_s=60, at_s=(0.5, 58.5))
    recipe = {"picture": picture, "sound": sound, "yuv": chosen + as_yuv()}
    published = await publish_card("a variable minute.mp4", *AS_IT_COMES, **recipe)
    times_s = [picture.time_s for picture in published.source_pictures]
    assert len({round(b - a, 3) for a, b in pairwise(times_s)}) >= 3, "should vary"
    check_published(published, corners=CORNERS, in_sync=True)


@pytest.mark.parametrize(("pix_fmt", "sound"), [("yuv420p", True), ("yuv422p", False)])
@pytest.mark.slow
async def test_screen_recordings_stand_still_for_as_long_as_they_did(
    pix_fmt: str, sound: bool, publish_card: PublishCard
) -> None:
    """Eleven seconds in which the picture changes eight times."""
    picture = card(size="320x180", rate="25", duration_s=11, flashes_s=(0.6, 9))
    times_s = (0, 0.2, 0.6, 0.8, 1.0, 5.4, 9.0, 9.2)
    chosen = f"select='{'+'.join(f'eq(n,{round(t * 25)})' for t in times_s)}',"
    beeping = beeps(duration_s=11, at_s=(0.6, 9)) if sound else None
    recipe = {"picture": picture, "sound": beeping, "yuv": chosen + as_yuv(pix_fmt)}
    published = await publish_card(f"screen {pix_fmt} {sound}.mp4", *AS_IT_COMES, **recipe)
    assert [picture.time_s for picture in published.top] == pytest.approx(times_s, abs=0.001)
    check_published(published, corners=CORNERS, in_sync=sound)
