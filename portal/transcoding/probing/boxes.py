"""Walk the boxes of an MP4 (ISO/IEC 14496-12) for what FFmpeg does not tell.

Tells a cut-off upload from a file of another kind, and finds encrypted sample entries, which
FFmpeg reports by their original name. The file is read by FFmpeg's own protocols, through the
demuxer that takes any bytes. Limits: headers only, and a bounded number of them; a file whose
index isn't walked to its end within them is refused, because FFmpeg would go on.

Also reads composition offsets: FFmpeg's index has decoding times alone. They do not tell the rate:
cutting leaves pictures out that others were ordered around, and some writers give reordered
pictures even decoding times. Of the real files looked at, four with even decoding times are shown
unevenly, and one the reverse.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import av
from av.container import InputContainer

# Half a second; 300 tracks have 5,000.
_MAX_BOXES = 200_000
# Over http every jump is a request. 40 tracks of half a day take about 300.
_MAX_JUMPS = 1000
_WINDOW_BYTES = 4096
_TABLE_WINDOW_BYTES = 256 * 1024
_HEADER_BYTES = 16
VIDEO_HANDLER = b"vide"
# Full box header and a field of QuickTime's.
_HANDLER_OFFSET_BYTES = 8
# Full box header and entry count.
_COUNT_PREFIX_BYTES = 8
# What is entered on the way from the index down to the sample entries.
_INSIDE = {
    b"moov": {b"mvex", b"trak"},
    b"mvex": set[bytes](),
    b"trak": {b"mdia"},
    b"mdia": {b"minf"},
    b"minf": {b"dinf", b"stbl"},
    b"dinf": set[bytes](),
    b"stbl": set[bytes](),
}
# Of a data reference: the media lie in this very file.
_SELF_CONTAINED = b"\1"
_MIN_NAMED_BYTES = 5
# A record of QuickTime's in place of an address.
_ALIAS = b"alis"
# Sample entries that announce encryption: ISO/IEC 23001-7, and those of the iTunes store.
_ENCRYPTED = {b"encv", b"enca", b"drmi", b"drms"}
_HEAD, _ROW = struct.Struct(">4xI"), struct.Struct(">Ii")
# Offsets of the size and of the boxes in a visual sample entry (ISO/IEC 14496-12, 12.1.3.2).
_PICTURE_SIZE_AT = 24
_PICTURE_BOXES_AT = 78
# Recorders write one entry, editors a few. The remaining ones are not read.
_MAX_ENTRIES = 64


@dataclass(frozen=True, slots=True)
class PictureEntry:
    """Visual sample entry: the size of its frames, and the first 32 bytes of each of its boxes.

    Bytes after the file's end count as zero.
    """

    size: tuple[int, int]
    boxes: Mapping[bytes, bytes]


_TRACK_DEFAULTS = struct.Struct(">4xIII")
# Over http each fragment is a request. The ends of longer films are not known.
_MAX_FRAGMENTS = 400
_MAX_RUN_BYTES = 256 * 1024


@dataclass(slots=True)
class FragmentTimes:
    """When a track's samples in fragments begin and end, in ticks of the track.

    `first` is None before the first fragment, `last_sample` is how long the last sample lasts, and
    `default` how long samples last that don't have a duration.
    """

    first: int | None = None
    end: int = 0
    last_sample: int = 0
    default: int = 0


@dataclass(slots=True)
class Outline:
    """What the walk has come across."""

    size_bytes: int = 0
    has_index: bool = False
    has_media: bool = False
    has_fragments: bool = False
    is_index_cut: bool = False
    announces_fragments: bool = False
    is_encrypted: bool = False
    # Unless there is no index, or all of it was seen.
    is_unfinished: bool = True
    # What the tracks whose media lie in other files are of, by their handlers.
    external: set[bytes] = field(default_factory=set)
    # Where the composition offsets of each track lie, by its number: from and to in the file.
    composition: dict[int, tuple[int, int]] = field(default_factory=dict)
    handlers: dict[int, bytes] = field(default_factory=dict)
    # Sample entries of video tracks, by the track's number.
    pictures: dict[int, list[PictureEntry]] = field(default_factory=dict)
    # Times in fragments by the track's number; empty if there are too many fragments to read.
    fragments: dict[int, FragmentTimes] = field(default_factory=dict)

    @property
    def is_fragmented(self) -> bool:
        """Whether samples follow that the index doesn't list; some recorders only announce it."""
        return self.announces_fragments and self.has_fragments

    @property
    def verdict(self) -> str:
        """Why FFmpeg can't open such a file."""
        if self.has_index:
            return "truncated" if self.is_index_cut else "damaged"
        # Most recorders write the index last. A lone segment of a stream never had one.
        is_cut = self.has_media and not self.has_fragments
        return "truncated" if is_cut else "not_a_video"


