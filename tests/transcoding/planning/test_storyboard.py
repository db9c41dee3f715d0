"""The storyboard: each cue leads to a thumbnail inside a sprite, of the time it stands for."""

import math
import re
from itertools import pairwise
from pathlib import Path

import av
import pytest
from media_recipes import MakeMedia, card
from published import FolderSink, Publish, PublishCard, Published, put_storyboard

from portal.transcoding.planning.storyboard import STORYBOARD_NAME

Place = tuple[float, float, str, tuple[int, int, int, int]]
_CUE = re.compile(
    r"(\d\d):(\d\d):(\d\d\.\d{3}) --> (\d\d):(\d\d):(\d\d\.\d{3})\n"
    r"(storyboard-\d{3}\.jpg)#xywh=(\d+),(\d+),(\d+),(\d+)\n"
)
WHITE = 235


def places(folder: Path) -> list[Place]:
    """From when to when, in which sprite, and where in it."""
    text = (folder / STORYBOARD_NAME).read_text()
    assert text.startswith("WEBVTT\n")
    found: list[Place] = []
    for match in _CUE.finditer(text):
        h1, m1, s1, h2, m2, s2 = (float(part) for part in match.groups()[:6])
        x, y, width, height = (int(part) for part in match.groups()[7:])
        starts_s, ends_s = h1 * 3600 + m1 * 60 + s1, h2 * 3600 + m2 * 60 + s2
        found.append((starts_s, ends_s, match[7], (x, y, width, height)))
    assert len(found) == text.count("-->"), "a cue of another form"
    return found


def luma(path: Path, place: tuple[int, int, int, int]) -> float:
    """The mean of a thumbnail's middle, from 0 to 1 of full range."""
    x, y, width, height = place
    with av.open(str(path)) as container:
        frame = next(container.decode(video=0))
    plane = frame.planes[0]
    assert x + width <= plane.width, "beyond the sprite"
    assert y + height <= plane.height, "beyond the sprite"
    data = memoryview(plane)
    rows = range(y + height // 4, y + height * 3 // 4)
    left, right = x + width // 4, x + width * 3 // 4
    total = sum(
        sum(data[row * plane.line_size + left : row * plane.line_size + right]) for row in rows
    )
    return total / (len(rows) * (right - left)) / 255


async def checked_storyboard(published: Published, sink: FolderSink) -> list[Place]:
    """Cues follow each other to the end, and each is inside a sprite that exists."""
    await put_storyboard(published, sink)
    found = places(sink.folder)
    assert found[0][0] == 0
    assert all(one[1] == other[0] for one, other in pairwise(found))
    assert all(one[1] > one[0] for one in found)
    assert found[-1][1] == pytest.approx(published.result.duration_s, abs=0.002)
    named = {sprite for _, _, sprite, _ in found}
    assert named == {path.name for path in sink.folder.glob("storyboard-*.jpg")}
    assert len(named) == math.ceil(len(found) / 25)
    assert len({(sprite, place) for _, _, sprite, place in found}) == len(found)
    assert len({place[2:] for *_, place in found}) == 1, "thumbnails of different sizes"
    return found


FADES = {
    # Brightness rises evenly from black to white over the whole source.
    "a minute": (60, "5", 1.0),
    "four minutes": (240, "2", 2.4),
    "twenty minutes": (1200, "1", 10.0),
}


@pytest.mark.parametrize("kind", FADES)
@pytest.mark.slow
async def test_each_thumbnail_is_of_the_time_it_stands_for(
    kind: str, make_media: MakeMedia, publish: Publish, sink: FolderSink
) -> None:
    duration_s, rate, interval_s = FADES[kind]
    source = make_media(
        f"fade {kind}.mp4",
        *("-f", "lavfi", "-i", f"color=white:s=160x90:r={rate}:d={duration_s}"),
        *("-vf", f"fade=in:st=0:d={duration_s}", "-c:v", "libx264", "-preset", "ultrafast"),
        *("-pix_fmt", "yuv420p", "-g", "9999"),
    )
    published = await publish(source)
    found = await checked_storyboard(published, sink)
    assert len(found) == pytest.approx(duration_s / interval_s, abs=1)
    # JPEG and 8 bits are good for about half a percent of the way from black to white.
    fuzz_s = 0.01 * duration_s
    for starts_s, ends_s, sprite, place in found:
        at_s = luma(sink.folder / sprite, place) * duration_s
        assert starts_s - fuzz_s <= at_s <= ends_s + fuzz_s


@pytest.mark.parametrize(
    ("name", "size", "duration_s", "expected"),
    [
        ("card", "544x306", 7.0, (192, 108)),
        ("upright", "306x544", 7.0, (108, 192)),
        ("square", "306x306", 7.0, (108, 108)),
        ("flat", "544x100", 3.0, (192, 35)),
        ("one thumbnail", "320x180", 0.04, (192, 108)),
        ("a second and a half", "320x180", 1.5, (192, 108)),
    ],
)
async def test_thumbnails_keep_the_shape_of_the_video(
    name: str,
    size: str,
    duration_s: float,
    expected: tuple[int, int],
    publish_card: PublishCard,
    sink: FolderSink,
) -> None:
    picture = card(size=size, duration_s=duration_s, flashes_s=())
    published = await publish_card(f"storyboard of {name}.mp4", picture=picture, sound=None)
    found = await checked_storyboard(published, sink)
    assert found[0][3][2:] == pytest.approx(expected, abs=1)
