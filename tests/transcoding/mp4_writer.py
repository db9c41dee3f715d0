"""Write MP4 files byte by byte, so that they can be wrong in any way (ISO/IEC 14496-12)."""

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

HERE = struct.pack(">I4sI", 12, b"url ", 1)  # the media lies in this very file
IDENTITY = struct.pack(">9i", 1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)
TIMESCALE = 1000
MIB = 1024**2
FRAME_MS = 40


def box(kind: bytes, *content: bytes) -> bytes:
    body = b"".join(content)
    return struct.pack(">I4s", len(body) + 8, kind) + body


FILE_TYPE = box(b"ftyp", b"isom", bytes(4), b"isommp42")
MEDIA_AT = len(FILE_TYPE) + 8


def table(kind: bytes, row: str, *rows: Sequence[int]) -> bytes:
    """A full box with a count and rows."""
    packed = b"".join(struct.pack(f">{row}", *values) for values in rows)
    return box(kind, struct.pack(">II", 0, len(rows)), packed)


def picture_entry(kind: bytes, width: int, height: int, *extensions: bytes) -> bytes:
    fixed = struct.pack(">6xH16xHHII4xH32xHh", 1, width, height, 72 << 16, 72 << 16, 1, 24, -1)
    return box(kind, fixed, *extensions)


def insert_in_sample_entry(source: Path, entry: bytes, *extensions: bytes) -> Path:
    """Copy a file whose media lie before its index, with boxes added to its first picture entry."""
    content = bytearray(source.read_bytes())
    assert content.index(b"mdat") < content.index(b"moov")
    added = b"".join(extensions)
    at = 0
    for kind in (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd", entry):
        at = content.index(kind, at) - 4
        size = struct.unpack_from(">I", content, at)[0]
        struct.pack_into(">I", content, at, size + len(added))
        at += 4
    end = at - 4 + size
    content[end:end] = added
    changed = source.with_name(f"{zlib.crc32(added)} {source.name}")
    changed.write_bytes(content)
    return changed


def sample_sizes(sizes: Sequence[int], *, count: int | None = None, same: int = 0) -> bytes:
    packed = struct.pack(f">{len(sizes)}I", *sizes)
    number = len(sizes) if count is None else count
    return box(b"stsz", struct.pack(">III", 0, same, number), b"" if same else packed)


def track(
    entry: bytes,
    sizes: bytes,
    *,
    frames: int,
    size: tuple[int, int] = (64, 64),
    data_reference: bytes = HERE,
    edits: bytes = b"",
    handler: bytes = b"vide",
    number: int = 1,
    shared: bool = False,
    later: tuple[bytes, int, int] | None = None,
) -> bytes:
    """Make a track whose samples follow each other, or share the bytes of the first if `shared`.

    Of another sample entry are so many `later` samples, which begin so far behind the first one.
    """
    duration = min(frames * FRAME_MS, 2**32 - 1)
    chunks = [(1, 1 if shared else frames, 1)] if frames else []
    offsets = [MEDIA_AT] * (frames if shared else len(chunks))
    entries = [entry]
    if later:
        entries.append(later[0])
        chunks = [(1, frames - later[1], 1), (2, later[1], 2)]
        offsets.append(MEDIA_AT + later[2])
    samples = box(
        b"stbl",
        box(b"stsd", struct.pack(">II", 0, len(entries)), *entries),
        table(b"stts", "II", *[(frames, FRAME_MS) for _ in chunks[:1]]),
        table(b"stsc", "III", *chunks),
        sizes,
        table(b"stco", "I", *[(offset,) for offset in offsets]),
    )
    media = box(
        b"minf",
        box(b"vmhd", struct.pack(">IHHHH", 1, 0, 0, 0, 0)),
        box(b"dinf", box(b"dref", struct.pack(">II", 0, 1), data_reference)),
        samples,
    )
    header = struct.pack(">IIIIII", 3, 0, 0, number, 0, duration) + bytes(16) + IDENTITY
    named = box(b"hdlr", struct.pack(">II4s12x", 0, 0, handler), b"\0")
    return box(
        b"trak",
        box(b"tkhd", header, struct.pack(">II", size[0] << 16, size[1] << 16)),
        edits,
        box(
            b"mdia",
            box(b"mdhd", struct.pack(">IIIIIHH", 0, 0, 0, TIMESCALE, duration, 0x55C4, 0)),
            named,
            media,
        ),
    )


def index(*tracks: bytes, duration_ms: int = FRAME_MS) -> bytes:
    header = struct.pack(">IIIIIIH10x", 0, 0, 0, TIMESCALE, duration_ms, 1 << 16, 256)
    return box(b"moov", box(b"mvhd", header, IDENTITY, bytes(24), struct.pack(">I", 9)), *tracks)


def movie(media: bytes, *tracks: bytes, duration_ms: int = FRAME_MS) -> bytes:
    """A whole file; the media begin at `MEDIA_AT`."""
    return FILE_TYPE + box(b"mdat", media) + index(*tracks, duration_ms=duration_ms)


# Bytes from the start of a box to the boxes within it.
_INNER_BOXES_AT = {b"moov": 8, b"trak": 8, b"mdia": 8, b"minf": 8, b"stbl": 8, b"stsd": 16}


def replace_box(content: bytes, kind: bytes, *replacements: bytes, is_first: bool = False) -> bytes:
    """Put other boxes in the place of a file's last one of a kind, and grow those around it.

    The index has to lie behind the media, whose places it tells.
    """
    at = (content.index(kind) if is_first else content.rindex(kind)) - 4
    old_bytes = int.from_bytes(content[at : at + 4])
    new = b"".join(replacements)
    changed = bytearray(content[:at] + new + content[at + old_bytes :])
    box_at = 0
    while box_at < at:
        size_bytes = int.from_bytes(changed[box_at : box_at + 4])
        if box_at + size_bytes <= at:
            box_at += size_bytes
            continue
        grown_bytes = size_bytes + len(new) - old_bytes
        changed[box_at : box_at + 4] = grown_bytes.to_bytes(4)
        name = bytes(changed[box_at + 4 : box_at + 8])
        # A sample entry is the innermost.
        box_at += _INNER_BOXES_AT.get(name, at)
    return bytes(changed)


def channel_layout(tag: int, *labels: int) -> bytes:
    """Name channels as QuickTime does: by a tag of a whole layout, or by a label for each."""
    rows = b"".join(struct.pack(">II12x", label, 0) for label in labels)
    return box(b"chan", struct.pack(">IIII", 0, tag, 0, len(labels)), rows)


def zeros(size_bytes: int) -> bytes:
    """Return zero bytes in zlib's format; a block is compressed once and repeated."""
    blocks, rest = divmod(size_bytes, MIB)
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    end = packer.compress(bytes(rest)) + packer.flush()
    checksum = struct.pack(">HH", size_bytes % 65521, 1)  # Adler-32 (RFC 1950)
    return b"\x78\xda" + block * blocks + end + checksum


def png(width: int, height: int) -> bytes:
    """A black picture in 24 bits; however large, it is a thousandth of its size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    packed = zeros(height * (1 + width * 3))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
    )
