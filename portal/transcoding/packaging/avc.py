"""Join the H.264 configurations of init segments (ISO/IEC 14496-15, 5.3.3). Pure.

A decoder keeps parameter sets by their numbers. Segments of several encoders can share an init
segment that has the parameter sets of all, if these have different numbers.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from portal.transcoding.packaging.cmaf import SegmentError, find_box

_BOXES = (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd")
_BOX_HEADER_BYTES = 8
# Bytes of a sample description box before its entries, and of a visual entry before its boxes.
_DESCRIPTION_BYTES = 8
_VISUAL_ENTRY_BYTES = 78
# Bytes of a configuration before its parameter sets, and of a parameter set's header.
_CONFIGURATION_BYTES = 5
_HEADER_BYTES = {"sequence": 4, "picture": 1}
# Numbers that a sequence parameter set can have.
_NUMBERS = frozenset(range(32))


class Configuration(NamedTuple):
    """Content of an avcC box. `head` has version, profile, level and the length of lengths.

    `tail` has the chroma format and bit depth of high profiles.
    """

    head: bytes
    sequence_sets: tuple[bytes, ...]
    picture_sets: tuple[bytes, ...]
    tail: bytes


def free_number(init_segment: bytes) -> int:
    """Return the lowest number that no parameter set of an init segment has; 0 if all are used.

    Raises `SegmentError`.
    """
    configuration = _configuration(init_segment, *_avcc(init_segment)[-1])
    used = {number for number, _ in _numbered(configuration.sequence_sets, "sequence")}
    used |= {number for number, _ in _numbered(configuration.picture_sets, "picture")}
    return min(_NUMBERS - used, default=0)


def shared_init(init_segments: Sequence[bytes]) -> bytes:
    """Return the first init segment, with the H.264 parameter sets (SPS and PPS) of all of them.

    Raises `SegmentError` if different parameter sets have the same id, if the streams differ in the
    size of a NAL unit's length, or if an init segment isn't one of H.264.
    """
    configurations = [_configuration(each, *_avcc(each)[-1]) for each in init_segments]
    highest = max(configurations, key=lambda each: each.head[1])
    if len({each.head[4] & 3 for each in configurations}) > 1:
        raise SegmentError("the lengths of NAL units differ in size")
    sequence_sets = _joined((each.sequence_sets for each in configurations), "sequence")
    picture_sets = _joined((each.picture_sets for each in configurations), "picture")
    level = max(each.head[3] for each in configurations)
    content = b"".join(
        (
            highest.head[:3] + bytes((level, highest.head[4])),
            bytes((0xE0 | len(sequence_sets),)),
            *(struct.pack(">H", len(each)) + each for each in sequence_sets),
            bytes((len(picture_sets),)),
            *(struct.pack(">H", len(each)) + each for each in picture_sets),
            highest.tail,
        )
    )
    return _replaced(init_segments[0], content)


def _avcc(init_segment: bytes) -> list[tuple[int, int]]:
    """Return where the contents of the boxes around avcC begin and end, and that of avcC."""
    places = [(0, len(init_segment))]
    for kind in _BOXES:
        places.append(find_box(init_segment, kind, *places[-1]))
    at, end = places[-1]
    for kind in (b"avc1", b"avc3"):
        try:
            entry = find_box(init_segment, kind, at + _DESCRIPTION_BYTES, end)
        except SegmentError:
            continue
        inner = find_box(init_segment, b"avcC", entry[0] + _VISUAL_ENTRY_BYTES, entry[1])
        return [*places[1:], entry, inner]
    raise SegmentError("the init segment is not of H.264")


def _replaced(init_segment: bytes, content: bytes) -> bytes:
    """Return an init segment with another content of its avcC box."""
    places = _avcc(init_segment)
    start, end = places[-1]
    added = len(content) - (end - start)
    data = bytearray(init_segment[:start] + content + init_segment[end:])
    for box_start, box_end in places:
        size = box_end - box_start + _BOX_HEADER_BYTES + added
        struct.pack_into(">I", data, box_start - _BOX_HEADER_BYTES, size)
    return bytes(data)


def _configuration(init_segment: bytes, start: int, end: int) -> Configuration:
    avcc = init_segment[start:end]
    at = _CONFIGURATION_BYTES
    groups: list[tuple[bytes, ...]] = []
    for mask in (0x1F, 0xFF):  # sequence parameter sets, then picture parameter sets
        count = int.from_bytes(avcc[at : at + 1]) & mask
        at += 1
        units = []
        for _ in range(count):
            size = int.from_bytes(avcc[at : at + 2])
            units.append(avcc[at + 2 : at + 2 + size])
            at += 2 + size
        groups.append(tuple(units))
    if at > len(avcc):
        raise SegmentError("the configuration of H.264 ends early")
    return Configuration(avcc[:_CONFIGURATION_BYTES], groups[0], groups[1], avcc[at:])


def _joined(groups: Iterable[Sequence[bytes]], kind: str) -> list[bytes]:
    """Return the different parameter sets of some init segments, which have different numbers."""
    by_number: dict[int, bytes] = {}
    for units in groups:
        for number, unit in _numbered(units, kind):
            if by_number.setdefault(number, unit) != unit:
                raise SegmentError(f"different {kind} parameter sets have the number {number}")
    return list(by_number.values())


def _numbered(units: Iterable[bytes], kind: str) -> Iterable[tuple[int, bytes]]:
    """Yield parameter sets with their numbers, which are Exp-Golomb codes after their headers."""
    for unit in units:
        code = unit[_HEADER_BYTES[kind] :]
        bits = int.from_bytes(code)
        length = 2 * (8 * len(code) - bits.bit_length()) + 1
        yield (bits >> (8 * len(code) - length)) - 1, unit
