"""How a track's frames are meant to be shown: aperture, shape of pixels, and light levels. Pure.

FFmpeg decodes frames as they are stored. What it tells of their meaning is completed here by what
the sample entry and the frame's side data say. Standard library only, for the child process.
"""

from fractions import Fraction
from typing import NamedTuple

from portal.transcoding.probing.boxes import PictureEntry

# Code points of ISO/IEC 23091-2 that name no transfer curve, and those of HDR.
_UNNAMED_TRANSFERS = (0, 2)
_PQ, _HLG = 16, 18
# Dolby Vision: the curve of the base layer by its compatibility (1 and 6 HDR10, 4 HLG).
_BASE_LAYER_TRANSFERS = {1: _PQ, 6: _PQ, 4: _HLG}
# Profiles whose base layer other decoders may not understand: 5 never; AV1 and MV-HEVC when they
# declare no compatibility. Older files of the other profiles leave that field empty.
_DOLBY_ONLY_PROFILE = 5
_DOLBY_ONLY_WITHOUT_COMPATIBILITY = (10, 20)
# A shape of pixels this close to a square comes from rounded sizes.
_NEARLY_SQUARE = Fraction(1, 200)


class Margins(NamedTuple):
    """Pixels that are cut off each side of a decoded frame, before it is turned."""

    top: int = 0
    bottom: int = 0
    left: int = 0
    right: int = 0


def aperture_margins(entry: PictureEntry, frame_size: tuple[int, int]) -> Margins:
    """Return what a clean aperture cuts off, rounded as FFmpeg does; nothing when it is invalid.

    The aperture's centre is given relative to the picture's centre (ISO/IEC 14496-12, 12.1.4).
    Frames of another size than the entry's (IMX with its blanking lines) are left whole.
    """
    if entry.aperture is None or min(entry.aperture[1::2]) <= 0:
        return Margins()
    if frame_size != (entry.width, entry.height):
        return Margins()
    width, height, off_x, off_y = (
        Fraction(above, below)
        for above, below in zip(entry.aperture[::2], entry.aperture[1::2], strict=True)
    )
    left, right = _cut_sides(entry.width, width, off_x)
    top, bottom = _cut_sides(entry.height, height, off_y)
    is_inside = min(left, right, top, bottom) >= 0
    is_picture_left = left + right < entry.width and top + bottom < entry.height
    if not (is_inside and is_picture_left and min(width, height) > 0):
        return Margins()
    return Margins(top=top, bottom=bottom, left=left, right=right)


def _cut_sides(length: int, aperture: Fraction, offset: Fraction) -> tuple[int, int]:
    """Return what is cut off before and after the aperture; -1 where it reaches outside."""
    middle = Fraction(length - 1, 2) + offset
    first = middle - (aperture - 1) / 2
    last = middle + (aperture - 1) / 2
    if first < 0 or last > length - 1:
        return -1, -1
    return int(first), length - 1 - int(last)


def track_pixel_shape(entry: PictureEntry, track_size: tuple[int, int]) -> Fraction | None:
    """Return the shape of pixels that a track's header implies; None when it implies none.

    The header's size is that of the aperture as it is shown, which FFmpeg takes for that of the
    whole frame, and of the last sample entry. Writers who added the aperture later left the frame's
    size there, which implies nothing.
    """
    if entry.has_pixel_shape or 0 in (*track_size, entry.width, entry.height):
        return None
    if track_size == (entry.width, entry.height):
        return Fraction(1)
    shown_shape = Fraction(entry.width, entry.height)
    if entry.aperture and any(aperture_margins(entry, (entry.width, entry.height))):
        width, width_below, height, height_below, *_ = entry.aperture
        shown_shape = Fraction(width, width_below) / Fraction(height, height_below)
    shape = Fraction(*track_size) / shown_shape
    return Fraction(1) if abs(shape - 1) < _NEARLY_SQUARE else shape


def named_transfer(
    transfer: int, *, dolby_vision: tuple[int, int] | None, has_hdr_metadata: bool
) -> int:
    """Return the transfer curve's code point, completed by what else says that a track is HDR.

    Ten bits of BT.2020 alone say nothing: log footage has them, too.
    """
    if transfer not in _UNNAMED_TRANSFERS:
        return transfer
    _, compatibility = dolby_vision or (0, 0)
    if compatibility in _BASE_LAYER_TRANSFERS:
        return _BASE_LAYER_TRANSFERS[compatibility]
    return _PQ if has_hdr_metadata else transfer


def is_dolby_only(dolby_vision: tuple[int, int] | None) -> bool:
    """Whether only decoders of Dolby Vision know the colours of the base layer."""
    profile, compatibility = dolby_vision or (0, 0)
    is_incompatible = profile in _DOLBY_ONLY_WITHOUT_COMPATIBILITY and compatibility == 0
    return profile == _DOLBY_ONLY_PROFILE or is_incompatible
