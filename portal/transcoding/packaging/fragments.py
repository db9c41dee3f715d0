"""Write the segments of a track (ISO/IEC 14496-12, 8.8): one movie fragment each. Pure.

FFmpeg's muxer is not used, because it assumes the same delay between decoding and showing in all
segments, and would need another process for each.
"""

import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

_BASE_IS_MOOF = 0x020000
_HAS_DEFAULT_FLAGS = 0x000020
_DATA_OFFSET = 0x001
_DURATION = 0x100
_SIZE = 0x200
_FLAGS = 0x400
_COMPOSITION = 0x800
# Version 1 of the box.
_SIGNED_OFFSETS = 1 << 24
# A sample that depends on no other one, and a sample that depends on others.
_SYNC = 0x02000000
_NOT_SYNC = 0x01010000
_TRACK = 1
_SEGMENT_TYPE = struct.pack(">I4s4s4x8s", 24, b"styp", b"msdh", b"msdhmsix")
_BOX_HEADER_BYTES = 8


class Sample(NamedTuple):
    """Access unit: when it is decoded, in ticks, and the time from then until it is shown.

    The time is negative for a frame that is decoded after one that is shown later.
    """

    decode_at: int
    offset: int
    is_sync: bool
    data: bytes


def shown_until(samples: Sequence[Sample], until: int) -> int:
    """Return when the presentation of samples ends, in ticks of their decode times.

    The decode time after the last sample is `until`. Samples are shown in another order, so any of
    them may be the last one.
    """
    ends = (*(sample.decode_at for sample in samples[1:]), until)
    return max(end + sample.offset for sample, end in zip(samples, ends, strict=True))


def lasting_as_shown(samples: Sequence[Sample], until: int) -> list[Sample]:
    """Return the samples of a segment with new decode times, and the same presentation times.

    Each sample lasts until the next frame in the order of presentation; the last one of these lasts
    until `until`, in ticks of the track. Chromium shows a frame for the duration of its sample,
    even if another frame is due. The first decode time is the first presentation time, so that no
    edit list has to delay the track: hls.js ignores edit lists. Composition offsets may be
    negative.
    """
    shown_at = [sample.decode_at + sample.offset for sample in samples]
    in_order = sorted(shown_at)
    durations = {at: end - at for at, end in pairwise([*in_order, until])}
    decoded_at = accumulate((durations[at] for at in shown_at), initial=in_order[0])
    return [
        sample._replace(decode_at=at, offset=show_at - at)
        for sample, show_at, at in zip(samples, shown_at, decoded_at, strict=False)
    ]


def decoded_early(samples: Sequence[Sample], *, move: int = 0, earliest: int = 0) -> list[Sample]:
    """Return samples that are shown earlier by `move`, and decoded before that, in ticks.

    Each is decoded as late as possible, and the first one at `earliest` or later. FFmpeg needs this
    order: it shows all frames of a track later if some are decoded after they are shown.
    """
    shown_at = [sample.decode_at + sample.offset - move for sample in samples]
    latest = [*accumulate(reversed(shown_at), lambda after, at: min(after - 1, at))]
    early = []
    for sample, show_at, at in zip(samples, shown_at, reversed(latest), strict=True):
        decode_at = max(at, earliest)
        early.append(sample._replace(decode_at=decode_at, offset=max(0, show_at - decode_at)))
        earliest = decode_at + 1
    return early


def write_segment(number: int, samples: Sequence[Sample], until: int) -> bytes:
    """Return a segment with these samples; the last one lasts to `until`, in ticks.

    Raises struct.error if a number is too large for its field.
    """
    return b"".join((segment_head(number, samples, until), *(sample.data for sample in samples)))


def segment_head(number: int, samples: Sequence[Sample], until: int) -> bytes:
    """Return the part of a segment before its samples' data; the last sample lasts to `until`.

    Raises struct.error if a number is too large for its field.
    """
    # Sound needs fewer columns: samples depend on no others, and are shown when they are decoded.
    is_plain = all(sample.is_sync and not sample.offset for sample in samples)
    columns = _DURATION | _SIZE | (0 if is_plain else _FLAGS | _COMPOSITION)
    ends = (*(sample.decode_at for sample in samples[1:]), until)
    row = struct.Struct(">II" if is_plain else ">IIIi")
    table = b"".join(
        row.pack(
            end - at, len(data), *(() if is_plain else (_SYNC if is_sync else _NOT_SYNC, offset))
        )
        for (at, offset, is_sync, data), end in zip(samples, ends, strict=True)
    )
    # The fragment contains the offset of the data, which is its size, so it is built twice.
    size_bytes = len(_movie_fragment(number, samples, columns, table, data_offset=0))
    data_offset = size_bytes + _BOX_HEADER_BYTES
    moof = _movie_fragment(number, samples, columns, table, data_offset=data_offset)
    media_bytes = sum(len(sample.data) for sample in samples)
    return _SEGMENT_TYPE + moof + struct.pack(">I4s", _BOX_HEADER_BYTES + media_bytes, b"mdat")


def _movie_fragment(
    number: int, samples: Sequence[Sample], columns: int, table: bytes, *, data_offset: int
) -> bytes:
    flags = _SIGNED_OFFSETS | _DATA_OFFSET | columns
    run = struct.pack(">III", flags, len(samples), data_offset)
    return _box(
        b"moof",
        _box(b"mfhd", struct.pack(">II", 0, number + 1)),
        _box(
            b"traf",
            _box(b"tfhd", struct.pack(">III", _BASE_IS_MOOF | _HAS_DEFAULT_FLAGS, _TRACK, _SYNC)),
            _box(b"tfdt", struct.pack(">IQ", 1 << 24, samples[0].decode_at)),
            _box(b"trun", run, table),
        ),
    )


def _box(kind: bytes, *content: bytes) -> bytes:
    body = b"".join(content)
    return struct.pack(">I4s", _BOX_HEADER_BYTES + len(body), kind) + body
