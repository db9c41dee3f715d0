"""The storyboard: thumbnails for the seek bar, tiled into sprites, with their WebVTT. Pure.

Thumbnails are frames of a rendition, so they have the times that players show them at. Those of a
storyboard are at most its interval apart, and each stands for what is nearest to it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from portal.transcoding.packaging.master import FinishedRendition
from portal.transcoding.packaging.webvtt import Cue, webvtt
from portal.transcoding.probing.cuts import SEGMENT_S

STORYBOARD_NAME = "storyboard.vtt"
SPRITE_PATTERN = "storyboard-%03d.jpg"
# A line of a storyboard that names a part of a sprite.
SPRITE_LINE = re.compile(r"^(?P<name>[a-z0-9-]+\.jpg)(?=#xywh=)", re.MULTILINE)
_TILE = re.compile(
    r"^([\d.]+)\n.+ --> .+\n([a-z0-9-]+\.jpg)#xywh=(\d+),(\d+),(\d+),(\d+)$", re.MULTILINE
)
_BOX_LONG_SIDE, _BOX_SHORT_SIDE = 192, 108
_COLUMNS, _ROWS = 5, 5
TILES = _COLUMNS * _ROWS
# The filter that makes a sprite of frames.
TILING = f"tile={_COLUMNS}x{_ROWS}"
# About a hundred thumbnails, but not denser than once a second or sparser than every ten.
_THUMBNAILS = 100
_MIN_INTERVAL_S, _MAX_INTERVAL_S = 1.0, 10.0
# IDR pictures this far apart are enough of any video: half of it is the largest error.
_CLOSE_S = 3.0
# Times of playlists are rounded.
_ROUNDING_S = 0.001
# Pixels that are decoded as soon as a minute of 1080p30.
_FEW_PIXELS = 4_000_000_000
# An offered time lies inside its frame, however times are rounded on the way.
_INSIDE_FRAME_S = 0.002


@dataclass(frozen=True, kw_only=True, slots=True)
class Storyboard:
    """Thumbnails of `width` x `height` pixels, at most `interval_s` apart."""

    interval_s: float
    width: int
    height: int

    def chosen(self, times_s: Sequence[float], *, last_s: float, next_s: float) -> list[float]:
        """Of frames' times those that leave no gap above the interval, where there are enough.

        `last_s` is that of the thumbnail before, half an interval below zero for the first;
        `next_s` is that of the next frame that can be one.
        """
        found = []
        for at_s, following_s in pairwise([*times_s, next_s]):
            if following_s - last_s > self.interval_s + _ROUNDING_S:
                found.append(at_s)
                last_s = at_s
        return found

    def shows_enough(self, key_distance_s: float) -> bool:
        """Whether frames this far apart, at most, can be all there is to choose from."""
        return key_distance_s <= max(_CLOSE_S, self.interval_s)

    def vtt(self, times_s: Sequence[float], *, duration_s: float) -> str:
        """The WebVTT that says where in which sprite the thumbnail for a time is.

        Its cues are identified by the thumbnails' own times.
        """
        middles_s = ((before + after) / 2 for before, after in pairwise(times_s))
        bounds_s = pairwise([0.0, *middles_s, duration_s])
        cues = []
        for number, (at_s, (start_s, end_s)) in enumerate(zip(times_s, bounds_s, strict=True)):
            sprite, place = divmod(number, TILES)
            row, column = divmod(place, _COLUMNS)
            area = f"{column * self.width},{row * self.height},{self.width},{self.height}"
            text = f"{SPRITE_PATTERN % sprite}#xywh={area}"
            cues.append(Cue(start_s=start_s, end_s=end_s, text=text, identifier=f"{at_s:.6f}"))
        return webvtt(cues)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """A thumbnail: a time when its frame is shown, and where in which sprite it is, in pixels."""

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
    """So many thumbnails of a storyboard's WebVTT, from one end of the video to the other.

    Each is from the middle of one of `count` equal parts; all, if there are no more. None of
    storyboards whose cues have no identifiers: those don't tell which frame a thumbnail shows.
    """
    tiles = []
    for at_s, sprite, *place in _TILE.findall(text):
        x, y, width, height = map(int, place)
        inside_s = float(at_s) + _INSIDE_FRAME_S
        tiles.append(Tile(at_s=inside_s, sprite=sprite, x=x, y=y, width=width, height=height))
    if len(tiles) <= count:
        return tiles
    return [tiles[(2 * number + 1) * len(tiles) // (2 * count)] for number in range(count)]


def plan_storyboard(width: int, height: int, *, duration_s: float) -> Storyboard:
    """The storyboard for a video of this size and duration."""
    is_upright = height > width
    box = (_BOX_SHORT_SIDE, _BOX_LONG_SIDE) if is_upright else (_BOX_LONG_SIDE, _BOX_SHORT_SIDE)
    shrink = min(box[0] / width, box[1] / height)
    interval_s = min(max(duration_s / _THUMBNAILS, _MIN_INTERVAL_S), _MAX_INTERVAL_S)
    return Storyboard(
        interval_s=round(interval_s, 1),
        width=max(2, round(width * shrink)),
        height=max(2, round(height * shrink)),
    )


def is_quickly_made(
    lowest: FinishedRendition, *, duration_s: float, key_distance_s: float | None
) -> bool:
    """Whether no encoder's turn need be waited for to make a storyboard of a video.

    `lowest` is its smallest rendition, `key_distance_s` the longest between this one's IDR
    pictures, None for one that was encoded.
    """
    storyboard = plan_storyboard(lowest.width or 1, lowest.height or 1, duration_s=duration_s)
    if storyboard.shows_enough(key_distance_s or SEGMENT_S):
        return True
    pixels = (lowest.width or 0) * (lowest.height or 0) * (lowest.fps or 0) * duration_s
    return pixels <= _FEW_PIXELS
