"""Plan a storyboard: thumbnails for the seek bar, tiled into sprites, with their WebVTT. Pure.

Thumbnails are frames of a rendition, at the times at which players show them. Each one is shown for
the times that are closest to it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from portal.transcoding.packaging.webvtt import Cue, webvtt

STORYBOARD_NAME = "storyboard.vtt"
SPRITE_PATTERN = "storyboard-%03d.jpg"
# Line of a storyboard that names a part of a sprite.
SPRITE_LINE = re.compile(r"^(?P<name>[a-z0-9-]+\.jpg)(?=#xywh=)", re.MULTILINE)
_TILE = re.compile(
    r"^([\d.]+)\n.+ --> .+\n([a-z0-9-]+\.jpg)#xywh=(\d+),(\d+),(\d+),(\d+)$", re.MULTILINE
)
_BOX_LONG_SIDE = 192
_BOX_SHORT_SIDE = 108
_COLUMNS = 5
_ROWS = 5
TILES = _COLUMNS * _ROWS
# Filter that tiles frames into a sprite.
TILING = f"tile={_COLUMNS}x{_ROWS}"
# There are about a hundred thumbnails, at a distance of one to ten seconds.
_THUMBNAILS = 100
_MIN_INTERVAL_S = 1.0
_MAX_INTERVAL_S = 10.0
# Distance of IDR pictures at which no other frames are needed; the error is at most half of it.
_CLOSE_S = 3.0
# Times of playlists are rounded.
_ROUNDING_S = 0.001
# Pixels of a minute of 1080p30. Of larger renditions only key frames are decoded, which takes
# seconds; they are at most 10.5 s apart (`probing.segment_bounds.MAX_GOP_S`).
_FEW_PIXELS = 4_000_000_000
# Added to the time of a frame, so that the time is inside the frame even if it is rounded.
_INSIDE_FRAME_S = 0.002


@dataclass(frozen=True, kw_only=True, slots=True)
class Storyboard:
    """Thumbnails of `width` x `height` pixels, at most `interval_s` apart.

    With `only_keys` they are key frames, and so may be further apart.
    """

    interval_s: float
    width: int
    height: int
    only_keys: bool

    def chosen(self, times_s: Sequence[float], *, last_s: float, next_s: float) -> list[float]:
        """Return the times of frames that become thumbnails, at most an interval apart if possible.

        `last_s` is the time of the thumbnail before, half an interval below zero for the first;
        `next_s` is the time of the next frame that may become one.
        """
        thumbnails_s = []
        for at_s, following_s in pairwise([*times_s, next_s]):
            if following_s - last_s > self.interval_s + _ROUNDING_S:
                thumbnails_s.append(at_s)
                last_s = at_s
        return thumbnails_s

    def shows_enough(self, key_distance_s: float) -> bool:
        """Return whether key frames at this distance suffice as thumbnails."""
        return self.only_keys or key_distance_s <= max(_CLOSE_S, self.interval_s)

    def vtt(self, times_s: Sequence[float], *, duration_s: float) -> str:
        """Return the WebVTT that has the sprite and the place of the thumbnail for each time.

        Identifiers of cues are the times of their thumbnails.
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
    """Thumbnail: a time within its frame, its sprite, and its place there in pixels."""

    at_s: float
    sprite: str
    x: int
    y: int
    width: int
    height: int

    @property
    def sprite_size(self) -> tuple[int, int]:
        """Return width and height of the whole sprite."""
        return self.width * _COLUMNS, self.height * _ROWS


def spread_tiles(text: str, count: int) -> list[Tile]:
    """Return up to `count` thumbnails of a storyboard's WebVTT, spread evenly over the video.

    Each is from the middle of one of `count` equal parts.
    """
    tiles = []
    for at_s, sprite, *place in _TILE.findall(text):
        x, y, width, height = map(int, place)
        inside_s = float(at_s) + _INSIDE_FRAME_S
        tiles.append(Tile(at_s=inside_s, sprite=sprite, x=x, y=y, width=width, height=height))
    if len(tiles) <= count:
        return tiles
    return [tiles[(2 * number + 1) * len(tiles) // (2 * count)] for number in range(count)]


def plan_storyboard(width: int, height: int, *, fps: Fraction, duration_s: float) -> Storyboard:
    """Return the storyboard that is made from a rendition of this size, rate and duration."""
    is_upright = height > width
    box = (_BOX_SHORT_SIDE, _BOX_LONG_SIDE) if is_upright else (_BOX_LONG_SIDE, _BOX_SHORT_SIDE)
    shrink = min(box[0] / width, box[1] / height)
    interval_s = min(max(duration_s / _THUMBNAILS, _MIN_INTERVAL_S), _MAX_INTERVAL_S)
    return Storyboard(
        interval_s=round(interval_s, 1),
        width=max(2, round(width * shrink)),
        height=max(2, round(height * shrink)),
        only_keys=width * height * fps * duration_s > _FEW_PIXELS,
    )