@dataclass(frozen=True, slots=True)
class _Box:
    kind: bytes
    body: int
    end: int


class _OutOfBudget(Exception):
    """The file has more boxes than are looked at."""


class _BoxReader:
    """Reads a few bytes anywhere, with a window so that neighbours cost nothing."""

    def __init__(self, container: InputContainer) -> None:
        self.container = container
        self.size_bytes = container.size
        self._window, self._window_at = b"", 0
        self._jumps_left, self._boxes_left = _MAX_JUMPS, _MAX_BOXES

    def read(self, at: int, size_bytes: int = _HEADER_BYTES) -> bytes:
        """Return the bytes at a place, fewer at the end of the file."""
        if not self._window_at <= at <= self._window_at + len(self._window) - size_bytes:
            self._move(at, size_bytes)
        offset = at - self._window_at
        return self._window[offset : offset + size_bytes]

    def _move(self, at: int, size_bytes: int) -> None:
        """Begin the window at `at`, with so many bytes; reading on is no jump."""
        offset = at - self._window_at
        if 0 <= offset <= len(self._window):
            self._window = self._window[offset:]
        else:
            if not self._jumps_left:
                raise _OutOfBudget
            self._jumps_left -= 1
            self.container.seek(at, unsupported_byte_offset=True)
            self._window = b""
        self._window_at = at
        # Over http a packet is as long as what has arrived.
        while len(self._window) < size_bytes and (more := bytes(next(self.container.demux(), b""))):
            self._window += more

    def boxes(self, at: int, end: int) -> Iterator[_Box]:
        """The boxes between two places; the last may claim to reach further."""
        while at + 8 <= min(end, self.size_bytes):
            if not self._boxes_left:
                raise _OutOfBudget
            self._boxes_left -= 1
            header = self.read(at)
            size, kind, body = int.from_bytes(header[:4], "big"), header[4:8], at + 8
            if size == 1 and len(header) == _HEADER_BYTES:
                size, body = int.from_bytes(header[8:], "big"), at + _HEADER_BYTES
            elif size == 0:
                size = end - at
            if len(kind) < 4 or size < body - at:
                return
            yield _Box(kind, body, at + size)
            at += size


def read_outline(request: dict[str, Any]) -> Outline:
    """Walk the file's own boxes up to its index, and the index down to its sample entries.

    Raises FFmpegError when it can't be read, and EOFError when there is nothing in it.
    """
    outline = Outline()
    with _open_raw(request, _WINDOW_BYTES) as container:
        reader = _BoxReader(container)
        outline.size_bytes = reader.size_bytes
        try:
            _walk_top(outline, reader)
        except _OutOfBudget:
            outline.fragments.clear()
        else:
            outline.is_unfinished = False
    return outline


def _open_raw(request: dict[str, Any], window_bytes: int) -> InputContainer:
    container: InputContainer = av.open(
        request["source"],
        format="data",
        options={
            "protocol_whitelist": request["protocols"],
            "raw_packet_size": str(window_bytes),
            "probesize": "32",
        },
        timeout=request["timeout_s"],
    )
    return container


def _walk_top(outline: Outline, reader: _BoxReader) -> None:
    """Walk as far as the index, and through the fragments behind it when it announces any."""
    fragment_count = 0
    for box in reader.boxes(0, reader.size_bytes):
        if box.kind == b"mdat":
            outline.has_media = True
        elif box.kind == b"moov":
            outline.has_index = True
            outline.is_index_cut = box.end > reader.size_bytes
            _walk_index(outline, reader, box)
            outline.is_unfinished = False
            if not outline.announces_fragments:
                return
        elif box.kind == b"moof":
            outline.has_fragments = True
            fragment_count += 1
            if fragment_count > _MAX_FRAGMENTS:
                raise _OutOfBudget
            for track in reader.boxes(box.body, box.end):
                if track.kind == b"traf" and outline.has_index:
                    _read_fragment(outline, reader, track)


def _walk_index(outline: Outline, reader: _BoxReader, parent: _Box, track: int = 0) -> None:
    """Walk down to the sample entries, no deeper."""
    for box in reader.boxes(parent.body, parent.end):
        outline.announces_fragments |= box.kind == b"mvex"
        if box.kind == b"tkhd":
            track = _track_number(reader, box)
        elif box.kind == b"ctts":
            outline.composition[track] = (box.body, box.end)
        elif box.kind == b"trex":
            number, _, ticks = _TRACK_DEFAULTS.unpack(reader.read(box.body).ljust(16, b"\0"))
            outline.fragments[number] = FragmentTimes(default=ticks)
        elif box.kind == b"hdlr" and parent.kind == b"mdia":
            outline.handlers[track] = reader.read(box.body + _HANDLER_OFFSET_BYTES)[:4]
        elif box.kind == b"stsd":
            _read_sample_entries(outline, reader, box, track)
        elif box.kind == b"dref":
            references = reader.boxes(box.body + _COUNT_PREFIX_BYTES, box.end)
            if any(_is_external(reader, entry) for entry in references):
                outline.external.add(outline.handlers.get(track, b""))
        elif box.kind in _INSIDE[parent.kind]:
            _walk_index(outline, reader, box, track)


