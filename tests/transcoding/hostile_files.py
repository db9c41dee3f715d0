"""Files made to do harm, by what they do."""

import struct
import zlib
from collections.abc import Callable

from mp4_writer import (
    FILE_TYPE,
    FRAME_MS,
    MIB,
    box,
    empty_track,
    fragments,
    index,
    movie,
    picture_entry,
    png,
    png_movie,
    sample_sizes,
    table,
    track,
    zeros,
)

from portal.transcoding.errors import RejectCode


def nested(kind: bytes, depth: int) -> bytes:
    return b"".join(struct.pack(">I4s", 8 * (depth - level), kind) for level in range(depth))


def compressed(moov: bytes, claimed: int) -> bytes:
    """A movie whose index is packed, as QuickTime once did."""
    packed = box(b"cmvd", struct.pack(">I", claimed), moov)
    return FILE_TYPE + box(b"moov", box(b"cmov", box(b"dcom", b"zlib"), packed))


def claiming(frames: int) -> bytes:
    """A few bytes that claim to be so many samples."""
    sizes = sample_sizes([], count=frames, same=1)
    film = track(picture_entry(b"png ", 64, 64), sizes, frames=frames)
    return movie(bytes(100), film, duration_ms=min(frames * FRAME_MS, 2**32 - 1))


