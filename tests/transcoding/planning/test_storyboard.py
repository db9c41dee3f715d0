"""The storyboard: each cue leads to a thumbnail inside a sprite, of the time it stands for."""

import io
import math
import re
from bisect import bisect_right
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import pytest
from media_recipes import card, make_card
from numbered_film import FPS, Luma, make_numbered, number_in
from published import FolderSink, Published, Studio, playlist
from published import frames as frames_of

from portal.transcoding.encoding.pictures import extract_frame, make_storyboard
from portal.transcoding.packaging.hls import INIT_NAME
from portal.transcoding.planning.storyboard import STORYBOARD_NAME, plan_storyboard, spread_tiles

Place = tuple[float, float, str, tuple[int, int, int, int]]
_CUE = re.compile(
    r"[\d.]+\n00:00:(\d\d\.\d{3}) --> 00:00:(\d\d\.\d{3})\n"
    r"(storyboard-\d{3}\.jpg)#xywh=(\d+),(\d+),(\d+),(\d+)\n"
)


async def checked_storyboard(published: Published, sink: FolderSink) -> list[Place]:
    """Make a storyboard, check it, and return start, end, sprite and area of each thumbnail."""
    lowest = published.result.output.renditions[0]
    files = published.files(lowest.name)
    storyboard = plan_storyboard(
        lowest.width or 0,
        lowest.height or 0,
        fps=lowest.fps or Fraction(1),
        duration_s=files.playlist.duration_s,
    )
    await make_storyboard(files, storyboard, sink=sink, work_dir=sink.folder.parent)
    text = (sink.folder / STORYBOARD_NAME).read_text()
    assert text.startswith("WEBVTT\n")
    thumbnails: list[Place] = []
    for start_s, end_s, sprite, *area in _CUE.findall(text):
        x, y, width, height = map(int, area)
        thumbnails.append((float(start_s), float(end_s), sprite, (x, y, width, height)))
    assert len(thumbnails) == text.count("-->"), "a cue of another form"
    assert thumbnails[0][0] == 0
    assert all(before[1] == after[0] for before, after in pairwise(thumbnails))
    assert all(thumbnail[1] > thumbnail[0] for thumbnail in thumbnails)
    assert thumbnails[-1][1] == pytest.approx(published.result.output.duration_s, abs=0.002)
    named = {sprite for _, _, sprite, _ in thumbnails}
    assert named == {path.name for path in sink.folder.glob("storyboard-*.jpg")}
    assert len(named) == math.ceil(len(thumbnails) / 25)
    assert len({(sprite, place) for _, _, sprite, place in thumbnails}) == len(thumbnails)
    assert len({place[2:] for *_, place in thumbnails}) == 1, "thumbnails of different sizes"
    return thumbnails


X264 = ("-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-sc_threshold", "0")
# Key frames are no IDR pictures, because frames that are shown before them refer to earlier ones.
OPEN_GROUPS = "open-gop=1:scenecut=0:bframes=3:log-level=none"
X265 = ("-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1", "-x265-params", OPEN_GROUPS)


def picture(content: bytes) -> Luma:
    with av.open(io.BytesIO(content)) as container:
        return next(container.decode(video=0)).to_ndarray(format="gray")


def part_of(sprite: Luma, x: int, y: int, width: int, height: int) -> Luma:
    return sprite[y : y + height, x : x + width]


@pytest.mark.parametrize(
    ("codec", "key_distance_s"),
    [(X264, 2), (X264, 10), (X265, 10)],
    ids=["of key frames", "of all frames", "of an encoded film with open groups"],
)
async def test_thumbnails_and_offered_frames_are_those_that_players_show(
    codec: tuple[str, ...], key_distance_s: int, studio: Studio, sink: FolderSink, tmp_path: Path
) -> None:
    options = (*codec, "-g", str(FPS * key_distance_s))
    source = make_numbered(tmp_path / "film.mp4", *options, seconds=20, size="208x64", sounds=0)
    published = await studio.publish(source)
    assert published.result.renditions[0].copied is (codec == X264)
    thumbnails = await checked_storyboard(published, sink)
    for starts_s, ends_s, sprite, place in thumbnails:
        sprite_luma = picture((sink.folder / sprite).read_bytes())
        at_s = number_in(part_of(sprite_luma, *place)) / FPS
        assert max(at_s - starts_s, ends_s - at_s) <= 1.5
    player_frames = frames_of(published.folder, published.result.renditions[0].name)
    offered = spread_tiles((sink.folder / STORYBOARD_NAME).read_text(), 6)
    assert len(offered) == 6
    for tile in offered:
        sprite_luma = picture((sink.folder / tile.sprite).read_bytes())
        poster = picture(await cut(published, tile.at_s, tmp_path))
        [player] = [frame for frame in player_frames if 0 <= tile.at_s - frame.time < 1 / FPS]
        pictures = (poster, player.to_ndarray(format="gray"))
        thumbnail = number_in(part_of(sprite_luma, tile.x, tile.y, tile.width, tile.height))
        assert [number_in(luma) for luma in pictures] == [thumbnail, thumbnail]


async def cut(published: Published, at_s: float, work_dir: Path) -> bytes:
    """Return the poster of this time."""
    name = published.result.renditions[0].name
    files = playlist(published.folder, name)
    place = bisect_right(files.starts_s, at_s) - 1
    read = [
        (published.folder / name / uri).read_bytes()
        for uri in (INIT_NAME, files.segments[place].uri)
    ]
    return await extract_frame(*read, at_s=at_s - files.starts_s[place], work_dir=work_dir)


@pytest.mark.parametrize(
    ("duration_s", "interval_s"),
    [(60, 1.0), (240, 2.4)],
)
def test_thumbnails_are_at_most_their_interval_apart(duration_s: int, interval_s: float) -> None:
    storyboard = plan_storyboard(1280, 720, fps=Fraction(25), duration_s=duration_s)
    assert storyboard.interval_s == interval_s
    times_s = [number / 25 for number in range(duration_s * 25)]
    end_s = duration_s + interval_s / 2
    chosen = storyboard.chosen(times_s, last_s=-interval_s / 2, next_s=end_s)
    assert len(chosen) == pytest.approx(duration_s / interval_s, abs=2)
    gaps = pairwise([-chosen[0], *chosen, 2 * duration_s - chosen[-1]])
    assert max(after - at for at, after in gaps) <= interval_s + 0.002


@pytest.mark.parametrize(("minutes", "only_keys"), [(1, False), (2, True)])
def test_thumbnails_of_long_films_are_key_frames(minutes: int, only_keys: bool) -> None:
    planned = plan_storyboard(1920, 1080, fps=Fraction(30), duration_s=60.0 * minutes)
    assert planned.only_keys is only_keys
    assert planned.shows_enough(10.5) is only_keys


@pytest.mark.parametrize(
    ("size", "expected"),
    [((306, 544), (108, 192)), ((544, 100), (192, 35))],
)
def test_thumbnails_keep_the_shape_of_the_video(
    size: tuple[int, int], expected: tuple[int, int]
) -> None:
    storyboard = plan_storyboard(*size, fps=Fraction(25), duration_s=7.0)
    assert (storyboard.width, storyboard.height) == expected


async def test_a_single_frame_has_a_storyboard(studio: Studio, sink: FolderSink) -> None:
    picture = card(size="180x320", duration_s=0.04, flashes_s=())
    published = await studio.publish(
        make_card(studio.make, "one frame.mp4", picture=picture, sound=None)
    )
    thumbnails = await checked_storyboard(published, sink)
    assert thumbnails[0][3][2:] == (108, 192)