def _track_number(reader: _BoxReader, header: _Box) -> int:
    """Return the number by which FFmpeg knows the track, too."""
    # Two times of 4 or 8 bytes stand before it.
    is_long = reader.read(header.body)[:1] == b"\1"
    return int.from_bytes(reader.read(header.body + (20 if is_long else 12))[:4])


def _read_sample_entries(outline: Outline, reader: _BoxReader, table: _Box, track: int) -> None:
    """Record what sample entries say about encryption and pictures."""
    entries = list(reader.boxes(table.body + _COUNT_PREFIX_BYTES, table.end))
    outline.is_encrypted |= any(entry.kind in _ENCRYPTED for entry in entries)
    if outline.handlers.get(track) == VIDEO_HANDLER:
        pictures = [_picture_entry(reader, entry) for entry in entries[:_MAX_ENTRIES]]
        outline.pictures[track] = pictures


def _picture_entry(reader: _BoxReader, entry: _Box) -> PictureEntry:
    """Read a visual sample entry."""
    size = reader.read(entry.body + _PICTURE_SIZE_AT)
    boxes = {
        box.kind: (reader.read(box.body) + reader.read(box.body + _HEADER_BYTES)).ljust(32, b"\0")
        for box in reader.boxes(entry.body + _PICTURE_BOXES_AT, entry.end)
    }
    return PictureEntry((int.from_bytes(size[:2]), int.from_bytes(size[2:4])), boxes)


def _read_fragment(outline: Outline, reader: _BoxReader, fragment: _Box) -> None:
    """Record when the samples of a track fragment end (ISO/IEC 14496-12, 8.8)."""
    times = FragmentTimes()
    default = 0
    for box in reader.boxes(fragment.body, fragment.end):
        content = reader.read(box.body, min(box.end - box.body, _MAX_RUN_BYTES)).ljust(16, b"\0")
        flags = int.from_bytes(content[1:4])
        value = int.from_bytes(content[4:8])
        if box.kind == b"tfhd":
            times = outline.fragments.setdefault(value, FragmentTimes())
            place = 8 + 8 * bool(flags & 1) + 4 * bool(flags & 2)
            default = int.from_bytes(content[place : place + 4]) if flags & 8 else times.default
        elif box.kind == b"tfdt":
            times.end = int.from_bytes(content[4:12] if content[0] else content[4:8])
            times.first = times.end if times.first is None else times.first
        elif box.kind == b"trun":
            durations = [default] * min(value, _MAX_RUN_BYTES)
            if flags & 0x100:
                place = 8 + 4 * bool(flags & 1) + 4 * bool(flags & 4)
                row_bytes = 4 * (flags >> 8 & 0xF).bit_count()
                rows = range(place, min(len(content), place + value * row_bytes), row_bytes)
                durations = [int.from_bytes(content[row : row + 4]) for row in rows]
            times.end += sum(durations)
            times.last_sample = durations[-1] if durations else times.last_sample


def _is_external(reader: _BoxReader, reference: _Box) -> bool:
    """Whether it names another place; some writers forget the flag but name none."""
    flags, name = reader.read(reference.body)[3:4], reader.read(reference.body + 4)[:1]
    has_name = reference.end - reference.body > _MIN_NAMED_BYTES and (
        reference.kind == _ALIAS or name != b"\0"
    )
    return flags != _SELF_CONTAINED and has_name


def composition_offsets(
    request: dict[str, Any], outline: Outline, *, track: int, samples: int
) -> Iterable[int] | None:
    """The offset of each sample in ticks, from the track's `ctts` (ISO/IEC 14496-12, 8.6.1.3).

    None unless it describes exactly so many. Offsets are signed, as all readers take them.
    Raises FFmpegError.
    """
    at, end = outline.composition.get(track, (0, 0))
    if not end:  # without the box each is shown when it is decoded
        return repeat(0)
    if end - at > _HEAD.size + _ROW.size * samples:
        return None
    table = bytearray()
    with _open_raw(request, _TABLE_WINDOW_BYTES) as container:
        container.seek(at, unsupported_byte_offset=True)
        for packet in container.demux():
            table += bytes(packet)
            if len(table) >= end - at:
                break
    rows = table[_HEAD.size : end - at]
    if len(table) < end - at or len(rows) % _ROW.size:
        return None
    if sum(count for count, _ in _ROW.iter_unpack(rows)) != samples:
        return None
    return (offset for count, offset in _ROW.iter_unpack(rows) for offset in repeat(offset, count))
