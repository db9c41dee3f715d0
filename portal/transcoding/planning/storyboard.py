"""The storyboard: thumbnails for the seek bar, tiled into sprites, with their WebVTT. Pure."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from portal.transcoding.packaging.webvtt import Cue, parse_webvtt, webvtt
from portal.transcoding.probing.facts import VideoTrack

STORYBOARD_NAME = "storyboard.vtt"
THUMBNAIL_PATTERN = "thumbnail-%05d.jpg"
SPRITE_PATTERN = "storyboard-%03d.jpg"
# A line of a storyboard that names a part of a sprite.
SPRITE_LINE = re.compile(r"^(?P<name>[a-z0-9-]+\.jpg)(?=#xywh=)", re.MULTILINE)
_TILE = re.compile(r"([a-z0-9-]+\.jpg)#xywh=(\d+),(\d+),(\d+),(\d+)")
_BOX_LONG_SIDE, _BOX_SHORT_SIDE = 192, 108
_COLUMNS, _ROWS = 5, 5
# The filter that makes sprites of thumbnails.
TILING = f"tile={_COLUMNS}x{_ROWS}"
# About a hundred thumbnails, but not denser than once a second or sparser than every ten.
_THUMBNAILS = 100
_MIN_INTERVAL_S, _MAX_INTERVAL_S = 1.0, 10.0
# Key frames this far apart tell enough of a video that takes long to decode. What has few pixels,
# as a minute of 1080p30, is decoded whole where they are much further apart than thumbnails; those
# of phones are about a second apart.
_MAX_KEY_DISTANCE_S = 20.0
_MAX_KEY_DISTANCE_INTERVALS = 1.5
_FEW_PIXELS = 4_000_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Storyboard:
    """One thumbnail for every `interval_s`, `width` x `height` pixels.

    `from_key_frames` means that only those are decoded, `is_quick` that no encoder's turn need be
    waited for.
    """

    interval_s: float
    width: int
    height: int
    from_key_frames: bool
    is_quick: bool

    @property
    def thinning(self) -> str:
        """The filter that leaves one frame for each interval, from about its middle.

        They are tiled afterwards: ffmpeg reports no progress until every output has had a frame,
        and a sprite has one when all its thumbnails are there.
        """
        return f"fps=fps=1/{self.interval_s:g}:start_time=0:eof_action=pass"

    def vtt(self, *, duration_s: float, thumbnails: int) -> str:
        """The WebVTT that says where in which sprite the thumbnail for a time is.

        A video may end before the middle of an interval; the thumbnail before it then stays.
        """
        count = max(1, min(thumbnails, math.ceil(duration_s / self.interval_s)))
        ends_s = [*(self.interval_s * (number + 1) for number in range(count - 1)), duration_s]
        return webvtt(
            Cue(start_s=self.interval_s * number, end_s=end_s, text=self._address(number))
            for number, end_s in enumerate(ends_s)
        )

    def _address(self, number: int) -> str:
        sprite, place = divmod(number, _COLUMNS * _ROWS)
        row, column = divmod(place, _COLUMNS)
        x, y = column * self.width, row * self.height
        return f"{SPRITE_PATTERN % sprite}#xywh={x},{y},{self.width},{self.height}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """A thumbnail: the time that it is of, and where in which sprite it is, in pixels."""

    at_s: float
    sprite: str
    x: int
    y: int
    width: int
    height: int

    @property
    def sprite_size(self) -> tuple[int, int]:
        """Width and height of the whole sprite."""
        return self.width * _COLUMNS, self.height * _ROWS


def spread_tiles(text: str, count: int) -> list[Tile]:
    """So many thumbnails of a storyboard's WebVTT, from one end of the video to the other."""
    tiles = [tile for cue in parse_webvtt(text) if (tile := _tile(cue))]
    return _spread(tiles, count)


def _tile(cue: Cue) -> Tile | None:
    found = _TILE.fullmatch(cue.text)
    if found is None:
        return None
    x, y, width, height = map(int, found.groups()[1:])
    # Thumbnails are from about the middle of their intervals.
    at_s = (cue.start_s + cue.end_s) / 2
    return Tile(at_s=at_s, sprite=found[1], x=x, y=y, width=width, height=height)


def _spread(tiles: Sequence[Tile], count: int) -> list[Tile]:
    """From the middle of each of `count` equal parts; all if there are no more."""
    if len(tiles) <= count:
        return list(tiles)
    return [tiles[(2 * number + 1) * len(tiles) // (2 * count)] for number in range(count)]


def plan_storyboard(video: VideoTrack, *, duration_s: float) -> Storyboard:
    """The storyboard for a video of this duration made from this track."""
    is_upright = video.height > video.width
    box = (_BOX_SHORT_SIDE, _BOX_LONG_SIDE) if is_upright else (_BOX_LONG_SIDE, _BOX_SHORT_SIDE)
    shrink = min(box[0] / video.width, box[1] / video.height)
    interval_s = min(max(duration_s / _THUMBNAILS, _MIN_INTERVAL_S), _MAX_INTERVAL_S)
    pixels = video.coded_width * video.coded_height * float(video.fps) * duration_s
    is_soon_decoded = pixels <= _FEW_PIXELS
    apart_s = interval_s * _MAX_KEY_DISTANCE_INTERVALS if is_soon_decoded else _MAX_KEY_DISTANCE_S
    key_distance_s = video.max_key_distance_s
    has_keys = key_distance_s is not None and key_distance_s <= apart_s
    return Storyboard(
        interval_s=round(interval_s, 1),
        width=max(2, round(video.width * shrink)),
        height=max(2, round(video.height * shrink)),
        from_key_frames=has_keys,
        is_quick=has_keys or is_soon_decoded,
    )
