"""Interpret how decoded frames are shown: clean aperture, Dolby Vision, transfer curve. Pure.

FFmpeg decodes frames as they are stored. The sample entry and side data say how to show them. Only
the standard library is imported, for the child process.
"""

import struct
from fractions import Fraction

from portal.transcoding.probing.boxes import PictureEntry

# Pixels that are cut off each side of a decoded frame: top, bottom, left, right.
Margins = tuple[int, int, int, int]

NO_MARGINS: Margins = (0, 0, 0, 0)
# Smallest aperture that FFmpeg can cut out.
_LEAST_APERTURE_PX = 16
# Code points of ISO/IEC 23091-2 that name no transfer curve.
_UNNAMED_TRANSFERS = (0, 2)
_PQ = 16
_HLG = 18
_DOLBY_VISION = (b"dvcC", b"dvvC", b"dvwC")
# Dolby Vision: the curve of the base layer by its compatibility (1 and 6 are HDR10).
_BASE_LAYER_TRANSFERS = {1: _PQ, 6: _PQ, 4: _HLG}


def aperture_margins(entry: PictureEntry, frame_size: tuple[int, int]) -> Margins:
    """Return what a clean aperture cuts off, rounded as FFmpeg does; nothing when it is invalid.

    The aperture's centre is given relative to the picture's centre (ISO/IEC 14496-12, 12.1.4).
    Frames of another size than the entry's (IMX with its blanking lines) are left whole.
    """
    numbers = struct.unpack(">8i", entry.boxes.get(b"clap", bytes(32)))
    if min(numbers[1::2]) <= 0 or frame_size != entry.size:
        return NO_MARGINS
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    width, height, off_x, off_y = (Fraction(above, below) for above, below in pairs)
    margins = (
        *_cut_sides(frame_size[1], height, off_y),
        *_cut_sides(frame_size[0], width, off_x),
    )
    is_valid = min(width, height) >= _LEAST_APERTURE_PX and min(margins) >= 0
    return margins if is_valid else NO_MARGINS


def _cut_sides(length: int, aperture: Fraction, offset: Fraction) -> tuple[int, int]:
    """Return what is cut off before and after the aperture; -1 where it reaches outside."""
    first = (length - aperture) / 2 + offset
    last = first + aperture - 1
    if first < 0 or last > length - 1:
        return -1, -1
    return int(first), length - 1 - int(last)


def dolby_vision(entry: PictureEntry) -> tuple[int, int]:
    """Return the profile of Dolby Vision and its base layer's compatibility; zeros without any."""
    records = (entry.boxes[kind] for kind in _DOLBY_VISION if kind in entry.boxes)
    record = next(records, bytes(5))
    return record[2] >> 1, record[4] >> 4


def named_transfer(transfer: int, *, compatibility: int, has_hdr_metadata: bool) -> int:
    """Return the code point of a transfer curve (ISO/IEC 23091-2), also if the file names none.

    An unspecified `transfer` is replaced by the curve that Dolby Vision's base layer is compatible
    with (`compatibility`, 0 without any), else by PQ if there is HDR metadata; without either it
    stays unspecified. Ten bits of BT.2020 don't imply HDR: log footage has them, too.
    """
    if transfer not in _UNNAMED_TRANSFERS:
        return transfer
    return _BASE_LAYER_TRANSFERS.get(compatibility, _PQ if has_hdr_metadata else transfer)


def is_dolby_only(profile: int, compatibility: int) -> bool:
    """Return whether only decoders of Dolby Vision know the colours of the base layer.

    Those are profile 5, and AV1 (10) and MV-HEVC (20) when they declare no compatibility. Older
    files of other profiles leave that field empty.
    """
    return profile == 5 or (profile in (10, 20) and compatibility == 0)
