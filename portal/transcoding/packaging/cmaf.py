"""Look into fragmented MP4 (ISO/IEC 14496-12) as far as the portal must. Pure: bytes in.

Limits: one track and one movie fragment to a segment, as the HLS muxer writes them.
"""

import struct
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import add

# The CODECS string of the only sound there is (RFC 6381).
AAC_LC = "mp4a.40.2"
_DATA_OFFSET, _FIRST_SAMPLE_FLAGS = 0x000001, 0x000004
_DURATION, _SIZE, _FLAGS, _COMPOSITION = 0x000100, 0x000200, 0x000400, 0x000800
_BASE_DATA_OFFSET, _DESCRIPTION, _DEFAULT_DURATION, _DEFAULT_SIZE = 0x01, 0x02, 0x08, 0x10
_NAL_TYPE_MASK, _IDR, _SLICE = 0x1F, 5, 1
_NAL_LENGTH_BYTES = 4
_BOX_HEADER_BYTES = 8


class SegmentError(ValueError):
    """The bytes are not a segment as our encoder writes them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SegmentFacts:
    """What a video segment holds.

    `key_size_bytes` counts from the segment's start to the end of its first sample. Its frames
    are shown from `from_ticks` until `until_ticks`, the last one from `last_ticks` on, in the
    track's time scale. `is_closed` means that it decodes without any other segment: it begins with
    an IDR picture, and no frame in it is shown before that one.
    """

    sample_count: int
    key_size_bytes: int
    from_ticks: int
    last_ticks: int
    until_ticks: int
    is_closed: bool


def avc_codec(init_segment: bytes) -> str:
    """The CODECS string of an H.264 init segment, from its avcC box (ISO/IEC 14496-15, 5.3.3)."""
    at = init_segment.find(b"avcC")
    profile = init_segment[at + 5 : at + 8]  # after the type and configurationVersion
    if at < 0 or len(profile) != 3:
        raise SegmentError("no avcC box in the init segment")
    return f"avc1.{profile.hex()}"


def time_scale(init_segment: bytes) -> int:
    """The ticks a second of an init segment's only track."""
    at, end = 0, len(init_segment)
    for kind in (b"moov", b"trak", b"mdia", b"mdhd"):
        at, end = _box(init_segment, kind, at, end)
    try:
        version: int = init_segment[at]
        ticks: int = struct.unpack_from(">I", init_segment, at + (20 if version == 1 else 12))[0]
    except (struct.error, IndexError) as exc:
        raise SegmentError("the init segment ends early") from exc
    return ticks


def inspect_segment(segment: bytes) -> SegmentFacts:
    """Read the facts of an H.264 segment. Raises SegmentError."""
    run = _read_run(segment)
    first_end = run.first_at + run.sizes_bytes[0]
    return SegmentFacts(
        sample_count=len(run.sizes_bytes),
        key_size_bytes=first_end,
        from_ticks=run.begins_at + min(run.shown_at),
        last_ticks=run.begins_at + max(run.shown_at),
        until_ticks=run.begins_at + run.shown_until,
        is_closed=run.shown_at[0] == min(run.shown_at)
        and _is_idr(segment[run.first_at : first_end]),
    )


def shown_frames(init_segment: bytes, segment: bytes) -> list[tuple[float, bool]]:
    """When each frame is shown, in seconds after the first, and whether it is an IDR picture.

    In the order in which they are shown. Raises SegmentError.
    """
    run, ticks = _read_run(segment), time_scale(init_segment)
    ends = accumulate(run.sizes_bytes, initial=run.first_at)
    are_idr = [_is_idr(segment[start:end]) for start, end in pairwise(ends)]
    shown = sorted(zip(run.shown_at, are_idr, strict=True))
    return [((at - shown[0][0]) / ticks, is_idr) for at, is_idr in shown]


def _read_run(segment: bytes) -> "_Run":
    try:
        return _Run(segment)
    except (struct.error, IndexError) as exc:
        raise SegmentError("the segment ends early") from exc


def _box(data: bytes, kind: bytes, start: int, end: int) -> tuple[int, int]:
    """Where the content of the first box of this kind begins and ends."""
    while start + _BOX_HEADER_BYTES <= end:
        size_bytes, found = struct.unpack_from(">I4s", data, start)
        if size_bytes < _BOX_HEADER_BYTES:
            raise SegmentError("a box of an impossible size")
        if found == kind:
            return start + _BOX_HEADER_BYTES, start + size_bytes
        start += size_bytes
    raise SegmentError(f"no {kind.decode()} box")


def _defaults(data: bytes, at: int) -> tuple[int, int]:
    """Duration and size of the samples of which the trun box says nothing, from the tfhd box."""
    flags = struct.unpack_from(">I", data, at)[0] & 0xFFFFFF
    at += 8 + 8 * bool(flags & _BASE_DATA_OFFSET) + 4 * bool(flags & _DESCRIPTION)
    duration = struct.unpack_from(">I", data, at)[0] if flags & _DEFAULT_DURATION else 0
    at += 4 * bool(flags & _DEFAULT_DURATION)
    size_bytes = struct.unpack_from(">I", data, at)[0] if flags & _DEFAULT_SIZE else 0
    return duration, size_bytes


class _Run:
    """The samples of a segment's only fragment, times in ticks; `first_at` is a place in bytes."""

    def __init__(self, data: bytes) -> None:
        moof = _box(data, b"moof", 0, len(data))
        traf = _box(data, b"traf", *moof)
        duration, size_bytes = _defaults(data, _box(data, b"tfhd", *traf)[0])
        at, _ = _box(data, b"trun", *traf)
        flags, count = struct.unpack_from(">II", data, at)
        if not count:
            raise SegmentError("a fragment without samples")
        at += 8
        offset = struct.unpack_from(">i", data, at)[0] if flags & _DATA_OFFSET else 0
        self.first_at = moof[0] - _BOX_HEADER_BYTES + offset
        time_at, _ = _box(data, b"tfdt", *traf)
        kind = ">Q" if data[time_at] == 1 else ">I"  # by the box's version
        self.begins_at: int = struct.unpack_from(kind, data, time_at + 4)[0]
        at += 4 * bool(flags & _DATA_OFFSET) + 4 * bool(flags & _FIRST_SAMPLE_FLAGS)
        fields = [bit for bit in (_DURATION, _SIZE, _FLAGS, _COMPOSITION) if flags & bit]
        # A lone sample may be described by the defaults alone.
        values = struct.unpack_from(f">{count * len(fields)}I", data, at)
        columns = {bit: values[place :: len(fields)] for place, bit in enumerate(fields)}
        self.sizes_bytes = columns.get(_SIZE, (size_bytes,) * count)
        durations: tuple[int, ...] = columns.get(_DURATION, (duration,) * count)
        offsets = map(_signed, columns.get(_COMPOSITION, (0,) * count))
        decoded_at = (0, *accumulate(durations[:-1]))
        self.shown_at: list[int] = list(map(add, decoded_at, offsets))
        self.shown_until: int = max(map(add, self.shown_at, durations))


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def _is_idr(sample: bytes) -> bool:
    """Whether the first slice of an access unit is of an IDR picture (ISO/IEC 14496-10, 7.3.1)."""
    at = 0
    while at + _NAL_LENGTH_BYTES < len(sample):
        kind = sample[at + _NAL_LENGTH_BYTES] & _NAL_TYPE_MASK
        if kind in (_SLICE, _IDR):
            return kind == _IDR
        at += _NAL_LENGTH_BYTES + int.from_bytes(sample[at : at + _NAL_LENGTH_BYTES])
    return False
