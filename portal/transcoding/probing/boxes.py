"""Walk the boxes of an MP4 (ISO/IEC 14496-12) for facts that FFmpeg does not report.

The walk distinguishes a truncated upload from a file of another kind, and finds encrypted sample
entries, which FFmpeg reports by their original name. The file is read by FFmpeg's protocols,
through the demuxer that takes any bytes. Limits: only a bounded number of headers is read. A file
whose index has more is refused, because FFmpeg would read all of it.

The module also reads composition offsets, from the index or from fragments, because FFmpeg's index
has decode times only. The frame rate doesn't follow from decode times: cutting removes frames that
others were ordered around, and some writers give reordered frames even decode times. Of a
collection of real files, four with even decode times are shown unevenly, and one with uneven ones
evenly.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import av
from av.container import InputContainer

from portal.transcoding.probing.edits import Edit, are_open, are_single

# Limit on boxes, which are read in half a second; 300 tracks have 5,000.
_MAX_BOXES = 200_000
# Limit on jumps, each of which is a request over http. 40 tracks of half a day take about 300.
_MAX_JUMPS = 1000
_WINDOW_BYTES = 4096
_TABLE_WINDOW_BYTES = 256 * 1024
_HEADER_BYTES = 16
VIDEO_HANDLER = b"vide"
_MEDIA = (VIDEO_HANDLER, b"soun")
# Full box header and a QuickTime field.
_HANDLER_OFFSET_BYTES = 8
# Full box header and entry count.
_COUNT_PREFIX_BYTES = 8
# Boxes that are entered on the way from the index to the sample entries, by their parents.
_INSIDE = {
    b"moov": {b"trak"},
    b"trak": {b"edts", b"mdia"},
    b"edts": set[bytes](),
    b"mdia": {b"minf"},
    b"minf": {b"dinf", b"stbl"},
    b"dinf": set[bytes](),
    b"stbl": set[bytes](),
}
# Flags of a data reference to the file itself.
_SELF_CONTAINED = b"\1"
_MIN_NAMED_BYTES = 5
# QuickTime's record in place of an address.
_ALIAS = b"alis"
# Encrypted sample entries (ISO/IEC 23001-7, and those of the iTunes store).
_ENCRYPTED = {b"encv", b"enca", b"drmi", b"drms"}
# Limit on the edits of a track. Programs write some for each cut.
_MAX_EDITS = 5000
# Duration, media time and rate of an edit, by the version of the list.
_EDITS = (struct.Struct(">Iii"), struct.Struct(">Qqi"))
_RATE_UNIT = 1 << 16
_HEAD = struct.Struct(">4xI")
_ROW = struct.Struct(">Ii")
# Flags of a track run: fields before its samples, and fields of each sample, of 4 bytes each.
_RUN_FIELDS = (0x1, 0x4)
_SAMPLE_FIELDS = (0x100, 0x200, 0x400, 0x800)
_HAS_OFFSETS = 0x800
# Shorter than any frame.
_LEAST_LEAD_S = 0.001
# Limit on a fragment's boxes. Recorders write some kilobytes.
_MAX_FRAGMENT_BYTES = 4 * 1024**2
# Offsets of the size and of the boxes in a visual sample entry (ISO/IEC 14496-12, 12.1.3.2).
_PICTURE_SIZE_AT = 24
_PICTURE_BOXES_AT = 78
# Limit on the sample entries that are read. Recorders write one, editing programs a few.
_MAX_ENTRIES = 64


@dataclass(frozen=True, slots=True)
class PictureEntry:
    """Visual sample entry: the size of its frames, its boxes, and the code of its codec.

    The first 32 bytes of each box are read; bytes after the file's end count as zero.
    """

    size: tuple[int, int]
    boxes: Mapping[bytes, bytes]
    kind: bytes = b""


@dataclass(slots=True)
class Outline:
    """Facts that the walk collects."""

    size_bytes: int = 0
    has_index: bool = False
    has_media: bool = False
    has_fragments: bool = False
    first_fragment_at: int = 0
    has_segment_index: bool = False
    is_index_cut: bool = False
    announces_fragments: bool = False
    is_encrypted: bool = False
    # The walk ended before the end of the index, or of a file without one.
    is_unfinished: bool = True
    # Handlers of the tracks whose media are in other files.
    external: set[bytes] = field(default_factory=set)
    # Begin and end of the composition offsets in the file, by the track's number.
    composition: dict[int, tuple[int, int]] = field(default_factory=dict)
    # Handlers of tracks by the track's number.
    handlers: dict[int, bytes] = field(default_factory=dict)
    # Units per second of the durations of edits.
    time_scale: int = 1
    # Edit lists by the track's number.
    edits: dict[int, list[Edit]] = field(default_factory=dict)
    # Sample entries of video tracks by the track's number.
    pictures: dict[int, list[PictureEntry]] = field(default_factory=dict)

    @property
    def is_fragmented(self) -> bool:
        """Return whether there are samples that the index doesn't list.

        Some recorders announce fragments and write none.
        """
        return self.announces_fragments and self.has_fragments

    @property
    def is_open(self) -> bool:
        """Return whether FFmpeg must only move the tracks, each of which plays one part.

        The edits of picture and sound last to the ends of tracks, unless the file has fragments.
        """
        are_alike = are_single if self.is_fragmented else are_open
        return are_alike(self._media_edits)

    def is_read_as_edited(self, lead_s: float) -> bool:
        """Return whether FFmpeg shows a file of fragments as its edit lists say, by itself.

        It does if the lists hide nothing: no `lead_s` seconds of media before the first shown
        frame, and no end before that of the track. It is False for a file without fragments.
        """
        is_whole = lead_s < _LEAST_LEAD_S and are_open(self._media_edits)
        return self.is_fragmented and is_whole

    @property
    def _media_edits(self) -> list[list[Edit]]:
        return [self.edits[track] for track in self.edits if self.handlers.get(track) in _MEDIA]

    @property
    def verdict(self) -> str:
        """Return why FFmpeg failed to open the file: `truncated`, `damaged` or `not_a_video`."""
        if self.has_index:
            return "truncated" if self.is_index_cut else "damaged"
        # Most recorders write the index last. A segment of a stream never had one.
        is_cut = self.has_media and not self.has_fragments
        return "truncated" if is_cut else "not_a_video"


@dataclass(frozen=True, slots=True)
class _Box:
    kind: bytes
    at: int
    body: int
    end: int


class _OutOfBudget(Exception):
    """The file has more boxes than are read."""


class _BoxReader:
    """Reader of a few bytes anywhere in a file, with a window of bytes that were already read."""

    def __init__(self, container: InputContainer) -> None:
        self.container = container
        self.size_bytes = container.size
        self._window = b""
        self._window_at = 0
        self._jumps_left = _MAX_JUMPS
        self._boxes_left = _MAX_BOXES

    def read(self, at: int, size_bytes: int = _HEADER_BYTES) -> bytes:
        """Return the bytes at a place, fewer at the end of the file."""
        if not self._window_at <= at <= self._window_at + len(self._window) - size_bytes:
            self._move(at, size_bytes)
        offset = at - self._window_at
        return self._window[offset : offset + size_bytes]

    def _move(self, at: int, size_bytes: int) -> None:
        """Begin the window at `at`, with at least this many bytes; reading on is no jump."""
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
        # Over http, packets are as long as the bytes that have arrived.
        while len(self._window) < size_bytes and (more := bytes(next(self.container.demux(), b""))):
            self._window += more

    def boxes(self, at: int, end: int) -> Iterator[_Box]:
        """Yield the boxes between two places; the last one may claim to end later."""
        while at + 8 <= min(end, self.size_bytes):
            if not self._boxes_left:
                raise _OutOfBudget
            self._boxes_left -= 1
            header = self.read(at)
            size = int.from_bytes(header[:4])
            kind = header[4:8]
            body = at + 8
            if size == 1 and len(header) == _HEADER_BYTES:
                size = int.from_bytes(header[8:])
                body = at + _HEADER_BYTES
            elif size == 0:
                size = end - at
            if len(kind) < 4 or size < body - at:
                return
            yield _Box(kind, at, body, at + size)
            at += size


def read_outline(request: dict[str, Any]) -> Outline:
    """Walk the boxes of a file up to its index, and the index down to its sample entries.

    Raises FFmpegError if the file can't be read, and EOFError if it is empty.
    """
    outline = Outline()
    with _open_raw(request, _WINDOW_BYTES) as container:
        reader = _BoxReader(container)
        outline.size_bytes = reader.size_bytes
        with suppress(_OutOfBudget):
            _walk_top(outline, reader)
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
    """Walk up to the index, and up to the first fragment after it if it announces any."""
    for box in reader.boxes(0, reader.size_bytes):
        outline.has_media |= box.kind == b"mdat"
        if box.kind == b"moof":
            outline.has_fragments = True
            outline.first_fragment_at = box.at
        outline.has_segment_index |= box.kind == b"sidx"
        if box.kind == b"moov":
            outline.has_index = True
            outline.is_index_cut = box.end > reader.size_bytes
            _walk_index(outline, reader, box)
        if outline.has_index and (outline.has_fragments or not outline.announces_fragments):
            return


def _walk_index(outline: Outline, reader: _BoxReader, parent: _Box, track: int = 0) -> None:
    """Record in `outline` the facts of all boxes below `parent`, down to the sample entries.

    `track` is the number of the track to which they belong; 0 outside of tracks.
    """
    for box in reader.boxes(parent.body, parent.end):
        outline.announces_fragments |= box.kind == b"mvex"
        if box.kind == b"tkhd":
            track = _number_after_times(reader, box)
        elif box.kind == b"hdlr" and parent.kind == b"mdia":
            outline.handlers[track] = reader.read(box.body + _HANDLER_OFFSET_BYTES)[:4]
        elif box.kind in _INSIDE[parent.kind]:
            _walk_index(outline, reader, box, track)
        else:
            _read_table(outline, reader, box, track)


def _read_table(outline: Outline, reader: _BoxReader, box: _Box, track: int) -> None:
    """Record the facts in a box that has no boxes of interest."""
    if box.kind == b"mvhd":
        outline.time_scale = max(1, _number_after_times(reader, box))
    elif box.kind == b"elst":
        outline.edits[track] = list(_read_edits(outline, reader, box))
    elif box.kind == b"ctts":
        outline.composition[track] = (box.body, box.end)
    elif box.kind == b"stsd":
        _read_sample_entries(outline, reader, box, track)
    elif box.kind == b"dref":
        references = reader.boxes(box.body + _COUNT_PREFIX_BYTES, box.end)
        if any(_is_external(reader, entry) for entry in references):
            outline.external.add(outline.handlers.get(track, b""))


def _number_after_times(reader: _BoxReader, header: _Box) -> int:
    """Return the track's number in a `tkhd`, by which FFmpeg knows it, or the time scale in `mvhd`.

    Two times of 4 or 8 bytes stand before it.
    """
    is_long = reader.read(header.body)[:1] == b"\1"
    return int.from_bytes(reader.read(header.body + (20 if is_long else 12))[:4])


def _read_edits(outline: Outline, reader: _BoxReader, table: _Box) -> Iterator[Edit]:
    """Read an edit list (ISO/IEC 14496-12, 8.6.6)."""
    row = _EDITS[reader.read(table.body)[:1] == b"\1"]
    count = min(
        int.from_bytes(reader.read(table.body + 4)[:4]),
        (table.end - table.body - _COUNT_PREFIX_BYTES) // row.size,
    )
    if count > _MAX_EDITS:
        raise _OutOfBudget
    rows = reader.read(table.body + _COUNT_PREFIX_BYTES, count * row.size)
    for duration, media_time, rate in row.iter_unpack(rows[: len(rows) // row.size * row.size]):
        yield Edit(
            duration_s=duration / outline.time_scale,
            rate=round(rate / _RATE_UNIT, 2),
            is_empty=media_time == -1,
        )


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
    return PictureEntry((int.from_bytes(size[:2]), int.from_bytes(size[2:4])), boxes, entry.kind)


def _is_external(reader: _BoxReader, reference: _Box) -> bool:
    """Return whether a reference names another file; some writers omit the flag but name none."""
    flags = reader.read(reference.body)[3:4]
    name = reader.read(reference.body + 4)[:1]
    has_name = reference.end - reference.body > _MIN_NAMED_BYTES and (
        reference.kind == _ALIAS or name != b"\0"
    )
    return flags != _SELF_CONTAINED and has_name


def composition_offsets(
    request: dict[str, Any], outline: Outline, *, track: int, samples: int
) -> Iterable[int] | None:
    """Return the offset of each sample in ticks, from the track's `ctts`.

    The result is None unless the table has exactly this number of samples. Offsets are signed, as
    all readers take them. Source: ISO/IEC 14496-12, 8.6.1.3. Raises FFmpegError.
    """
    at, end = outline.composition.get(track, (0, 0))
    if not end:  # without the box, samples are shown when they are decoded
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


def fragment_offsets(
    request: dict[str, Any], outline: Outline, *, track: int, samples: int
) -> list[int] | None:
    """Return the composition offset of each sample of a fragmented track, in ticks.

    `track` is the track's number in the file. The result is None unless its fragments have exactly
    this number of samples, or if there are too many fragments to be read. Source: ISO/IEC 14496-12,
    8.8. Raises FFmpegError.
    """
    offsets: list[int] = []
    with _open_raw(request, _WINDOW_BYTES) as container, suppress(_OutOfBudget):
        reader = _BoxReader(container)
        for fragment in reader.boxes(outline.first_fragment_at, reader.size_bytes):
            if fragment.kind != b"moof":
                continue
            for part in reader.boxes(fragment.body, min(fragment.end, reader.size_bytes)):
                if part.kind == b"traf" and len(offsets) <= samples:
                    offsets += _offsets_of_fragment(reader, part, track)
    return offsets if len(offsets) == samples else None


def _offsets_of_fragment(reader: _BoxReader, fragment: _Box, track: int) -> Iterator[int]:
    """Yield the offsets of a track's samples; none of another track."""
    is_tracks = False
    for box in reader.boxes(fragment.body, fragment.end):
        if box.kind == b"tfhd":
            is_tracks = int.from_bytes(reader.read(box.body + 4, 4)) == track
        elif box.kind == b"trun" and is_tracks:
            if box.end - box.body > _MAX_FRAGMENT_BYTES:
                raise _OutOfBudget
            yield from _offsets_of_run(reader.read(box.body, box.end - box.body))


def _offsets_of_run(run: bytes) -> Iterator[int]:
    """Yield the composition offset of each sample of a `trun` box, which is 0 without the field."""
    flags = int.from_bytes(run[1:4])
    count = int.from_bytes(run[4:8])
    if not flags & _HAS_OFFSETS:
        yield from repeat(0, min(count, _MAX_FRAGMENT_BYTES))
        return
    at = _COUNT_PREFIX_BYTES + 4 * sum(bool(flags & flag) for flag in _RUN_FIELDS)
    width = 4 * sum(bool(flags & flag) for flag in _SAMPLE_FIELDS)
    # All readers take the offsets as signed, and they are the last field.
    for end in range(at + width, min(at + width * count, len(run)) + 1, width):
        yield int.from_bytes(run[end - 4 : end], signed=True)
