"""Read fragmented MP4 segments (ISO/IEC 14496-12): facts that the portal needs, and parts. Pure.

Limits: one track and one movie fragment in a segment, as the HLS muxer writes them.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import add

from portal.transcoding.packaging.fragments import Sample, shown_until, write_segment

# CODECS string of all sound that the portal serves (RFC 6381).
AAC_LC = "mp4a.40.2"
# Flags of a trun box, in the order of the fields that they announce.
_DATA_OFFSET = 0x000001
_FIRST_SAMPLE_FLAGS = 0x000004
_DURATION = 0x000100
_SIZE = 0x000200
_FLAGS = 0x000400
_COMPOSITION = 0x000800
# Flags of a tfhd box, in the order of the fields that they announce.
_BASE_DATA_OFFSET = 0x01
_DESCRIPTION = 0x02
_DEFAULT_DURATION = 0x08
_DEFAULT_SIZE = 0x10
# Types of H.264 NAL units (ISO/IEC 14496-10, table 7-1).
_NAL_TYPE_MASK = 0x1F
_SLICE = 1
_IDR = 5
_NAL_LENGTH_BYTES = 4
_BOX_HEADER_BYTES = 8
# Times this close are of the same frame.
_SAME_S = 0.004


class SegmentError(ValueError):
    """The bytes are not a segment as the portal writes them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SegmentFacts:
    """Size, times and independence of a video segment.

    `key_size_bytes` counts from the segment's start to the end of its first sample. The frames are
    shown from `from_ticks` to `until_ticks`, the last one from `last_ticks`, in the track's time
    scale. A segment `is_closed` if it decodes without any other segment: it begins with an IDR
    picture, and shows no frame before that one.
    """

    sample_count: int
    key_size_bytes: int
    from_ticks: int
    last_ticks: int
    until_ticks: int
    is_closed: bool


def avc_codec(init_segment: bytes) -> str:
    """Return the CODECS string of an H.264 init segment, from its avcC box (ISO/IEC 14496-15)."""
    at = init_segment.find(b"avcC")
    profile = init_segment[at + 5 : at + 8]  # Skips the type and configurationVersion.
    if at < 0 or len(profile) != 3:
        raise SegmentError("no avcC box in the init segment")
    return f"avc1.{profile.hex()}"


def time_scale(init_segment: bytes) -> int:
    """Return the ticks per second of an init segment's only track."""
    at = 0
    end = len(init_segment)
    for kind in (b"moov", b"trak", b"mdia", b"mdhd"):
        at, end = find_box(init_segment, kind, at, end)
    try:
        version: int = init_segment[at]
        ticks: int = struct.unpack_from(">I", init_segment, at + (20 if version == 1 else 12))[0]
    except (struct.error, IndexError) as exc:
        raise SegmentError("the init segment ends early") from exc
    return ticks


def first_media_time(init_segment: bytes) -> int:
    """Return the media time, in ticks, at which the presentation of the only track begins.

    Encoders of sound and video begin with samples that are not presented; the edit list says so.
    """
    at = 0
    end = len(init_segment)
    try:
        for kind in (b"moov", b"trak", b"edts", b"elst"):
            at, end = find_box(init_segment, kind, at, end)
    except SegmentError:
        return 0
    version = init_segment[at]
    entry = struct.Struct(">Qq4x" if version == 1 else ">Ii4x")
    # An entry without media has the time -1.
    times = (time for _, time in entry.iter_unpack(init_segment[at + 8 : end]) if time >= 0)
    return next(times, 0)


def read_samples(segment: bytes, *, is_sound: bool) -> tuple[list[Sample], int]:
    """Return the samples of a segment of H.264 or sound, and when the last one ends, in ticks.

    Raises `SegmentError`.
    """
    run = _read_run(segment)
    ends = accumulate(run.sizes_bytes, initial=run.first_at)
    contents = [segment[start:end] for start, end in pairwise(ends)]
    samples = [
        Sample(run.begins_at + decode_at, show_at - decode_at, is_sound or _is_idr(data), data)
        for decode_at, show_at, data in zip(run.decoded_at, run.shown_at, contents, strict=True)
    ]
    return samples, run.begins_at + run.decoded_until


def inspect_segment(segment: bytes) -> SegmentFacts:
    """Return the facts of an H.264 segment. Raises `SegmentError`."""
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
    """Return the time of each frame, in seconds after the first, and whether it is an IDR picture.

    Frames are in the order in which they are shown. Raises `SegmentError`.
    """
    run = _read_run(segment)
    ticks_per_s = time_scale(init_segment)
    ends = accumulate(run.sizes_bytes, initial=run.first_at)
    are_idr = [_is_idr(segment[start:end]) for start, end in pairwise(ends)]
    frames = sorted(zip(run.shown_at, are_idr, strict=True))
    first_ticks = frames[0][0]
    return [((ticks - first_ticks) / ticks_per_s, is_idr) for ticks, is_idr in frames]