def sequence_parameters(width: int, height: int) -> bytes:
    """An H.264 Baseline SPS (ITU-T H.264, 7.3.2.1.1) for a picture of any size."""

    def golomb(value: int) -> str:
        bits = f"{value + 1:b}"
        return "0" * (len(bits) - 1) + bits

    values = [0, 0, 2, 1]  # id, log2 of frame numbers, order type, references
    bits = "".join(golomb(value) for value in values) + "0"
    bits += golomb(width // 16 - 1) + golomb(height // 16 - 1) + "1100" + "1"
    bits += "0" * (-len(bits) % 8)
    packed = int(bits, 2).to_bytes(len(bits) // 8, "big")
    return b"\x67\x42\x00\x33" + packed


def h264_claiming(width: int, height: int, *, entry: tuple[int, int]) -> bytes:
    sps, pps = sequence_parameters(width, height), b"\x68\xce\x3c\x80"
    config = b"\x01\x42\x00\x33\xff\xe1" + struct.pack(">H", len(sps)) + sps
    config += b"\x01" + struct.pack(">H", len(pps)) + pps
    slice_ = b"\x65\x88\x84\x00\x10\xff\xfe\xf6\xf0\xfe\x05\x36\x56\x04\x50\x96\x7b\x3f"
    media = struct.pack(">I", len(slice_)) + slice_
    described = picture_entry(b"avc1", *entry, box(b"avcC", config))
    return movie(media, track(described, sample_sizes([len(media)]), frames=1))


def edit_list(rows: int, *, frames: int) -> bytes:
    """The same first moment over and over."""
    edits = table(b"elst", "IIHH", *[(frames * FRAME_MS, 0, 1, 0)] * rows)
    return png_movie(64, 64, frames=frames, edits=box(b"edts", edits))


def one_fragment(samples: int, runs: int = 1) -> bytes:
    extends = box(b"mvex", box(b"trex", struct.pack(">IIIIII", 0, 1, 1, FRAME_MS, 1, 0)))
    piece = box(
        b"traf",
        box(b"tfhd", struct.pack(">II", 0x020000, 1)),
        box(b"trun", struct.pack(">II", 0, samples)),
    )
    fragment = box(b"moof", box(b"mfhd", bytes(8)), piece * runs)
    return FILE_TYPE + index(empty_track(), extends) + fragment + box(b"mdat", bytes(100))


def growing() -> bytes:
    """The second picture is the largest a side may be; only the first is looked at."""
    pictures = [png(64, 64), png(16_000, 16_000)]
    sizes = sample_sizes([len(picture) for picture in pictures])
    return movie(b"".join(pictures), track(picture_entry(b"png ", 64, 64), sizes, frames=2))


def blank_8k(frames: int) -> bytes:
    """Frames of QuickTime's run lengths that say that nothing has changed."""
    size, unchanged = (8192, 4320), bytes(8)
    sizes = sample_sizes([len(unchanged)] * frames)
    film = track(picture_entry(b"rle ", *size), sizes, frames=frames, size=size)
    return movie(unchanged * frames, film)


def same_picture(frames: int, size: tuple[int, int] = (8192, 4320)) -> bytes:
    """A film all of whose frames are one picture that is stored once."""
    picture = png(*size)
    sizes = sample_sizes([], count=frames, same=len(picture))
    film = track(picture_entry(b"png ", *size), sizes, frames=frames, size=size, shared=True)
    return movie(picture, film, duration_ms=frames * FRAME_MS)


def many_tracks(number: int) -> bytes:
    picture = png(64, 64)
    entry, sizes = picture_entry(b"png ", 64, 64), sample_sizes([len(picture)])
    tracks = [track(entry, sizes, frames=1, number=place + 1) for place in range(number)]
    return movie(picture, *tracks)


def a_million_frames() -> bytes:
    """Of a byte each, so that none of them is a picture."""
    count = 1_000_000
    entry = picture_entry(b"avc1", 64, 64, box(b"avcC", b"\x01\x42\x00\x1e\xff\xe0\x00"))
    return movie(bytes(count), track(entry, sample_sizes([], count=count, same=1), frames=count))


def huge_entry() -> bytes:
    return movie(
        bytes(64), track(picture_entry(b"avc1", 65535, 65535), sample_sizes([64]), frames=1)
    )


def samples_without_sizes() -> bytes:
    sizes = sample_sizes([], count=2**31)
    return movie(b"", track(picture_entry(b"png ", 64, 64), sizes, frames=1, media_at=64))


_BY_CODE: dict[RejectCode, dict[str, Callable[[], bytes]]] = {
    RejectCode.TOO_LARGE: {
        "huge sample entry": huge_entry,
        "huge picture in a small entry": lambda: h264_claiming(65536, 65536, entry=(64, 64)),
        "long and low": lambda: png_movie(40_000, 8),
        "a picture of 1.2 GB in 1.2 MB": lambda: png_movie(20_000, 20_000),
    },
    RejectCode.DAMAGED: {
        "100 000 tracks": lambda: movie(b"", *[empty_track()] * 100_000),
        "a million empty tracks": lambda: movie(b"", *[box(b"trak")] * 1_000_000),
        "2^31 samples and no sizes": samples_without_sizes,
        "a million boxes in each other": lambda: FILE_TYPE + nested(b"moov", 1_000_000),
        "boxes in each other in the index": lambda: (
            FILE_TYPE + box(b"moov", nested(b"udta", 200_000))
        ),
        "a packed index that claims 4 GB": lambda: compressed(zeros(MIB), 2**32 - 1),
        "a packed index of nested boxes": lambda: compressed(
            zlib.compress(nested(b"moov", 1_000_000)), 8_000_000
        ),
        "a fragment of 2^31 samples": lambda: one_fragment(2**31 - 1),
        "fragments that fill the memory": lambda: one_fragment(20_000_000, 20),
        "three million edits": lambda: edit_list(3_000_000, frames=1),
        "a thousand frames five thousand times": lambda: edit_list(5000, frames=1000),
        "a million frames of a byte": a_million_frames,
    },
    RejectCode.ZERO_DURATION: {"2^31 samples of one byte": lambda: claiming(2**31 - 1)},
    RejectCode.TRUNCATED: {
        "50 million samples": lambda: claiming(50_000_000),
        "a box larger than any disk": lambda: (
            FILE_TYPE + struct.pack(">I4sQ", 1, b"moov", 2**63 - 1) + bytes(1000)
        ),
    },
    RejectCode.NO_VIDEO_TRACK: {
        "tracks in tracks": lambda: FILE_TYPE + box(b"moov", nested(b"trak", 200_000)),
    },
    RejectCode.NOT_A_VIDEO: {
        "boxes of no size": lambda: FILE_TYPE + bytes(8 * MIB),
        "a million free boxes": lambda: FILE_TYPE + struct.pack(">I4s", 8, b"free") * 1_000_000,
        "an index that claims to end before it begins": lambda: (
            FILE_TYPE + struct.pack(">I4sQ", 1, b"moov", 3) + bytes(1000)
        ),
        "a packed index of 900 MB": lambda: compressed(zeros(900 * MIB), 900 * MIB),
    },
}
HOSTILE = {name: (make, code) for code, files in _BY_CODE.items() for name, make in files.items()}
SLOW = {"a packed index of 900 MB", "50 million samples", "fragments that fill the memory"}

PLAYABLE: dict[str, Callable[[], bytes]] = {
    "8K pictures in a kilobyte each": lambda: png_movie(8192, 4320, frames=3),
    "20 000 empty 8K frames": lambda: blank_8k(20_000),
    "pictures that grow": growing,
    "100 000 fragments": lambda: fragments(100_000),
    "300 tracks": lambda: many_tracks(300),
    "an edit list that claims 2^31 rows": lambda: png_movie(
        64, 64, edits=box(b"edts", table(b"elst", "IIHH", (FRAME_MS, 0, 1, 0), count=2**31))
    ),
}