def between_keys(
    init_segment: bytes, segment: bytes, *, number: int, from_s: float, until_s: float
) -> bytes | None:
    """Split off the frames of an H.264 segment from one time until before another.

    Times are in seconds after the segment's first shown frame. The part is returned as a fragment
    with the sequence number `number`; its frames keep their times. The result is None unless the
    part begins at an IDR picture, and ends before one or with the segment. Raises `SegmentError`
    for a segment that can't be read.
    """
    samples, end_ticks = read_samples(segment, is_sound=False)
    ticks_per_s = time_scale(init_segment)
    first_ticks = min(sample.decode_at + sample.offset for sample in samples)
    bounds = {
        (sample.decode_at + sample.offset - first_ticks) / ticks_per_s: place
        for place, sample in enumerate(samples)
        if sample.is_sync
    }
    bounds[(shown_until(samples, end_ticks) - first_ticks) / ticks_per_s] = len(samples)
    first = _place_at(from_s, bounds)
    end = _place_at(until_s, bounds)
    if first is None or end is None or first == end:
        return None
    until = samples[end].decode_at if end < len(samples) else end_ticks
    return write_segment(number, samples[first:end], until)


def _place_at(at_s: float, places: Mapping[float, int]) -> int | None:
    """Return the place at a time, to a few milliseconds; None if there is none."""
    return next((place for time_s, place in places.items() if abs(time_s - at_s) < _SAME_S), None)


def _read_run(segment: bytes) -> "_Run":
    try:
        return _Run(segment)
    except (struct.error, IndexError) as exc:
        raise SegmentError("the segment ends early") from exc


def find_box(data: bytes, kind: bytes, start: int, end: int) -> tuple[int, int]:
    """Return where the content of the first box of this kind begins and ends.

    The boxes are from `start` to `end`. Raises `SegmentError` if there is none of this kind.
    """
    while start + _BOX_HEADER_BYTES <= end:
        size_bytes, box_kind = struct.unpack_from(">I4s", data, start)
        if size_bytes < _BOX_HEADER_BYTES:
            raise SegmentError("a box of an impossible size")
        if box_kind == kind:
            return start + _BOX_HEADER_BYTES, start + size_bytes
        start += size_bytes
    raise SegmentError(f"no {kind.decode()} box")


def _defaults(data: bytes, at: int) -> tuple[int, int]:
    """Return the default duration and size of samples, from the tfhd box."""
    flags = struct.unpack_from(">I", data, at)[0] & 0xFFFFFF
    at += 8 + 8 * bool(flags & _BASE_DATA_OFFSET) + 4 * bool(flags & _DESCRIPTION)
    duration = struct.unpack_from(">I", data, at)[0] if flags & _DEFAULT_DURATION else 0
    at += 4 * bool(flags & _DEFAULT_DURATION)
    size_bytes = struct.unpack_from(">I", data, at)[0] if flags & _DEFAULT_SIZE else 0
    return duration, size_bytes


class _Run:
    """Samples of a segment's only fragment; times are in ticks, `first_at` is a byte offset."""

    def __init__(self, data: bytes) -> None:
        moof = find_box(data, b"moof", 0, len(data))
        traf = find_box(data, b"traf", *moof)
        duration, size_bytes = _defaults(data, find_box(data, b"tfhd", *traf)[0])
        at, _ = find_box(data, b"trun", *traf)
        flags, count = struct.unpack_from(">II", data, at)
        if not count:
            raise SegmentError("a fragment without samples")
        at += 8
        offset = struct.unpack_from(">i", data, at)[0] if flags & _DATA_OFFSET else 0
        self.first_at = moof[0] - _BOX_HEADER_BYTES + offset
        time_at, _ = find_box(data, b"tfdt", *traf)
        kind = ">Q" if data[time_at] == 1 else ">I"  # The first byte is the box's version.
        self.begins_at: int = struct.unpack_from(kind, data, time_at + 4)[0]
        at += 4 * bool(flags & _DATA_OFFSET) + 4 * bool(flags & _FIRST_SAMPLE_FLAGS)
        fields = [bit for bit in (_DURATION, _SIZE, _FLAGS, _COMPOSITION) if flags & bit]
        # Without fields, the defaults describe every sample.
        values = struct.unpack_from(f">{count * len(fields)}I", data, at)
        columns = {bit: values[place :: len(fields)] for place, bit in enumerate(fields)}
        self.sizes_bytes = columns.get(_SIZE, (size_bytes,) * count)
        durations: tuple[int, ...] = columns.get(_DURATION, (duration,) * count)
        offsets = map(_signed, columns.get(_COMPOSITION, (0,) * count))
        self.decoded_at = (0, *accumulate(durations[:-1]))
        self.decoded_until: int = sum(durations)
        self.shown_at: list[int] = list(map(add, self.decoded_at, offsets))
        self.shown_until: int = max(map(add, self.shown_at, durations))


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def _is_idr(sample: bytes) -> bool:
    """Return whether an access unit's first slice is of an IDR picture (ISO/IEC 14496-10)."""
    at = 0
    while at + _NAL_LENGTH_BYTES < len(sample):
        kind = sample[at + _NAL_LENGTH_BYTES] & _NAL_TYPE_MASK
        if kind in (_SLICE, _IDR):
            return kind == _IDR
        at += _NAL_LENGTH_BYTES + int.from_bytes(sample[at : at + _NAL_LENGTH_BYTES])
    return False
